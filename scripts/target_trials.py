"""Models of one builtin on plain tensors, with the inputs to try them on (measure_target.py).

Each has operands of full ranges, and what a runtime may treat as another case is another trial of the same signature:
constant operands and broadcasts, axes, windows and paddings, activations. Floats are whole numbers where kernels add
products up, so that every order gives the same sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from zlib import crc32

import numpy as np

import tflq
from tflq.dialects.declare import Operator
from tflq.dialects.tfl import activation, arithmetic, casts, comparison, convolution, movement, pooling
from tflq.dialects.tfl.state import AssignVariable, Call, CallOnce, If, ReadVariable, VarHandle, While, state_version
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ScalarType, TensorType, f32, i1, i8, i16, i32, i64, ui8, ui32

SHAPE: Final = (1, 6, 5, 12)
MOVED: Final = (f32, i32, i8, ui8, i16, i64)
MOST: Final = 10
"""So many operands are tried where there may be any number, and one more."""
ACTIVATIONS: Final = ("RELU", "RELU6", "RELU_N1_TO_1")
Make = Callable[..., Value]
"""Makes the output of a model with a builder, of the model's inputs."""


@dataclass(frozen=True)
class Trial:
    """A model and its inputs. `kernel` and `signature`: what it is a trial of, as in rules/integer.json; `activation`:
    the one that is fused; `kernel` is "" where the name says all."""

    name: str
    kernel: str
    signature: str
    activation: str
    model: bytes
    inputs: tuple[np.ndarray, ...]


def trials() -> list[Trial]:
    """All of them, in order."""
    return [*_elementwise(), *_unary(), *_casts(), *_moved(), *_reduced(), *_windows(), *_variables(), *_calling()]


def made(kernel: str, form: str, make: Make, *types: TensorType, small: int = 0, activation: str = "NONE") -> Trial:
    """A trial of the builtin that `make` emits last. `small`: floats are whole numbers below it in magnitude,
    from 0 on if it is negative."""
    k = KernelBuilder()
    inputs = [Value(t, f"in{i}") for i, t in enumerate(types)]
    output = make(k, *inputs)
    for op in k.ops:
        state_version(op)
    last = output.producer
    assert last is not None
    _name(k, inputs)
    output.name = "out0"
    model = bytes(tflq.write(Module([Function("main", inputs, list(last.results), k.ops)])))
    signature = f"{_row(kernel, last.operands)} -> {_row(kernel, last.results)}"
    name = f"{kernel}: {signature}, {form}" if kernel else form
    rng = np.random.default_rng(crc32(name.encode()))
    return Trial(name, kernel, signature, activation, model, tuple(_drawn(rng, t, small) for t in types))


def _name(k: KernelBuilder, inputs: Sequence[Value]) -> None:
    """Names for all tensors: some runtimes tell them apart by nothing else."""
    others = dict.fromkeys(v for op in k.ops for v in (*op.operands, *op.results) if v is not None and v not in inputs)
    for number, value in enumerate(others):
        value.name = f"t{number}"


def _row(kernel: str, values: Sequence[Value | None]) -> str:
    """The types of operands or results, as rules write them."""
    types = ["" if v is None else str(v.type.storage) for v in values]
    several = kernel in ("concatenation", "split") and len(values) > 1 and len(set(types)) == 1
    if kernel == "split" and values[0] is not None and values[0].is_constant:
        several = False
    counted = MOST if kernel == "concatenation" and len(values) <= MOST else ""
    return f"{types[0]}*{counted}" if several else " ".join(types)


def _drawn(rng: np.random.Generator, type: TensorType, small: int) -> np.ndarray:
    """Elements of a tensor: of integers from the whole range, with its ends; floats of all sizes that fit int32, whole
    ones among them."""
    shape, element = [d or 1 for d in type.shape or ()], type.storage
    if element is i1:
        return rng.integers(0, 2, shape).astype(bool)
    if not element.is_float:
        numbers = rng.integers(element.minimum, element.maximum, shape, element.dtype, endpoint=True)
        numbers.reshape(-1)[:3] = element.minimum, element.maximum, 0
        return numbers
    if small:
        return rng.integers(min(-small, 0), abs(small), shape).astype(np.float32)
    numbers = np.ldexp(rng.uniform(-1, 1, shape), rng.integers(-2, 24, shape)).astype(np.float32)
    return np.where(rng.integers(0, 2, shape) == 1, np.rint(numbers), numbers)


