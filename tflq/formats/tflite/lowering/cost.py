"""The cost of ops of the integer form as builtins, and whether a table in their place pays.

The figures are in `rules/costs.json`, nanoseconds per element, measured by `benchmarks/kernel_costs.py`. What builtins
cost there, on an AMD EPYC (the reference kernels are within 20% of these; MAXIMUM and MINIMUM of 8 bits take 1.9):

    CAST of 8 and 32 bits .1, to int64 .2, float32 to int32 .3      BITCAST .03 to .3, RESHAPE .03 to .1
    ADD, SUB, MUL int32 .15 scalar, .2 per channel                   the same of int64 .4 to .5, MUL per channel .75
    SUB or ADD with RELU as those without                            MAXIMUM, MINIMUM int32 1.6 to 1.7, int8 .05 to .1
    SIGN .15                                                         ABS 2.5, RIGHT_SHIFT 1.6 to 1.75
    DIV int32 1.9                                                    FLOOR_DIV 6.5
    GATHER from a table 3.4                                          comparisons and SELECT_V2 1.7
    high word of int64: BITCAST, RESHAPE, TRANSPOSE, GATHER of a row 1.0 to 1.4; GATHER or STRIDED_SLICE of the
        last dim 3.7 and 12
    RESCALE int32 to int8: division 2.9 to 3.6; int64 and its high word 4 to 5.5; RIGHT_SHIFT and MAXIMUM 9
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Final, TypeAlias, TypedDict

from tflq.base.documents import Check, read_json
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, resource
from tflq.dialects.quant import Table2D
from tflq.dialects.tosa.elementwise import ArithmeticRightShift, Mul
from tflq.dialects.tosa.movement import Rescale, Table
from tflq.ir.ops import Op, op_class

_Figure: TypeAlias = Annotated[float, Check("a number of nanoseconds", lambda figure: figure > 0)]


class _Rescales(TypedDict):
    to_8_bits: _Figure
    wide: _Figure
    moved: _Figure


class _Document(TypedDict):
    elementwise: Mapping[str, _Figure]
    rescale: _Rescales


class Costs:
    """Nanoseconds per element: of ops by class, and of `tosa.rescale` to 8 bits by scales below 1, by scales of 1
    (`moved`), and otherwise (`wide`)."""

    def __init__(self, elementwise: Mapping[type[Op], float], to_8_bits: float, wide: float, moved: float) -> None:
        self.elementwise: Final = elementwise
        self.to_8_bits: Final = to_8_bits
        self.wide: Final = wide
        self.moved: Final = moved


@cache
def costs() -> Costs:
    """The figures that conversions go by."""
    return load_costs(resource("rules/costs.json"))


def load_costs(path: FilePath) -> Costs:
    """The figures of a file like `rules/costs.json`.

    OptionError for an op that is not known, a figure that is missing or not a positive number.
    FileError if there is no such file.
    """
    document: _Document = read_json(path, _Document, "a file of costs")
    elementwise = {}
    for name, figure in document["elementwise"].items():
        kind = op_class(name)
        if kind is None:
            raise OptionError(Reason(f"elementwise: '{name}' is not an op", str(path)))
        elementwise[kind] = figure
    for kind in (Table, Table2D):
        if kind not in elementwise:
            raise OptionError(Reason(f"elementwise: there is no figure for '{kind.op_name}'", str(path)))
    return Costs(elementwise, **document["rescale"])


def table_pays(ops: Sequence[Op], sources: int) -> float:
    """Nanoseconds per element by which a table of one or two sources costs less than the ops it replaces."""
    return arithmetic(ops) - costs().elementwise[Table if sources == 1 else Table2D]


def arithmetic(ops: Iterable[Op]) -> float:
    """Nanoseconds per element of elementwise ops, each lowered by itself."""
    known = costs()
    return sum(_of(op, known) for op in ops)


def _of(op: Op, known: Costs) -> float:
    if isinstance(op, Rescale):
        return _rescale(op, known)
    if isinstance(op, Mul) and op.shift:
        return known.wide
    if isinstance(op, ArithmeticRightShift) and op.round:
        return 2 * known.elementwise.get(ArithmeticRightShift, known.wide)
    return known.elementwise.get(type(op), known.wide)


def _rescale(op: Rescale, known: Costs) -> float:
    scale = op.multiplier / 2.0**op.shift
    if (scale == 1).all():
        return known.moved
    return known.to_8_bits if op.result.type.storage.bits == 8 and (scale < 1).all() else known.wide
