"""Values and ops, and which class an op of a given name is of. Functions and modules of them are in `module.py`.

A constant is a `Value` with a `Buffer` and no producer. What a file says of a tensor beyond its type (a stored shape
with a shape signature, min/max statistics, sparsity ...) is in `Value.info`; what it says of an operator beyond its
options is in `Op.info`.

A `Dialect` knows the module that declares each op, which is imported when its first op is met. Those of tflq are in
`tflq/ir/index.py`; a package from outside names its own by an entry point in the group `tflq.dialects`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Final, TypeVar, cast

import numpy as np

from tflq.ir.index import DIALECTS, PACKAGES
from tflq.ir.types import SCALARS, ScalarType, TensorType

Fact = TypeVar("Fact")

_GROUP: Final = "tflq.dialects"
_PRINTER: Final = "tflq.ir.text.printer"
"""The module that prints an op. It is found by name, as the modules of ops are: it imports this one."""

COMPLETE: Final = frozenset({"ext", "fxpmath", "quant"})
"""Dialects without other ops than those that tflq declares."""


class Dialect:
    """The ops of one dialect: `families` has the names of the ops that each module of `package` declares."""

    def __init__(self, name: str, package: str, families: Mapping[str, Sequence[str]]) -> None:
        self.name: Final = name
        self.package: Final = package
        self.families: Final = families

    @cached_property
    def family_of(self) -> Mapping[str, str]:
        """The module of each op."""
        return {op: family for family, ops in self.families.items() for op in ops}

    @cached_property
    def op_names(self) -> frozenset[str]:
        """All its ops: `tosa.add` ..."""
        return frozenset(f"{self.name}.{op}" for op in self.family_of)

    def op_class(self, op: str) -> type[Op] | None:
        """The class of an op by its name without the dialect; None if the dialect has no such op."""
        family = self.family_of.get(op)
        if family is None:
            return None
        importlib.import_module(f"{self.package}.{family}")
        return _CLASSES.get(f"{self.name}.{op}")

    def classes(self) -> list[Any]:
        """The classes of all its ops, in the order of the families."""
        return [self.op_class(op) for op in self.family_of]


_CLASSES: Final[dict[str, type[Op]]] = {}


def register(name: str, declared: type[Op]) -> None:
    """Enters the class of an op. ValueError if there is another one of that name."""
    if _CLASSES.setdefault(name, declared) is not declared:
        raise ValueError(f"{name} is declared twice: by {_CLASSES[name].__module__} and {declared.__module__}")


def declared() -> Mapping[str, type[Op]]:
    """The classes of all ops that are declared by now, by name."""
    return dict(_CLASSES)


@cache
def dialect(name: str) -> Dialect | None:
    """A dialect by name; None if nobody declares it."""
    families = DIALECTS.get(name)
    if families is not None:
        return Dialect(name, PACKAGES[name], {family: ops.split() for family, ops in families.items()})
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP, name=name):
        loaded: Dialect = entry.load()
        return loaded
    return None


def op_class(name: str) -> Any:
    """The class that declares an op called `tosa.add`; None if nobody declares it."""
    declared = _CLASSES.get(name)
    if declared is not None:
        return declared
    prefix, _, short = name.partition(".")
    known = dialect(prefix)
    return None if known is None else known.op_class(short)


def family(name: str) -> str | None:
    """The family of an op: the name of the module that declares it."""
    prefix, _, short = name.partition(".")
    known = dialect(prefix)
    return None if known is None else known.family_of.get(short)


def dialects() -> tuple[str, ...]:
    """The names of tflq's own dialects."""
    return tuple(DIALECTS)


def op_names(name: str) -> frozenset[str]:
    """The names of all ops of a dialect; none if nobody declares it."""
    known = dialect(name)
    return frozenset() if known is None else known.op_names


NO_DATA: Final = np.zeros(0, np.uint8)
"""The array of a buffer without data: a file tells it from one whose data is empty."""
NO_DATA.flags.writeable = False


