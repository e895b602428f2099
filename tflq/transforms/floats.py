"""Float operators in a form that can be lowered, as tables of integers, or between casts.

`row-updates` and `spectra`: rows that recurrent layers write by SLICE and CONCATENATION become DYNAMIC_UPDATE_SLICE,
parts of spectra become products with the Fourier matrix.

`tabulate-floats`, for targets without floats: float functions between casts of integers become tables of integers.

    quant.dcast, functions of one float, quant.qcast        of 8 or 16 bits

The table has what the evaluators of these ops, which round as the kernels do, give for each stored number. Functions
that libraries round each in their own way (EXP, TANH) have no evaluator: an operator with one of them stays as it is.

`QuantCasts` are the casts of `quant` for the reusable fallback (`builder.through_floats`): `quant.dcast` of the
operands, the float pattern, `quant.qcast` of the results. `canonicalize` and `cse` remove the casts between neighbours.
The pass `dequantize-fallback` does so with every op; the float pattern is the op itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal

import numpy as np

from tflq.analysis.cast_cost import RealCast
from tflq.analysis.evaluate.registry import evaluate_op, evaluator
from tflq.dialects.builder import Builder, Emitter, Pattern, expressed, through_floats
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl.arithmetic import RFFT2D, Add, ComplexAbs, Imag, Mul, Real, Sqrt
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.indexing import DynamicUpdateSlice
from tflq.dialects.tfl.movement import Concatenation, Reshape, Slice
from tflq.dialects.traits import Calls, Elementwise, Impure, StaysQuantized
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.rewriting import replace_result, rewrite_ops
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8, i16, ui8
from tflq.transforms.canonicalize import DeadCodeElimination
from tflq.transforms.pass_manager import Pass, PassResult

_NONE: Final = {"fused_activation_function": "NONE"}
_LINEAR: Final = {
    **_NONE,
    "weights_format": "DEFAULT",
    "keep_num_dims": True,
    "asymmetric_quantize_inputs": False,
    "quantized_bias_type": "FLOAT32",
}


def _replaced(module: Module, replacement: Callable[[Op], Sequence[Op] | None]) -> PassResult:
    """Replaces ops by others, where a replacement gives any, and drops the ops that nothing needs any more."""
    result = PassResult.of(module, lambda function: rewrite_ops(function, replacement))
    if result.modified:
        DeadCodeElimination().run(module)
    return result


class RowUpdates(Pass):
    """Puts DYNAMIC_UPDATE_SLICE for rows written by slices and a concatenation, and drops the slices.

        concatenation(slice(x, 0, [i, -1, ...]), row, slice(x, [i + 1, 0, ...], -1))
        → dynamic_update_slice(x, row, [i, 0, ...])

    TensorFlow's converter writes the elements of a TensorList so, in the loops of recurrent layers. The sizes of both
    slices depend on i, which no static shape can say; those of the operator that replaces them are known. Where i is
    not a row of x the slices fail, so there is nothing to preserve.
    """

    name: ClassVar[str] = "row-updates"

    def run(self, module: Module) -> PassResult:
        return _replaced(module, _row_update)


def _row_update(op: Op) -> list[Op] | None:
    """The operators that write the row, if an op does."""
    written = _written(op)
    if written is None:
        return None
    x, row, index, zeros = written
    start = Value(TensorType((1 + zeros.array.size,), index.type.element))
    return [
        Op(Concatenation.op_name, [index, zeros], [start], {"axis": 0, **_NONE}, op.location),
        Op(DynamicUpdateSlice.op_name, [x, row, start], op.results, {}, op.location),
    ]


def _written(op: Op) -> tuple[Value, Value, Value, Value] | None:
    """The tensor that is written to, the row, its index and the starts in other dims, if an op writes a row."""
    if not isinstance(op, Concatenation) or len(op.values) != 3 or op.fused_activation_function != "NONE":
        return None
    before, row, after = (v for v in op.tensors if v is not op.output)
    shape = row.type.shape
    if not shape or shape[0] != 1 or op.axis not in (0, -len(shape)):
        return None
    first, last = before.producer, after.producer
    if not isinstance(first, Slice) or not isinstance(last, Slice) or first.input is not last.input:
        return None
    x, width = first.input, last.size
    if len({v.type.element for v in (x, before, row, after, op.output)}) > 1:
        return None
    size, start = _head(first.size), _head(last.begin)
    if size is None or start is None or not _holds_only(first.begin, 0) or not _holds_only(start[1], 0):
        return None
    if not width.is_constant or width.array.flat[0] != -1:
        return None
    rests = np.ravel(size[1].array), np.ravel(width.array)[1:]
    if not all(_whole(rest, x.type.shape) for rest in rests):
        return None
    return (x, row, size[0], start[1]) if _follows(start[0], size[0]) else None


def _head(value: Value) -> tuple[Value, Value] | None:
    """A computed scalar and the constants after it, if a vector is a concatenation of these."""
    joined = value.producer
    if not isinstance(joined, Concatenation) or len(joined.values) != 2:
        return None
    head, rest = joined.values
    if head is None or rest is None or not rest.is_constant:
        return None
    return (head, rest) if head.type.shape == (1,) else None


def _holds_only(value: Value, number: int) -> bool:
    return value.is_constant and bool((value.array == number).all())


def _whole(sizes: np.ndarray, shape: tuple[int | None, ...] | None) -> bool:
    """Whether sizes are those of all dims but the first: -1, or the dims themselves."""
    dims = (shape or ())[1:]
    return len(dims) == sizes.size and all(s in (-1, d) for s, d in zip(sizes.tolist(), dims, strict=True))


def _follows(value: Value, other: Value) -> bool:
    """Whether value = other + 1, both reshaped or not."""
    added = _scalar(value).producer
    if not isinstance(added, Add) or added.fused_activation_function != "NONE":
        return False
    pairs = (added.lhs, added.rhs), (added.rhs, added.lhs)
    return any(_scalar(a) is _scalar(other) and _holds_only(b, 1) for a, b in pairs)


def _scalar(value: Value) -> Value:
    return value.producer.input if isinstance(value.producer, Reshape) else value


class Spectra(Pass):
    """Puts float operators for the parts of spectra that are read, and drops the spectra.

    RFFT2D of rows, then COMPLEX_ABS, REAL or IMAG, are products with the Fourier matrix:

        re = x C^T,  C[k, n] = cos(2 pi k n / N);   im = x S^T,  S[k, n] = -sin(2 pi k n / N)
        |z| = sqrt(re re + im im)

    TOSA has no complex numbers, and its RFFT2D is an extension. Rows are read up to the length of the transform, and
    end in zeros where they are shorter. RESHAPE between the two operators is applied to the result of the latter.
    Source: kernels/rfft2d.cc, complex_support.cc.
    """

    name: ClassVar[str] = "spectra"

    def run(self, module: Module) -> PassResult:
        return _replaced(module, _part)


def fourier(length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and negative sines, [length // 2 + 1, size]: zeros from `length` on."""
    steps = np.outer(np.arange(length // 2 + 1), np.arange(size)) % length
    angles = steps * (2 * np.pi / length)
    read = np.arange(size) < length
    return (np.cos(angles) * read).astype(np.float32), (-np.sin(angles) * read).astype(np.float32)


def _part(op: Op) -> list[Op] | None:
    """The operators that compute the part of a spectrum that an op reads; None if there is no spectrum of rows."""
    if not isinstance(op, (ComplexAbs, Imag, Real)):
        return None
    source, reshapes = op.input.producer, list[Reshape]()
    while isinstance(source, Reshape):
        reshapes.append(source)
        source = source.input.producer
    if not isinstance(source, RFFT2D):
        return None
    x = source.input
    lengths = source.length.array.reshape(-1).tolist() if source.length.is_constant else []
    shape = x.type.shape
    if not shape or x.type.element != f32 or len(lengths) != 2 or lengths[0] != 1:
        return None
    if len(shape) < 2 or shape[-2] != 1 or shape[-1] is None or lengths[1] < 1:
        return None
    cosines, sines = fourier(lengths[1], shape[-1])
    out = (*shape[:-1], len(cosines))
    b = Emitter()
    b.location = op.location

    def product(matrix: np.ndarray) -> Value:
        return b.emit(FullyConnected, [x, constant(matrix), None], TensorType(out, f32), **_LINEAR)

    if isinstance(op, ComplexAbs):
        parts = product(cosines), product(sines)
        squares = [b.emit(Mul, [part, part], part.type, **_NONE) for part in parts]
        value = b.emit(Sqrt, [b.emit(Add, squares, squares[0].type, **_NONE, pot_scale_int16=False)])
    else:
        value = product(cosines if isinstance(op, Real) else sines)
    for reshape in reversed(reshapes):
        type = reshape.output.type.with_element(f32)
        value = b.emit(Reshape, [value, *reshape.operands[1:]], type, **reshape.attributes)
    replace_result(value, op.output)
    return b.ops


_RESULTS: Final = {i8: (i8, i16), ui8: (ui8,), i16: (i16,)}
"""Entries of tables, by what they are looked up with."""


class TabulateFloats(Pass):
    """Puts tables in the place of float functions between casts of integers."""

    name: ClassVar[str] = "tabulate-floats"

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: rewrite_ops(function, _tabulated))


def _tabulated(op: Op) -> list[Op] | None:
    chain = _chain(op)
    if chain is None:
        return None
    b, source = Builder(), _operand(chain[0])
    b.location = op.location
    stored = b.emit(Scast, [source], source.type.with_element(source.type.storage))
    entries = b.table(stored, _entries(chain))
    replace_result(b.emit(Scast, [entries], op.result.type), op.result)
    return b.ops


def _chain(op: Op) -> list[Op] | None:
    """The casts and functions that end in `op`, in order; None if they are not a function of one number."""
    if not isinstance(op, Qcast):
        return None
    chain: list[Op] = [op]
    while not isinstance(chain[-1], Dcast):
        producer = _operand(chain[-1]).producer
        if producer is None or not (isinstance(producer, Dcast) or _is_function(producer)):
            return None
        chain.append(producer)
    source, result = _operand(chain[-1]).type, op.result.type
    fits = result.storage in _RESULTS.get(source.storage, ())
    return chain[::-1] if fits and all(isinstance(t.element, UniformQuantizedType) for t in (source, result)) else None


def _operand(op: Op) -> Value:
    (operand,) = op.operands
    assert operand is not None
    return operand


def _is_function(op: Op) -> bool:
    floats = [value is not None and value.type.storage.is_float for value in op.operands]
    return floats == [True] and trait_of(op, Elementwise) is not None and evaluator.get(type(op)) is not None


def _entries(chain: list[Op]) -> np.ndarray:
    """The result for each stored number, the least first."""
    storage = _operand(chain[0]).type.storage
    numbers = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)
    for op in chain:
        results = evaluate_op(op, [numbers])
        assert results is not None
        (numbers,) = results
    return numbers


