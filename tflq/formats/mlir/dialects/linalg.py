"""MLIR's `linalg`, as far as it is a loop over elements, which runs a body for each; and `func`, whose ops run
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.dialects.constraints import INDEX, scalars
from tflq.dialects.declare import INT, Kind, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.traits import Impure
from tflq.ir.attributes import AffineMap, Opaque
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.text.lexer import Symbol
from tflq.ir.types import BareType, FunctionType, TensorType
from tflq.ir.verifier import constraint

# A body that is computed at every point of an iteration space: maps say which elements of the operands it takes
# there, and which elements of the outs it yields.
#
# The space has a dim for each iterator. Along "parallel" ones the points do not depend on each other; along
# "reduction" ones the body takes what it yielded at the point before.


@constraint(
    "'operandSegmentSizes' must say how many operands are inputs and how many are outs, of which there is one for "
    "each result, of its type"
)
def _operands(op: Any) -> bool:
    sizes = op.segments
    outs = op.outs if sizes is not None and sum(sizes) == len(op.operands) else None
    return outs is not None and [v.type for v in outs] == [v.type for v in op.results]


@constraint('\'iterator_types\' must be a list of "parallel", "reduction" and "window"')
def _iterated(op: Generic) -> bool:
    return op.iterators is not None


@constraint(
    "'indexing_maps' must be affine maps of the iterators, one for each operand, with a result for each of its dims"
)
def _mapped(op: Generic) -> bool:
    maps: Any = op.indexing_maps
    iterators = op.iterators or ()
    if not isinstance(maps, (list, tuple)) or len(maps) != len(op.operands):
        return False
    for where, value in zip(maps, op.values, strict=True):
        if not isinstance(where, AffineMap) or len(where.dims) != len(iterators):
            return False
        if value.type.rank is not None and len(where.results) != value.type.rank:
            return False
    return True


@constraint("what two operands say of the size of a dim must be the same")
def _sized(op: Generic) -> bool:
    known: dict[str, int] = {}
    for where, value in zip(op.indexing_maps, op.values, strict=True):
        for name, size in zip(where.results, value.type.dims, strict=False):
            if name in where.dims and size is not None:
                place = f"d{where.dims.index(name)}"
                if known.setdefault(place, size) != size:
                    return False
    return True


@constraint(
    "there must be one block, whose arguments are of the operands' element types, that ends with linalg.yield of "
    "values of the outs' element types"
)
def _generic_body(op: Generic) -> bool:
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].block
    argument_types = [BareType.of(v.type.element) for v in op.values]
    yielded = [BareType.of(v.type.element) for v in op.results]
    if (
        [v.type for v in block.arguments] != argument_types
        or not block.ops
        or not isinstance(block.ops[-1], LinalgYield)
    ):
        return False
    return [v.type for v in block.ops[-1].values] == yielded


class Generic(Operator, name="linalg.generic"):
    """results = the outs, of which the elements that the maps say are what the body yields at each point."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    indexing_maps: list[AffineMap] = attribute()
    iterator_types: list[Any] = attribute()
    segment_sizes: np.ndarray = attribute(key="operandSegmentSizes")
    constraints = (declared, _operands, _iterated, _mapped, _sized, _generic_body)

    @property
    def segments(self) -> tuple[int, int] | None:
        """Number of inputs and of outs; None if the attribute is missing or malformed."""
        sizes = np.asarray(self.attributes.get("operandSegmentSizes"))
        return (int(sizes[0]), int(sizes[1])) if sizes.shape == (2,) and sizes.dtype.kind == "i" else None

    @property
    def inputs(self) -> Sequence[Value]:
        """The operands that are only read."""
        return self.values[: (self.segments or (0, 0))[0]]

    @property
    def outs(self) -> Sequence[Value]:
        """The operands that the results begin as."""
        return self.values[(self.segments or (0, 0))[0] :]

    @property
    def iterators(self) -> tuple[str, ...] | None:
        """The kinds of the iterators, in order; None if one is of none."""
        attribute_list = self.attributes.get("iterator_types")
        if not isinstance(attribute_list, (list, tuple)):
            return None
        words = tuple(_word(item) for item in attribute_list)
        return words if {"parallel", "reduction", "window"}.issuperset(words) else None


def _word(item: Any) -> str:
    """`parallel` of "parallel" or of #linalg.iterator_type<parallel>."""
    return item.text.partition("<")[2][:-1] if isinstance(item, Opaque) else str(item)


class Index(Operator, name="linalg.index"):
    """Where the body is computed: the point's place along the iterator `dim`."""

    result: Value = result_(INDEX)
    dim: int = attribute(INT)
    constraints = (declared, scalars("result"))


class LinalgYield(Operator, name="linalg.yield"):
    """Ends the body of `linalg.generic`."""

    values: list[Value] = operand(variadic=True)
    traits = (Impure(),)
    constraints = (declared, scalars("values"))


# The `func` dialect: calls of functions, and functions as values. Functions themselves are not ops here.


# Calls of the module's functions: they name one, and are of its type.


_SYMBOL = Kind("function", lambda value: isinstance(value, Symbol))


def _matches(name: object, call_type: FunctionType, module: Module) -> str | None:
    """Why the module has no function of this name and type."""
    if not isinstance(name, Symbol):
        return "it must name a function: @name"
    function = next((f for f in module.functions if f.name == name), None)
    if function is None:
        return f"there is no function @{name}"
    kind = FunctionType(_types(function.inputs), _types(function.outputs))
    return None if call_type == kind else f"@{name} is used as {_text(call_type)}, but is {_text(kind)}"


def _types(values: Sequence[Value | None]) -> tuple[TensorType, ...]:
    return tuple(_MISSING if v is None else v.type for v in values)


def _text(kind: FunctionType) -> str:
    from tflq.ir.text.print_types import type_text

    return type_text(kind)


_MISSING = BareType.of(FunctionType((), ()))


def _calls_one(op: Call, module: Module, _: str) -> str | None:
    return _matches(op.attributes.get("callee"), FunctionType(_types(op.operands), _types(op.results)), module)


class Call(Operator, name="func.call"):
    """outputs = what the function `callee` makes of the inputs"""

    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    callee: Symbol = attribute(_SYMBOL)
    traits = (Impure(),)
    module_constraints = (_calls_one,)


def _calls_operand(op: CallIndirect) -> str | None:
    if not op.operands or op.operands[0] is None or not isinstance(op.operands[0].type.element, FunctionType):
        return "its first operand must be a function"
    kind = op.operands[0].type.element
    call_type = FunctionType(_types(op.operands[1:]), _types(op.results))
    return None if call_type == kind else f"it is {_text(call_type)}, but the function is {_text(kind)}"


class CallIndirect(Operator, name="func.call_indirect"):
    """outputs = what the function that is a value makes of the inputs"""

    callee: Value = operand()
    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    traits = (Impure(),)
    constraints = (_calls_operand,)


def _names_one(op: Constant, module: Module, _: str) -> str | None:
    if op.operands or len(op.results) != 1:
        return "it must have no operands and one result"
    kind = op.result.type.element
    if not isinstance(kind, FunctionType):
        return "its result must be of a function type"
    return _matches(op.attributes.get("value"), kind, module)


class Constant(Operator, name="func.constant"):
    """The function `value`, as a value."""

    result: Value = result_()
    value: Symbol = attribute(_SYMBOL)
    module_constraints = (_names_one,)
