"""Custom forms of arith, math and tensor that `tflq.ir.parse_custom` has no pieces for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.ir.attributes import TypedArray
from tflq.ir.core import Region
from tflq.ir.parse_ops import Form, Types
from tflq.ir.types import BareType, TensorType, i1, i32, i64, index

__all__ = ["READERS"]

_GIVEN: Final = -(1 << 63)
"""What stands in a list of numbers for one that an operand gives."""
_INDEX: Final = BareType.of(index)

Parser = Any


def _question(p: Parser, form: Form) -> None:
    """`%x : type`; the result is of i1."""
    form.operands = p.operand_names()
    p.flags(form)
    p.signature(form)
    form.types = [kind and kind.with_element(i1) for kind in form.types]


def _of_two_types(p: Parser, form: Form) -> None:
    """`%x, %n : type of x and result, type of n`"""
    form.operands = p.operand_names()
    p.flags(form)
    p.signature(form)
    form.types = form.given[:1]


def _sum_and_overflow(p: Parser, form: Form) -> None:
    """`%x, %y : type, type of the overflow`"""
    form.operands = p.operand_names()
    p.signature(form)
    form.given, form.types = [form.given[0]] * 2, form.given


def _rank(p: Parser, form: Form) -> None:
    """`%x : type`"""
    form.operands = p.operand_names()
    p.signature(form)
    form.types = [_INDEX]


def _expanded(p: Parser, form: Form) -> None:
    """`%x [[0], [1, 2]] output_shape [%n, 2, 3] : type into type`"""
    form.operands = [p.operand_name()]
    form.attributes["reassociation"] = p.attribute()
    if p.accept_word("output_shape"):
        form.attributes["static_output_shape"], names = _numbers(p)
        form.operands += names
    kind = p.one_type(form)
    form.given = [kind, *[_INDEX] * (len(form.operands) - 1)]
    form.types = [_into(p)]


def _slice(p: Parser, form: Form) -> None:
    """`%x[offsets][sizes][strides] : type to type`; `%x into %t[...][...][...] : type into type`"""
    form.operands = [p.operand_name()]
    inserted = form.name == "tensor.insert_slice"
    if inserted:
        p.expect_word("into")
        form.operands.append(p.operand_name())
    counts = [1] * len(form.operands)
    for kind in ("offsets", "sizes", "strides"):
        form.attributes[f"static_{kind}"], names = _numbers(p)
        form.operands += names
        counts.append(len(names))
    form.attributes["operandSegmentSizes"] = TypedArray.of(np.array(counts, np.int32), i32)
    source = p.one_type(form)
    p.expect_word("into" if inserted else "to")
    target = p.value_type()
    tensors: Types = [source, target] if inserted else [source]
    form.given = [*tensors, *[_INDEX] * (len(form.operands) - len(tensors))]
    form.types = [target]


def _pad(p: Parser, form: Form) -> None:
    """`%x nofold? low[1, %n] high[0, 2] {region} : type to type`"""
    form.operands = [p.operand_name()]
    if p.accept_word("nofold"):
        form.attributes["nofold"] = None
    counts = [1]
    for side in ("low", "high"):
        p.expect_word(side)
        form.attributes[f"static_{side}"], names = _numbers(p)
        form.operands += names
        counts.append(len(names))
    form.attributes["operandSegmentSizes"] = TypedArray.of(np.array(counts, np.int32), i32)
    region: Region = p.region()
    form.regions = [region]
    kind = p.one_type(form)
    p.expect_word("to")
    form.given = [kind, *[_INDEX] * (len(form.operands) - 1)]
    form.types = [p.value_type()]


def _numbers(p: Parser) -> tuple[TypedArray, list[str]]:
    """`[1, %n, 2]`: the numbers, and the names of those that operands give."""
    numbers: list[int] = []
    names: list[str] = []
    p.expect("[")
    for _ in p.items("]"):
        name = p.ssa_or_none()
        if name is None:
            numbers.append(p.integer())
        else:
            names.append(name)
            numbers.append(_GIVEN)
    return TypedArray.of(np.array(numbers, np.int64), i64), names


def _into(p: Parser) -> TensorType:
    p.expect_word("into")
    kind: TensorType = p.value_type()
    return kind


READERS: Final[dict[str, Callable[[Any, Form], None]]] = {
    **{f"math.{name}": _question for name in ("isfinite", "isinf", "isnan", "isnormal")},
    "math.fpowi": _of_two_types,
    "arith.addui_extended": _sum_and_overflow,
    "tensor.rank": _rank,
    "tensor.expand_shape": _expanded,
    "tensor.extract_slice": _slice,
    "tensor.insert_slice": _slice,
    "tensor.pad": _pad,
}