class QuantCasts:
    """The casts of `quant`. `rounding` is stated on each `quant.qcast`; by default none is."""

    def __init__(self, b: Emitter, rounding: str | None = None) -> None:
        self.b: Final = b
        self.rounding: Final = rounding

    def real(self, value: Value) -> Value:
        return self.b.emit(Dcast, [value], expressed(value.type)) if value.type.quantized else value

    def stored(self, real: Value, result: Value) -> Value:
        if not result.type.quantized:
            return real
        attributes = {} if self.rounding is None else {"rounding": self.rounding}
        return self.b.emit(Qcast, [real], result.type, **attributes)


def is_on_quantized(op: Op) -> bool:
    """Whether an op computes on quantized tensors: not a cast, and without calls, effects and state."""
    dialect = op.name.partition(".")[0]
    if dialect in ("quant", "func") or op.regions or not op.results:
        return False
    if isinstance(op, Operator) and op.has(Calls, Impure, StaysQuantized):
        return False
    return any(v is not None and v.type.quantized for v in (*op.operands, *op.results))


class DequantizeFallback(Pass):
    """Puts casts around every op that computes on quantized tensors. Ops that call functions, keep a state or hold
    regions are left as they are."""

    name: ClassVar[str] = "dequantize-fallback"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: rewrite_ops(function, _in_floats))


def _in_floats(op: Op) -> list[Op] | None:
    if not is_on_quantized(op):
        return None
    b = Emitter()
    b.location = op.location
    for new, old in zip(through_floats(op, QuantCasts(b), _itself(op, b)), op.results, strict=True):
        _become(new, old)
    return b.ops


def _itself(op: Op, b: Emitter) -> Pattern:
    """The op on floats; of a cast between reals and quantized values, its operand."""

    def pattern(operands: Sequence[Value | None], types: Sequence[TensorType]) -> Sequence[Value]:
        if isinstance(op, RealCast) and operands[0] is not None and operands[0].type == types[0]:
            return [operands[0]]
        return b.op(op.name, operands, types, op.attributes, op.info).results

    return pattern


def _become(replaced: Value, original: Value) -> None:
    """The op that makes one value results in another instead."""
    producer = replaced.producer
    assert producer is not None
    if len(producer.results) == 1:
        replace_result(replaced, original)
        return
    producer.results = [original if value is replaced else value for value in producer.results]
    original.producer = producer
