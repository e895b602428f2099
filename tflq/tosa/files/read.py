"""A TOSA flatbuffer → a module in the tosa form: `write.py` backwards.

Every block is a function, called like its region, or like itself where a region has several; the first is the entry.
Compile-time-constant operands become attributes, variables `tosa.variable` ops at the head of the entry. Constants are
views of the file. A file of a later 1.x is read, as TOSA's minor versions are compatible, with a warning; what 1.0 has
not is refused by name, all of it in one `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tflq.dialects.calls import callees
from tflq.dialects.declare import Operator
from tflq.dialects.forms import verify_form
from tflq.dialects.tosa.control import CondIf
from tflq.dialects.tosa.state import Variable
from tflq.dialects.traits.effects import Calls
from tflq.errors import InvalidModelError, Reason, UnsupportedError, VerificationError
from tflq.flatbuffer.codec import Decoder
from tflq.flatbuffer.layout import TOSA
from tflq.flatbuffer.reader import Source, open_source
from tflq.flatbuffer.structure import check
from tflq.ir.core import Function, Location, Module, Op, Value
from tflq.ir.types import i1
from tflq.ir.verifier import verify
from tflq.tosa.files.attributes import AS_1_0
from tflq.tosa.files.blocks import Block
from tflq.tosa.files.constants import Constants

__all__ = ["read_tosa"]

_VERSION: Final = (1, 0)


def read_tosa(source: Source) -> Module:
    """The module of a path, of bytes or of a file object.

    InvalidModelError if it is not a valid TOSA graph, UnsupportedError if it has what the tosa form cannot hold.
    """
    data, name = open_source(source)
    try:
        check(data, TOSA)
        return _Reader(data, name).module()
    except InvalidModelError as error:
        raise error.of_file(name) from None


class _Reader:
    """Builds the module of one file."""

    def __init__(self, data: memoryview, source: str) -> None:
        self.graph = Decoder(data, TOSA).root()
        self.source = source
        self.constants = Constants(data)
        self.warnings: list[str] = []
        self.reasons: list[Reason] = []

    def module(self) -> Module:
        self._version()
        blocks = self._blocks()
        if not blocks:
            raise InvalidModelError("TosaGraph.regions", "there is no block to run")
        variables: dict[str, Value] = {}
        for block in blocks:
            for name, initial in block.initial_values():
                if variables.setdefault(name, initial).type != initial.type:
                    raise InvalidModelError(block.where, f"the variable '{name}' has another type elsewhere")
            block.fill()
            self.reasons += block.reasons
        if self.reasons:
            what = f"{len(self.reasons)} thing(s) in the file cannot be read:"
            raise UnsupportedError(what, self.reasons, remedy=AS_1_0)
        functions = [block.function for block in blocks]
        declared = [
            Op(Variable.op_name, [initial], [], {"name": name}, Location(self.source, 0, i, "VARIABLE", name))
            for i, (name, initial) in enumerate(variables.items())
        ]
        functions[0].ops[:0] = declared
        module = Module(functions, source=self.source)
        module.warnings = self.warnings
        self._verify(module)
        return module

    def _version(self) -> None:
        version = self.graph["version"]
        if version is None:
            raise InvalidModelError("TosaGraph.version", "it is missing")
        major, minor = version["_major"], version["_minor"]
        text = f"{major}.{minor}.{version['_patch']}" + (" (draft)" if version["_draft"] else "")
        if major != _VERSION[0] or minor < 0:
            what = f"the file is of TOSA {text}; 1.0 is read, and what is compatible with it"
            raise UnsupportedError(what, remedy=AS_1_0)
        if (major, minor) != _VERSION or version["_draft"]:
            self.warnings.append(f"written for TOSA {text}, read as TOSA 1.0; verify what it is converted to")
        if features := (self.graph["compatibility"] or {}).get("features"):
            names = TOSA.enum("CompatibilityFeature").names
            asked = [names.get(bit, f"number {bit}") for bit in range(64) if features >> bit & 1]
            raise UnsupportedError(f"the file needs a reader that knows {', '.join(asked)}", remedy=AS_1_0)

    def _blocks(self) -> list[Block]:
        blocks: list[Block] = []
        found: dict[str, int] = {}
        inner: dict[tuple[str, str], int] = {}
        for r, region in enumerate(self.graph["regions"] or ()):
            members, name = region["blocks"] or (), region["name"] or ""
            if name in found:
                raise InvalidModelError(f"regions[{r}].name", f"there is another region called '{name}'")
            found[name] = len(blocks)
            for b, fields in enumerate(members):
                inner[name, fields["name"] or ""] = len(blocks)
                label = name if len(members) == 1 else fields["name"] or f"{name}_{b}"
                where = f"regions[{r}].blocks[{b}]"
                find = _Finder(name, found, inner)
                function = Function(label, [], [], [])
                blocks.append(Block(fields, function, where, len(blocks), self.source, self.constants, find))
            if not members:
                raise InvalidModelError(f"regions[{r}]", "it has no block")
        return blocks

    def _verify(self, module: Module) -> None:
        """What the other stages rely on; InvalidModelError where it does not hold."""
        try:
            verify(module)
            verify_form(module, "tosa")
        except VerificationError as error:
            raise InvalidModelError("TosaGraph", str(error).partition("\n")[0]) from None
        for op in module.ops():
            _verify_calls(module, op)
        _no_recursion(module)


class _Finder:
    """Finds the function that an attribute names: a block of the same region, else a region's first block."""

    def __init__(self, region: str, regions: Mapping[str, int], blocks: Mapping[tuple[str, str], int]) -> None:
        self._region = region
        self._regions = regions
        self._blocks = blocks

    def __call__(self, name: str) -> int:
        found = self._blocks.get((self._region, name), self._regions.get(name))
        if found is None:
            raise InvalidModelError("attribute", f"there is no region called '{name}'")
        return found


def _verify_calls(module: Module, op: Op) -> None:
    """That the functions an op runs take and give what it has."""
    given = [v.type for v in op.operands if v is not None][1 if isinstance(op, CondIf) else 0 :]
    made = [v.type for v in op.results]
    calls = op.trait(Calls) if isinstance(op, Operator) else None
    for key, index in calls.called(op) if calls else ():
        function = module.functions[index]
        takes, gives = [v.type for v in function.inputs], [v.type for v in function.outputs]
        if takes != given:
            raise InvalidModelError(
                op.location or "", f"{key} '{function.name}' takes other arguments than it is given"
            )
        if key == "cond_graph":
            if len(gives) != 1 or gives[0].element != i1:
                raise InvalidModelError(op.location or "", f"{key} '{function.name}' does not give one condition")
        elif gives != made:
            raise InvalidModelError(op.location or "", f"{key} '{function.name}' gives other results than the operator")


def _no_recursion(module: Module) -> None:
    calls = [{index for op in f.ops for index in callees(op)} for f in module.functions]
    done: set[int] = set()
    while len(done) < len(calls):
        ready = {i for i, called in enumerate(calls) if i not in done and called <= done}
        if not ready:
            names = ", ".join(f"'{f.name}'" for i, f in enumerate(module.functions) if i not in done)
            raise InvalidModelError("TosaGraph.regions", f"a region runs itself, among {names}")
        done |= ready
