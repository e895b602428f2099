"""The shape that an op infers is that of its result on the evaluator and on TOSA's reference model,
for random operands; where fewer dims are known it says less, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.one_op import CASES as ONE_OP
from support.raised import outputs_of
from support.running import reference

from tflq.dialects.builder import Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.inference import DECLARED_SHAPES, Misfit, broadcast
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl.convolution import Conv3D as TflConv3D
from tflq.dialects.tfl.recurrent import (
    LSTM,
    RNN,
    SVDF,
    BidirectionalSequenceLSTM,
    BidirectionalSequenceRNN,
    UnidirectionalSequenceLSTM,
    UnidirectionalSequenceRNN,
)
from tflq.dialects.tosa import movement as moving
from tflq.dialects.tosa.convolution import (
    AvgPool2D,
    Conv2D,
    Conv3D,
    DepthwiseConv2D,
    MatMul,
    MaxPool2D,
    TransposeConv2D,
)
from tflq.dialects.tosa.elementwise import Add, BitwiseNot, Clamp, Greater, Select
from tflq.dialects.tosa.movement import (
    ArgMax,
    CondIf,
    Gather,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Resize,
    Scatter,
    WhileLoop,
)
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, dialect
from tflq.ir.types import ScalarType, Shape, TensorType, f32, i1, i8, i32

Sizes = tuple[int, ...]
Drawn = tuple[list[Sizes], dict[str, Any]]


def _sizes(rng: np.random.Generator, rank: int = 0) -> Sizes:
    return tuple(rng.integers(1, 6, rank or rng.integers(1, 5)).tolist())


def _meeting(rng: np.random.Generator, count: int) -> Drawn:
    whole = _sizes(rng)
    return [tuple(d if rng.integers(3) else 1 for d in whole) for _ in range(count)], {}


def _axis(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"axis": int(rng.integers(len(shape)))}


def _concat(rng: np.random.Generator) -> Drawn:
    (shape,), attributes = _axis(rng)
    at = attributes["axis"]
    return [(*shape[:at], int(n), *shape[at + 1 :]) for n in rng.integers(1, 5, rng.integers(1, 4))], attributes


def _pad(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"padding": tuple(rng.integers(0, 3, 2 * len(shape)).tolist()), "pad_const": 0}


def _slice(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    start = tuple(int(rng.integers(d)) for d in shape)
    return [shape], {
        "start": start,
        "size": tuple(int(rng.integers(d - s)) + 1 for d, s in zip(shape, start, strict=True)),
    }


def _tile(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"multiples": _sizes(rng, len(shape))}


def _transpose(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"perms": tuple(rng.permutation(len(shape)).tolist())}


def _spatial(rng: np.random.Generator, count: int, dilated: bool = True) -> tuple[Sizes, Sizes, dict[str, Any]]:
    """Sizes, windows, and attributes by which the windows use up the sizes, as TOSA demands."""
    window, stride = _sizes(rng, count), tuple(rng.integers(1, 4, count).tolist())
    dilation = tuple(rng.integers(1, 4, count).tolist()) if dilated else (1,) * count
    pad = tuple(int(rng.integers(window[i // 2])) for i in range(2 * count))
    sizes = []
    for i, (k, s, d) in enumerate(zip(window, stride, dilation, strict=True)):
        least = max((k - 1) * d + 1 - sum(pad[2 * i : 2 * i + 2]), 1)
        steps = -(-(least + sum(pad[2 * i : 2 * i + 2]) - (k - 1) * d - 1) // s) + int(rng.integers(3))
        sizes.append(steps * s + (k - 1) * d + 1 - sum(pad[2 * i : 2 * i + 2]))
    return tuple(sizes), window, {"pad": pad, "stride": stride, **({"dilation": dilation} if dilated else {})}


ZERO = {"input_zp": 0, "weight_zp": 0}


def _conv(count: int) -> Callable[[np.random.Generator], Drawn]:
    def draw(rng: np.random.Generator) -> Drawn:
        sizes, window, attributes = _spatial(rng, count)
        n, c, o = _sizes(rng, 3)
        return [(n, *sizes, c), (o, *window, c), (o if rng.integers(2) else 1,)], attributes | ZERO

    return draw


def _depthwise(rng: np.random.Generator) -> Drawn:
    sizes, window, attributes = _spatial(rng, 2)
    n, c, m = _sizes(rng, 3)
    return [(n, *sizes, c), (*window, c, m), (c * m,)], attributes | ZERO


def _transposed(rng: np.random.Generator) -> Drawn:
    n, h, w, c, o = _sizes(rng, 5)
    window = tuple(rng.integers(2, 5, 2).tolist())
    pad = tuple(int(rng.integers(-(window[i // 2] // 2), 3)) for i in range(4))
    attributes = {"out_pad": pad, "stride": tuple(rng.integers(1, 4, 2).tolist())}
    return [(n, h, w, c), (o, *window, c), (o,)], attributes | ZERO


def _pool(zero: dict[str, int]) -> Callable[[np.random.Generator], Drawn]:
    def draw(rng: np.random.Generator) -> Drawn:
        sizes, window, attributes = _spatial(rng, 2, dilated=False)
        n, c = _sizes(rng, 2)
        return [(n, *sizes, c)], attributes | {"kernel": window} | zero

    return draw


def _matmul(rng: np.random.Generator) -> Drawn:
    n, rows, inner, columns = _sizes(rng, 4)
    return [(n, rows, inner), (n, inner, columns)], {"a_zp": 0, "b_zp": 0}


def _gather(rng: np.random.Generator) -> Drawn:
    n, rows, count, channels = _sizes(rng, 4)
    return [(n, rows + 1, channels), (n, count)], {}


def _scatter(rng: np.random.Generator) -> Drawn:
    n, rows, channels = _sizes(rng, 3)
    return [(n, rows + 1, channels), (n, 1), (n, 1, channels)], {}


def _resize(rng: np.random.Generator) -> Drawn:
    """Scales n / 1, and borders that keep the last place inside."""
    n, h, w, c = _sizes(rng, 4)
    up = rng.integers(1, 4, 2).tolist()
    border = tuple(int(rng.integers(0, each)) for each in up)
    attributes = {"scale": (up[0], 1, up[1], 1), "offset": (0, 0), "border": border, "mode": "NEAREST_NEIGHBOR"}
    return [(n, h, w, c)], attributes


CASES: dict[type[Operator], tuple[Callable[[np.random.Generator], Drawn], Sequence[ScalarType], ScalarType]] = {
    Add: (lambda rng: _meeting(rng, 2), (i32,), i32),
    Greater: (lambda rng: _meeting(rng, 2), (i32,), i1),
    Select: (lambda rng: _meeting(rng, 3), (i1, i32), i32),
    BitwiseNot: (lambda rng: _meeting(rng, 1), (i32,), i32),
    Clamp: (lambda rng: ([_sizes(rng)], {"min_val": -1, "max_val": 1}), (i32,), i32),
    ArgMax: (_axis, (i32,), i32),
    ReduceAll: (_axis, (i1,), i1),
    ReduceAny: (_axis, (i1,), i1),
    ReduceMax: (_axis, (i32,), i32),
    ReduceMin: (_axis, (i32,), i32),
    ReduceSum: (_axis, (i32,), i32),
    Conv2D: (_conv(2), (i8, i8, i32), i32),
    Conv3D: (_conv(3), (i8, i8, i32), i32),
    DepthwiseConv2D: (_depthwise, (i8, i8, i32), i32),
    TransposeConv2D: (_transposed, (i8, i8, i32), i32),
    AvgPool2D: (_pool({"input_zp": 0, "output_zp": 0}), (i8,), i8),
    MaxPool2D: (_pool({}), (i8,), i8),
    MatMul: (_matmul, (i8,), i32),
    Gather: (_gather, (i8, i32), i8),
    Scatter: (_scatter, (i8, i32, i8), i8),
    Resize: (_resize, (i8,), i8),
    moving.Concat: (_concat, (i32,), i32),
    moving.Pad: (_pad, (i32,), i32),
    moving.Reverse: (_axis, (i32,), i32),
    moving.Slice: (_slice, (i32,), i32),
    moving.Tile: (_tile, (i32,), i32),
    moving.Transpose: (_transpose, (i32,), i32),
}
# What the reference model takes on random operands of these types, in a fixed order: workers must collect alike.
ON_MODEL = (
    Add,
    Select,
    ReduceMax,
    ReduceSum,
    Conv2D,
    Conv3D,
    DepthwiseConv2D,
    TransposeConv2D,
    AvgPool2D,
    MaxPool2D,
    MatMul,
    Gather,
    Scatter,
    Resize,
    moving.Concat,
    moving.Pad,
    moving.Slice,
    moving.Tile,
    moving.Transpose,
)


def _made(kind: type[Operator], shapes: Sequence[Shape], attributes: dict[str, Any]) -> tuple[Module, list[Value]]:
    _, storages, element = CASES[kind]
    e = Emitter()
    values = [Value(TensorType(s, storages[min(i, len(storages) - 1)]), f"x{i}") for i, s in enumerate(shapes)]
    result = e.emit(kind, values, element, **attributes)
    result.name = "y"
    return Module([Function("main", values, [result], e.ops)]), values


def _arrays(rng: np.random.Generator, values: Sequence[Value]) -> list[np.ndarray]:
    return [np.asarray(rng.integers(0, 2, [d or 0 for d in v.type.shape or ()]), v.type.storage.dtype) for v in values]


@pytest.mark.parametrize("kind", CASES)
def test_evaluator(kind: type[Operator]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        shapes, attributes = CASES[kind][0](rng)
        module, values = _made(kind, shapes, attributes)
        (found,) = outputs_of(module, _arrays(rng, values))
        assert module.main.outputs[0].type.shape == found.shape, (shapes, attributes)
        less = [tuple(d if rng.integers(2) else None for d in s) for s in shapes]
        partly = _made(kind, less, attributes)[0].main.outputs[0].type.shape
        assert partly is not None
        assert len(partly) == found.ndim
        assert all(p in (None, d) for p, d in zip(partly, found.shape, strict=True)), (less, attributes)
        assert _made(kind, [None, *shapes[1:]], attributes)[0].main.outputs[0].type.shape is None


@pytest.mark.parametrize("kind", ON_MODEL, ids=lambda kind: kind.op_name)
def test_reference_model(kind: type[Operator]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        shapes, attributes = CASES[kind][0](rng)
        module, values = _made(kind, shapes, attributes)
        (found,) = reference(module, _arrays(rng, values))
        assert module.main.outputs[0].type.shape == found.shape, (shapes, attributes)


WITHOUT = {"tosa.variable_read"}
"""What says its shape nowhere but in its result's type."""


