"""Functions of the module, the variables that they share, and operators from outside TFLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.base.files import content
from tflq.dialects.declare import Operator, Types, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes
from tflq.dialects.tfl import needed_version
from tflq.dialects.traits import Calls, Impure, StaysQuantized, Unquantized
from tflq.ir.module import Metadata, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import Shape, i1, i32
from tflq.ir.types import resource as resource_type

CALLS = StaysQuantized("calls a subgraph")


class Many(Operator):
    """Of any number of values."""

    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)


class Call(Many, name="tfl.call"):
    """Runs a function; no kernel exists."""

    subgraph: int = attribute(default=0)
    traits = (CALLS, Calls(subgraph, inputs=Many.inputs), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.branches([self.subgraph], self.inputs)


class CallOnce(Many, name="tfl.call_once"):
    """Runs a function once, before anything else. Source: kernels/call_once.cc."""

    init_subgraph_index: int = attribute(default=0)
    traits = (CALLS, Calls(init_subgraph_index, inputs=Many.inputs), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        site.branches([self.init_subgraph_index], ())
        return []


class If(Operator, name="tfl.if"):
    """Runs one of two functions. Source: kernels/if.cc."""

    condition: Value = operand(i1)
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    then_subgraph_index: int = attribute(default=0)
    else_subgraph_index: int = attribute(default=0)
    traits = (CALLS, Calls(then_subgraph_index, else_subgraph_index, inputs=inputs), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.branches([self.then_subgraph_index, self.else_subgraph_index], self.inputs)


class While(Many, name="tfl.while"):
    """Runs a function as long as another says so. Source: kernels/while.cc."""

    cond_subgraph_index: int = attribute(default=0)
    body_subgraph_index: int = attribute(default=0)
    traits = (CALLS, Calls(cond_subgraph_index, body_subgraph_index, inputs=Many.inputs), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.loop(self.cond_subgraph_index, self.body_subgraph_index, self.inputs)


class Custom(Many, name="tfl.custom"):
    """An operator that the interpreter is given by name."""

    traits = (StaysQuantized("custom operator"), Impure())

    @property
    def code(self) -> str:
        """The name that the interpreter knows it by."""
        return str(self.attributes.get("custom_code") or "")


class Delegate(Many, name="tfl.delegate"):
    """Operators that a delegate runs; an interpreter makes this one."""

    traits = (Impure(), Unquantized("an interpreter makes it as it delegates; no file holds one"))


class PlaceholderForGreaterOpCodes(Many, name="tfl.placeholder_for_greater_op_codes"):
    """A mark in the table of operators, not an operator."""

    traits = (Unquantized("a mark in the operator code, not an operator"),)


# Versions of operators, and the release of the runtime that a model needs for them. A version says which types and
# options an operator has: an interpreter that does not know it refuses the model, instead of computing something else.


RUNTIME = "min_runtime_version"
"""The name of the metadata that says which release a model needs."""

_Release: TypeAlias = tuple[int, ...]


def version_info(op: Op) -> dict[str, Any]:
    """The version that an op states, as `Op.info`, at most the newest that interpreters have: what asked for more are
    the quantized types."""
    if "version" not in op.info:
        return {}
    return {"version": min(op.info["version"], op.newest if isinstance(op, Operator) else 1)}


_VERSION_INFO: Final[Sequence[Mapping[str, Any]]] = [{"version": version} for version in range(20)]
"""`Op.info` of operators that state nothing but a version."""


def state_version(op: Op) -> None:
    """Has an operator on plain tensors state the version that its types and options need; in place."""
    if isinstance(op, Operator) and op.versions:
        version = min(needed_version(op), op.newest)
        if version > 1:
            op.info = {**op.info, "version": version} if op.info else _VERSION_INFO[version]


def state_runtime(module: Module, *, selected: bool) -> bool:
    """Has the module's metadata say which release its operators need, if it names one; in place. selected: whether
    any of them comes from selection. Answers whether that is another release than before."""
    before = module.metadata or []
    if not any(item.name == RUNTIME for item in before):
        return False
    module.metadata = after = [_stating(item, module, selected) if item.name == RUNTIME else item for item in before]
    return any(bytes(a.buffer.data) != bytes(b.buffer.data) for a, b in zip(before, after, strict=True) if a is not b)


def _stating(item: Metadata, module: Module, selected: bool) -> Metadata:
    """The metadata with the release that the module needs: the first with every operator in its version. Operators
    from selection need the oldest release that was tried, since their results were compared with no older one. An
    operator of which nothing is known needs the release that the source names."""
    oldest, known = _releases()
    release = _release(oldest) if selected else ()
    for name, version in {(op.name, op.info.get("version", 1)) for op in module.ops()}:
        releases = known.get(name.removeprefix("tfl."))
        if releases is None:
            named = bytes(item.buffer.data).rstrip(b"\0").decode("ascii", "replace")
            release = max(release, _release(named) if name != "tfl.custom" else ())
        else:
            release = max(release, _release(releases[min(int(version), len(releases)) - 1]))
    text = ".".join(map(str, release)).encode()
    return Metadata(item.name, Buffer.of(np.frombuffer(text.ljust(max(16, item.buffer.data.size), b"\0"), np.uint8)))


def _release(text: str) -> _Release:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


@cache
def _releases() -> tuple[str, Mapping[str, Sequence[str]]]:
    """The oldest release that was tried; by builtin, the first release of each version."""
    data = content("schema/tflite.json")
    return data["oldest_tried"], {name: line.split() for name, line in data["runtime"].items()}


# Resource variables: what they hold stays between runs.

HANDLE: Final = Types(resource_type, i32)
"""Element types of handles."""


class VarHandle(Operator, name="tfl.var_handle"):
    """The handle of a variable. Source: kernels/var_handle.cc."""

    resource: Value = result(HANDLE)
    container: Any = attribute(default=None)
    shared_name: Any = attribute(default=None)
    traits = (Impure(),)

    def infer(self, _: DeclaredShapes) -> Shape:
        return self.resource.type.shape


class ReadVariable(Operator, name="tfl.read_variable"):
    """The value of a variable. Source: kernels/read_variable.cc."""

    resource: Value = operand(HANDLE)
    value: Value = result()
    traits = (Impure(),)

    def infer(self, site: DeclaredShapes) -> Shape:
        return site.variable(self.resource, self.value, False)


class AssignVariable(Operator, name="tfl.assign_variable"):
    """Writes a variable. Source: kernels/assign_variable.cc."""

    resource: Value = operand(HANDLE)
    value: Value = operand()
    traits = (Impure(),)

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        site.variable(self.resource, self.value, True)
        return []