class Buffer:
    """Bytes that constants or metadata refer to; two tensors that share a buffer hold the same object.

    `data` is a read-only uint8 array, mostly a view into the mapped file. `external` is what the file says of data
    it keeps outside itself, if it does.
    """

    __slots__ = ("_facts", "data", "external")

    def __init__(self, data: np.ndarray, external: Mapping[str, Any] | None = None) -> None:
        self.data = data
        self.external = external
        self._facts: dict[Hashable, Any] | None = None

    @classmethod
    def of(cls, array: np.ndarray, storage: ScalarType | None = None) -> Buffer:
        """A buffer of an array's bytes, C order; not copied if the array is contiguous. Elements are packed if their
        type, `storage`, has fewer than 8 bits."""
        if storage is not None and storage.bits < 8:
            from tflq.numerics.signless import packed

            return cls(packed(array, storage.bits))
        return cls(np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def once(self, key: Hashable, compute: Callable[[], Fact]) -> Fact:
        """A fact of the bytes that several passes need, computed once; `key` names it and the type as which they
        are read."""
        if self._facts is None:
            self._facts = {}
        if key not in self._facts:
            self._facts[key] = compute()
        return cast("Fact", self._facts[key])

    def __repr__(self) -> str:
        return f"<Buffer of {self.data.size} bytes>"


class Location:
    """Where an op comes from: the path into the source model that every message shows."""

    __slots__ = ("file", "function", "opcode", "operator", "tensor")

    def __init__(self, file: str, function: int, operator: int, opcode: str, tensor: str) -> None:
        self.file: Final = file
        self.function: Final = function
        self.operator: Final = operator
        self.opcode: Final = opcode
        self.tensor: Final = tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (self.file, self.function, self.operator, self.opcode, self.tensor) == (
            other.file,
            other.function,
            other.operator,
            other.opcode,
            other.tensor,
        )

    def __hash__(self) -> int:
        return hash((self.file, self.function, self.operator, self.opcode, self.tensor))

    @property
    def place(self) -> str:
        """Subgraph, operator and tensor."""
        place = f"subgraph {self.function}, operator {self.operator} ({self.opcode})"
        return f"{place}, tensor '{self.tensor}'" if self.tensor else place

    def __str__(self) -> str:
        return f"{self.file}: {self.place}" if self.file else self.place


NO_INFO: Mapping[str, Any] = {}


class Value:
    """One SSA value: a function's argument, an op's result, or a constant (`buffer` set).

    `role` is what a value without a name is to the operator of the source model that it is a part of.
    """

    __slots__ = ("_array", "buffer", "info", "name", "producer", "role", "type")

    def __init__(
        self,
        type: TensorType,
        name: str = "",
        *,
        buffer: Buffer | None = None,
        info: Mapping[str, Any] = NO_INFO,
        producer: Op | None = None,
    ) -> None:
        self.type = type
        self.name = name
        self.buffer = buffer
        self.info = info
        self.producer = producer
        self.role = ""
        self._array: np.ndarray | None = None

    @property
    def is_constant(self) -> bool:
        """Whether its elements are known now: it has data, or has no elements and nothing produces it."""
        return self.buffer is not None and self.producer is None and (self.buffer.data.size > 0 or 0 in self.type.dims)

    @property
    def array(self) -> np.ndarray:
        """A constant's elements, of `type.storage.dtype` in `type.shape`: a view of its buffer, int4 and int2 unpacked,
        sparse ones spread.

        TypeError if it is not a constant or its type has no numpy form.
        """
        if self._array is None:
            if not self.is_constant or self.buffer is None or self.type.shape is None:
                raise TypeError(f"'{self.name}' is not a constant")
            storage, shape = self.type.storage, self.type.sizes
            dtype = storage.dtype
            data, sparsity = self.buffer.data, self.info.get("sparsity")
            stored = shape if sparsity is None else (data.size * 8 // storage.bits,)
            if storage.bits < 8:
                from tflq.numerics.signless import unpacked

                array = unpacked(data, storage.bits, stored, signed=storage.signed)
            else:
                array = data.view(dtype).reshape(stored)
            if sparsity is not None:
                from tflq.numerics.signless import densified

                array = densified(array, shape, sparsity)
            self._array = array
        return self._array

    @property
    def label(self) -> str:
        """The name of the value in messages."""
        if self.name or self.producer is None:
            return f"tensor '{self.name}'"
        return f"a result of {self.producer.name}"

    def __repr__(self) -> str:
        return f"<Value '{self.name}' {self.type}>"


def constant(array: np.ndarray, element: ScalarType | None = None, name: str = "") -> Value:
    """A constant of an array; `element` only where the dtype does not say it (packed types)."""
    scalar = element or _SCALAR_OF[array.dtype]
    value = Value(TensorType(array.shape, scalar), name, buffer=Buffer.of(array, scalar))
    value._array = array
    return value


_SCALAR_OF: Final = {t.dtype: t for t in SCALARS.values() if t.numpy and t.bits >= 8}
"""The element types of plain arrays."""


class Op:
    """An operation. `attributes` are its options, `info` what else a file says of the operator.

    An op with a declared name is of the class that declares it (`tflq.dialects`); nothing is known of others.

    An operand is `None` where an optional one is left out. `intermediates` are TFLite's scratch tensors. `regions` hold
    the ops inside of it, which may use what is defined before it.
    """

    __slots__ = (
        *("attributes", "info", "intermediates", "location", "name", "operands", "regions", "results"),
        *("__dict__", "__weakref__"),  # so that the classes of ops have its layout without saying `__slots__`
    )

    constraints: ClassVar[tuple[Callable[[Any], str | None], ...]] = ()
    """Each answers why an op of the class is invalid, in any form, or None. It relies on those before it."""

    module_constraints: ClassVar[tuple[Callable[[Any, Any, str], str | None], ...]] = ()
    """Constraints where the answer depends on the module, or on the op around it, whose name comes last ("" for
    an op of a function)."""

    def __init__(
        self,
        name: str,
        operands: list[Value | None],
        results: list[Value],
        attributes: dict[str, Any] | None = None,
        location: Location | None = None,
        *,
        info: Mapping[str, Any] = NO_INFO,
        intermediates: list[Value | None] | None = None,
        regions: Sequence[Region] = (),
    ) -> None:
        if self.__class__ is Op:
            declared = op_class(name)
            if declared is None:
                self.name = name
            else:
                self.__class__ = declared
        elif name != self.name:
            raise ValueError(f"{name} is not declared by {type(self).__name__}")
        self.operands = operands
        self.results = results
        self.attributes: dict[str, Any] = {} if attributes is None else attributes
        self.location = location
        self.info = info
        self.intermediates: list[Value | None] = [] if intermediates is None else intermediates
        self.regions = regions
        for result in results:
            result.producer = self

    def custom_text(self, _name: Callable[[Value | None], str]) -> str | None:
        """The text between the results of an op and its types, if that is not the generic form; `_name`: the name
        of a value in the text."""
        return None

    def normalize(self) -> None:
        """Spells attributes as the custom form reads them, where the op is printed in it."""

    @classmethod
    def matches(cls, kind: type) -> bool:
        """Whether ops of the class are of a class, or have a trait."""
        return issubclass(cls, kind)

    @property
    def short_name(self) -> str:
        """Its name without the dialect: `conv_2d`."""
        return self.name.partition(".")[2]

    @property
    def result(self) -> Value:
        """Its first result."""
        return self.results[0]

    def copy_with(
        self,
        operands: list[Value | None] | None = None,
        results: list[Value] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Op:
        """A copy of the op, with other operands, results or info where there are some."""
        return Op(
            self.name,
            self.operands if operands is None else operands,
            self.results if results is None else results,
            self.attributes,
            self.location,
            info=self.info if info is None else info,
            intermediates=self.intermediates,
        )

    def operand(self, index: int) -> Value:
        """An operand that must be there. IndexError or ValueError if it is not."""
        value = self.operands[index]
        if value is None:
            raise ValueError(f"{self.name} has no operand {index}")
        return value

    def optional(self, index: int) -> Value | None:
        """An operand that may be left out, by −1 or by a shorter list."""
        return self.operands[index] if index < len(self.operands) else None

    @property
    def present_operands(self) -> list[Value]:
        """The operands that are there."""
        return [v for v in self.operands if v is not None]

    @property
    def tensors(self) -> list[Value]:
        """Operands that are there, then results."""
        return [v for v in (*self.operands, *self.results) if v is not None]

    def __repr__(self) -> str:
        text: str = importlib.import_module(_PRINTER).print_op(self)
        return text


class Block:
    """Ops in order, the last of them a terminator (`linalg.yield`, `stablehlo.return` ...), and the values they start
    with."""

    def __init__(self, arguments: list[Value], ops: list[Op]) -> None:
        self.arguments = arguments
        self.ops = ops


class Region:
    """The content of an op: blocks, of which the first is run first."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks

    @property
    def block(self) -> Block:
        """The only block. ValueError if there is another number of them."""
        (block,) = self.blocks
        return block