def test_every_op_of_the_integer_form_infers() -> None:
    kinds = [Qcast, Dcast, Scast]
    for name in ("tosa", "ext"):
        declared = dialect(name)
        assert declared is not None
        kinds += [kind for kind in declared.classes() if issubclass(kind, Operator)]
    assert {kind.op_name for kind in kinds if not kind.infers} == WITHOUT


@pytest.mark.parametrize("name", ONE_OP)
def test_what_a_module_of_one_op_states(name: str) -> None:
    """These modules run on the evaluator and on the reference model, with the shapes that they state."""
    for op in ONE_OP[name]().ops():
        if isinstance(op, (CondIf, WhileLoop)) or op.name in WITHOUT:
            continue
        assert isinstance(op, Operator)
        found = op.infer(DECLARED_SHAPES)
        assert (found if isinstance(found, list) else [found]) == [v.type.shape for v in op.results], op


def test_broadcast_is_numpys() -> None:
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(2000):
        shapes = [tuple(rng.choice([1, 1, 2, 3], rng.integers(4)).tolist()) for _ in range(rng.integers(1, 4))]
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            refused += 1
            with pytest.raises(Misfit, match="do not broadcast"):
                broadcast(*shapes)
        else:
            assert broadcast(*shapes) == expected
    assert 0 < refused < 2000