def plain(element: ScalarType, shape: Sequence[int] = SHAPE) -> TensorType:
    return TensorType(tuple(shape), element)


def _constants(element: ScalarType, seed: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """Constant operands: a number, one for each channel, and as many as there are elements."""
    rng = np.random.default_rng(seed)
    for form, shape in (("constant", ()), ("channels", SHAPE[-1:]), ("whole", SHAPE)):
        if element.is_float:
            yield form, rng.uniform(0.01, 3, shape).astype(np.float32)
        else:
            yield form, rng.integers(1, min(element.maximum, 1000), shape).astype(element.dtype)


def _elementwise() -> Iterator[Trial]:
    """Two operands: both computed, of one shape or broadcast, or one of them a constant."""
    numbers = {"add": arithmetic.Add, "sub": arithmetic.Sub, "mul": arithmetic.Mul}
    others = {"maximum": arithmetic.Maximum, "minimum": arithmetic.Minimum, "floor_div": arithmetic.FloorDiv}
    bits = {"bitwise_xor": comparison.BitwiseXor, "right_shift": comparison.RightShift}
    compared = {
        "equal": comparison.Equal,
        "not_equal": comparison.NotEqual,
        "greater": comparison.Greater,
        "greater_equal": comparison.GreaterEqual,
        "less": comparison.Less,
        "less_equal": comparison.LessEqual,
    }
    for name, kind in (numbers | others | bits | compared).items():
        elements = (i8, ui8, i16, i32) if name in bits else (f32, i32) if name in compared else (f32, i32, i16, i64)
        for element in elements:
            yield from _binary(name, kind, element, i1 if name in compared else element)
    for name, kind in numbers.items():
        for fused in ACTIVATIONS:
            options = {"fused_activation_function": fused}
            yield made(
                name,
                fused,
                lambda k, x, y, o=options, c=kind: k.emit(c, [x, y], **o),
                *[plain(f32)] * 2,
                activation=fused,
            )


def _binary(name: str, kind: Any, element: ScalarType, to: ScalarType) -> Iterator[Trial]:
    x = plain(element)
    for form, y in (
        ("", x),
        ("broadcast", plain(element, SHAPE[-1:])),
        ("batch", plain(element, (1, 1, 1, SHAPE[-1]))),
    ):
        if name not in ("floor_div", "right_shift"):
            yield made(name, form, lambda k, a, b: k.emit(kind, [a, b], to), x, y)
    for form, c in _constants(element):
        if name == "right_shift":
            c = c % min(element.bits, 8)
        yield made(name, form, lambda k, a, c=c: k.emit(kind, [a, k.constant(c, element)], to), x)
        if name in ("add", "sub", "mul", "maximum", "minimum"):
            yield made(name, f"{form} first", lambda k, a, c=c: k.emit(kind, [k.constant(c, element), a], to), x)


def _unary() -> Iterator[Trial]:
    kinds = {
        "abs": (arithmetic.Abs, (f32, i32, i16)),
        "neg": (arithmetic.Neg, (f32, i32, i64, i8, i16)),
        "sign": (arithmetic.Sign, (f32, i32)),
        "floor": (arithmetic.Floor, (f32,)),
        "relu": (activation.Relu, (f32,)),
        "relu6": (activation.Relu6, (f32,)),
        "relu_n1_to_1": (activation.ReluN1To1, (f32,)),
    }
    for name, (kind, elements) in kinds.items():
        for element in elements:
            yield made(name, "", lambda k, x, c=kind: k.emit(c, [x]), plain(element))
            yield made(name, "2 dims", lambda k, x, c=kind: k.emit(c, [x]), plain(element, (7, 33)))


def _casts() -> Iterator[Trial]:
    """All pairs; floats that the result holds."""
    for source in (*MOVED, i1):
        for to in (*MOVED, i1):
            small = 0 if to.is_float or to.bits > 16 else -256 if to is ui8 else to.maximum
            if source is not to:
                yield made(
                    "cast",
                    "",
                    lambda k, x, to=to: k.emit(casts.Cast, [x], x.type.with_element(to)),
                    plain(source),
                    small=small,
                )
    for source, to in ((f32, i32), (i32, f32), (i32, ui32), (i8, ui8)):
        yield made("bitcast", "", lambda k, x, to=to: k.bitcast(x, to), plain(source))


def _moved() -> Iterator[Trial]:
    for e in (*MOVED, i1):
        x = plain(e)
        yield made("reshape", "", lambda k, a: k.reshape(a, (6, 60)), x)
        yield made("transpose", "", lambda k, a: k.transpose(a, (0, 3, 1, 2)), x)
        yield made("transpose", "2 dims", lambda k, a: k.transpose(a, (1, 0)), plain(e, (7, 33)))
        yield made("concatenation", "", lambda k, a, b: k.concatenation([a, b], 3), x, x)
        yield made("concatenation", "first", lambda k, a, b: k.concatenation([a, b], 0), x, x)
        for count in (MOST, MOST + 1):
            yield made("concatenation", f"of {count}", lambda k, *xs: k.concatenation(xs, 3), *[x] * count)
        yield made("squeeze", "", lambda k, a: k.emit(movement.Squeeze, [a], squeeze_dims=np.asarray([0])), x)
        yield made("tile", "", lambda k, a: k.emit(movement.Tile, [a, k.constant([1, 2, 1, 3])]), x)
        yield made(
            "slice", "", lambda k, a: k.emit(movement.Slice, [a, k.constant([0, 1, 2, 3]), k.constant([1, 4, 2, 5])]), x
        )
        yield made("strided_slice", "", lambda k, a: k.strided_slice(a, [0, 1, 0, 2], [1, 6, 5, 12], [1, 2, 2, 3]), x)
        yield made("select_v2", "", lambda k, c, a, b: k.emit(comparison.SelectV2, [c, a, b]), plain(i1), x, x)
        yield made("split", "", _split, x)
        yield made(
            "gather",
            "",
            lambda k, a, n: k.gather(a, k.minimum(k.maximum(n, k.constant(0)), k.constant(5)), 1),
            x,
            plain(i32, (4,)),
        )
        yield made("gather", "table", lambda k, n, e=e: k.gather(_table(k, e), _index(k, n)), plain(i8))
        if e is i1:
            continue
        yield made("pad", "", lambda k, a: k.emit(movement.Pad, [a, k.constant(_EDGES)]), x)
        yield made("padv2", "", lambda k, a: k.padv2(a, _EDGES, 3), x)
        if e is not i64:
            yield made("resize_nearest_neighbor", "", _resized, x)


_EDGES: Final = [[0, 0], [1, 2], [0, 1], [0, 0]]


def _split(k: KernelBuilder, x: Value) -> Value:
    return k.split(x, 2, 3)[0]


def _table(k: KernelBuilder, element: ScalarType) -> Value:
    rng = np.random.default_rng(0)
    entries = rng.integers(0, 2 if element is i1 else 127, 256)
    return k.constant(entries, element)


def _index(k: KernelBuilder, x: Value) -> Value:
    return k.add(k.cast(x, i32), k.constant(128))


def _resized(k: KernelBuilder, x: Value) -> Value:
    size = k.constant([12, 10])
    options = {"align_corners": False, "half_pixel_centers": False}
    return k.emit(pooling.ResizeNearestNeighbor, [x, size], plain(x.type.storage, (1, 12, 10, 12)), **options)


def _reduced() -> Iterator[Trial]:
    kinds: dict[str, type[Operator]] = {"sum": pooling.Sum, "mean": pooling.Mean}
    kinds |= {"reduce_max": pooling.ReduceMax, "reduce_min": pooling.ReduceMin}
    for name, kind in kinds.items():
        for element in (f32, i32) if name in ("sum", "mean") else (f32, i32, i8, i16):
            for form, axes, size in (("", [3], SHAPE), ("windows", [1, 2], (1, 4, 8, 12))):
                yield made(
                    name, form, lambda k, x, c=kind, a=axes: k.reduce(c, x, a), plain(element, size), small=1 << 15
                )
    for name, index in (("arg_max", pooling.ArgMax), ("arg_min", pooling.ArgMin)):
        yield made(
            name,
            "",
            lambda k, x, c=index: k.emit(c, [x, k.constant(np.asarray(3))], i32, output_type="INT32"),
            plain(f32),
        )
    yield made("cumsum", "", lambda k, x: k.emit(pooling.Cumsum, [x, k.constant(np.asarray(3))]), plain(i32))
    yield made("cumsum", "", lambda k, x: k.emit(pooling.Cumsum, [x, k.constant(np.asarray(3))]), plain(f32), small=99)


PLAIN: Final[dict[str, Any]] = {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}


def whole(k: KernelBuilder, *shape: int) -> Value:
    """Constant weights, whole numbers in float32."""
    return k.constant(np.random.default_rng(len(shape)).integers(-127, 128, shape), f32)


def _windows() -> Iterator[Trial]:
    image = plain(f32, (1, 9, 8, 12))
    windows = {"same": ("SAME", 1, 1), "valid": ("VALID", 1, 1), "strided": ("SAME", 2, 1), "dilated": ("VALID", 1, 2)}
    for form, (padding, stride, dilation) in windows.items():
        options = {"padding": padding, "stride_w": stride, "stride_h": stride}
        options |= {"dilation_w_factor": dilation, "dilation_h_factor": dilation}
        for fused in ("NONE", *(ACTIVATIONS if form == "same" else ())):
            of: dict[str, Any] = options | {"fused_activation_function": fused}
            label = form if fused == "NONE" else fused
            yield made("conv_2d", label, partial(_conv, **of), image, small=256, activation=fused)
            yield made("depthwise_conv_2d", label, partial(depthwise, **of), image, small=256, activation=fused)
        if dilation == 1:
            size = {"padding": padding, "stride_w": stride, "stride_h": stride, "filter_width": 2, "filter_height": 2}
            yield made("max_pool_2d", form, lambda k, x, o=size: k.emit(pooling.MaxPool2D, [x], **o), image)
            yield made(
                "average_pool_2d", form, lambda k, x, o=size: k.emit(pooling.AveragePool2D, [x], **o), image, small=4096
            )
    same = {"padding": "SAME"} | PLAIN
    yield made("conv_2d", "1x1", partial(_conv, window=1, **same), image, small=256)
    yield made("depthwise_conv_2d", "multiplier", partial(depthwise, depth_multiplier=2, **same), image, small=256)
    yield made("transpose_conv", "", _upward, image, small=256)
    rows, more = plain(f32, (2, 3, 64)), plain(f32, (2, 64, 9))
    yield made("fully_connected", "", _fully_connected, plain(f32, (3, 64)), small=256)
    yield made("batch_matmul", "", lambda k, x: k.batch_matmul(x, whole(k, 64, 9), to=f32), rows, small=256)
    yield made("batch_matmul", "computed", lambda k, x, y: k.batch_matmul(x, y, to=f32), rows, more, small=256)
    yield made("batch_matmul", "", lambda k, x, y: k.batch_matmul(x, y), plain(i8, (2, 3, 64)), plain(i8, (2, 64, 9)))
    blocks = plain(f32, (1, 6, 4, 12))
    yield made("space_to_depth", "", lambda k, x: k.emit(movement.SpaceToDepth, [x], block_size=2), blocks)
    yield made("depth_to_space", "", lambda k, x: k.emit(movement.DepthToSpace, [x], block_size=2), blocks)


def _conv(k: KernelBuilder, x: Value, window: int = 3, **options: Any) -> Value:
    return k.emit(convolution.Conv2D, [x, whole(k, 10, window, window, 12), whole(k, 10)], **options)


def depthwise(k: KernelBuilder, x: Value, depth_multiplier: int = 1, **options: Any) -> Value:
    weights, bias = whole(k, 1, 3, 3, 12 * depth_multiplier), whole(k, 12 * depth_multiplier)
    return k.emit(convolution.DepthwiseConv2D, [x, weights, bias], **options, depth_multiplier=depth_multiplier)


def _upward(k: KernelBuilder, x: Value) -> Value:
    operands = [k.constant([1, 18, 16, 10]), whole(k, 10, 3, 3, 12), x]
    type = plain(f32, (1, 18, 16, 10))
    return k.emit(convolution.TransposeConv, operands, type, padding="SAME", stride_w=2, stride_h=2)


def _fully_connected(k: KernelBuilder, x: Value) -> Value:
    return k.emit(convolution.FullyConnected, [x, whole(k, 9, 64), whole(k, 9)], plain(f32, (3, 9)))


def _variables() -> Iterator[Trial]:
    """What CALL_ONCE assigns is read, and what is assigned then."""
    for element in (i8, ui8, i16, i32, i64, i1):
        x = Value(plain(element), "in0")
        start = Value(x.type, "start", buffer=Buffer.of(_drawn(np.random.default_rng(0), x.type, 99)))
        handles = [Value(TensorType((1,), i32), f"handle{i}") for i in range(2)]
        before, after = Value(x.type, "out0"), Value(x.type, "out1")
        named = {"container": "", "shared_name": "state"}
        assigned = [Op(VarHandle.op_name, [], [handle], named) for handle in handles]
        ops = [
            Op(CallOnce.op_name, [], [], {"init_subgraph_index": 1}),
            assigned[0],
            Op(ReadVariable.op_name, [handles[0]], [before], {}),
            Op(AssignVariable.op_name, [handles[0], x], [], {}),
            Op(ReadVariable.op_name, [handles[0]], [after], {}),
        ]
        first = [assigned[1], Op(AssignVariable.op_name, [handles[1], start], [], {})]
        functions = Function("main", [x], [before, after], ops), Function("first", [], [], first)
        model = bytes(tflq.write(Module(list(functions))))
        inputs = (_drawn(np.random.default_rng(1), x.type, 99),)
        kernels = {"assign_variable": f"i32 {element} ->", "read_variable": f"i32 -> {element}"}
        if element is i8:
            kernels |= {"call_once": "->", "var_handle": "-> i32"}
        for kernel, signature in kernels.items():
            yield Trial(f"{kernel}: {signature}, of {element}", kernel, signature, "NONE", model, inputs)


def _calling() -> Iterator[Trial]:
    """What calls functions: it copies tensors of any types, so that one stands for all."""
    x, flag, count = plain(f32), plain(i1, (1,)), plain(i32, (1,))
    twice, squared = _function([x], lambda k, v: [k.add(v, v)]), _function([x], lambda k, v: [k.mul(v, v)])
    inside = _function([count, x], lambda k, n, _: [k.emit(comparison.Less, [n, k.constant([3])], i1)])
    step = _function([count, x], lambda k, n, v: [k.add(n, k.constant([1])), k.add(v, v)])
    branches = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    loop = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    yield _called(If, [flag, x], [x], branches, [twice, squared])
    yield _called(While, [count, x], [count, x], loop, [inside, step], {0: np.asarray([-2], np.int32)})
    yield _called(Call, [x], [x], {"subgraph": 1}, [twice])


def _function(types: Sequence[TensorType], make: Callable[..., list[Value]]) -> Function:
    k = KernelBuilder()
    inputs = [Value(t, f"in{i}") for i, t in enumerate(types)]
    outputs = make(k, *inputs)
    for op in k.ops:
        state_version(op)
    _name(k, inputs)
    return Function("called", inputs, outputs, k.ops)


def _called(
    kind: type[Operator],
    takes: Sequence[TensorType],
    gives: Sequence[TensorType],
    attributes: dict[str, int],
    functions: Sequence[Function],
    given: Mapping[int, np.ndarray] | None = None,
) -> Trial:
    """A trial of an operator that calls functions. given: the inputs that are not drawn."""
    inputs = [Value(t, f"in{i}") for i, t in enumerate(takes)]
    outputs = [Value(t, f"out{i}") for i, t in enumerate(gives)]
    op = Op(kind.op_name, list(inputs), outputs, attributes)
    model = bytes(tflq.write(Module([Function("main", inputs, outputs, [op]), *functions])))
    kernel, rng = op.short_name, np.random.default_rng(1)
    signature = f"{_row(kernel, inputs)} -> {_row(kernel, outputs)}"
    drawn = [_drawn(rng, t, 99) if i not in (given or {}) else (given or {})[i] for i, t in enumerate(takes)]
    return Trial(f"{kernel}: {signature}, calling", kernel, signature, "NONE", model, tuple(drawn))