def test_nothing_is_added_for_operands_that_do_not_fit() -> None:
    e = Emitter()
    with pytest.raises(Misfit, match=r"\[2\] and \[3\] do not broadcast"):
        e.emit(Add, [Value(TensorType((n,), i32)) for n in (2, 3)], i32)
    assert not e.ops


@pytest.mark.parametrize(
    ("kind", "shapes", "sentence"),
    [
        (SVDF, [(2, 3), (4, 3), (1, 5), (4,), (2, 20)], "filters and filters over time: 4 and 1 differ"),
        (RNN, [(2, 3), (4, 3), (4, 5), (4,), (2, 4)], "units and recurrent weights: 4 and 5 differ"),
        (TflConv3D, [(1, 4, 4, 4, 2), (1, 1, 1, 2, 3), (2, 3)], "channels and biases: 3 and 6 differ"),
    ],
)
def test_operands_that_no_interpreter_runs(kind: type[Operator], shapes: list[Shape], sentence: str) -> None:
    attributes = {"rank": 1, "stride_d": 1, "stride_h": 1, "stride_w": 1}
    with pytest.raises(Misfit, match=sentence):
        Emitter().emit(kind, [Value(TensorType(shape, f32)) for shape in shapes], f32, **attributes)


# Recurrent operators of a batch of 2, 3 elements, 4 cells and 5 outputs, with every operand that may be left out.

_DIRECTION: list[Sizes] = [*[(4, 3)] * 4, *[(4, 5)] * 4, *[(4,)] * 3, *[(4,)] * 4, (5, 4), (5,)]
_FULL: list[Sizes] = [(2, 3), *_DIRECTION, (2, 5), (2, 4), *[(4,)] * 4]
_STATES: list[Sizes] = [(2, 5), (2, 4)]
_STEPS: list[Sizes] = [(2, 7, 3), *_FULL[1:]]
_LSTM_BOTH_WAYS: list[Sizes] = [(2, 7, 3), *_DIRECTION * 2, *_STATES * 2, (2, 7, 6), *[(4, 6)] * 8]
_BASIC: list[Sizes] = [(2, 3), (2, 4), (16, 7), (16,), (2, 4)]
_CELL: list[Sizes] = [(4, 3), (4, 4), (4,), (2, 4)]
_RNN_BOTH_WAYS: list[Sizes] = [(2, 7, 3), *_CELL * 2, (2, 7, 6), (4, 6), (4, 6)]
_SVDF: list[Sizes] = [(2, 3), (4, 3), (4, 5), (4,), (2, 20)]
RECURRENT: dict[str, tuple[type[Operator], list[Sizes], dict[str, Any], int]] = {
    "lstm": (LSTM, _FULL, {"kernel_type": "FULL"}, 1),
    "basic lstm": (LSTM, _BASIC, {"kernel_type": "BASIC"}, 4),
    "sequence lstm": (UnidirectionalSequenceLSTM, _STEPS, {}, 1),
    "lstm both ways": (BidirectionalSequenceLSTM, _LSTM_BOTH_WAYS, {"time_major": False}, 2),
    "rnn": (RNN, [(2, 3), *_CELL], {}, 1),
    "sequence rnn": (UnidirectionalSequenceRNN, [(2, 7, 3), *_CELL], {}, 1),
    "rnn both ways": (BidirectionalSequenceRNN, _RNN_BOTH_WAYS, {}, 2),
    "svdf": (SVDF, _SVDF, {"rank": 1}, 1),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_each_operand_of_a_recurrent_operator_fits_the_others(name: str) -> None:
    """Every kernel compares every dim of its weights, biases and states, and refuses one that is another."""
    kind, shapes, attributes, results = RECURRENT[name]

    def infer(shapes: list[Sizes]) -> Any:
        op = Op(kind.op_name, [Value(TensorType(s, f32)) for s in shapes], [], attributes)
        assert isinstance(op, kind)
        return op.infer(DECLARED_SHAPES)

    inferred = infer(shapes)
    assert len(inferred if isinstance(inferred, list) else [inferred]) == results
    for place, shape in enumerate(shapes):
        for dim, size in enumerate(shape):
            if shape == (2, 7, 3) and dim == 1:  # the number of steps
                continue
            with pytest.raises(Misfit):
                infer([*shapes[:place], (*shape[:dim], size + 1, *shape[dim + 1 :]), *shapes[place + 1 :]])
        with pytest.raises(Misfit):
            infer([*shapes[:place], (*shape, 2), *shapes[place + 1 :]])
    for place, shape in enumerate(shapes) if name in ("lstm", "lstm both ways") else ():
        if shape == (4, 5):
            with pytest.raises(Misfit):
                infer([*shapes[:place], (4,), *shapes[place + 1 :]])


def test_recurrent_weights_may_be_diagonals() -> None:
    shapes = [(4,) if shape == (4, 5) else (2, 4) if shape == (2, 5) else shape for shape in _STEPS]
    shapes = [(4, 4) if shape == (5, 4) else (4,) if shape == (5,) else shape for shape in shapes]
    op = Op("tfl.unidirectional_sequence_lstm", [Value(TensorType(s, f32)) for s in shapes], [])
    assert isinstance(op, UnidirectionalSequenceLSTM)
    assert op.infer(DECLARED_SHAPES) == (2, 7, 4)
