"""Parts of valid operators: the shapes of quantized tensors, the other operands and results, the options.

An entry says nothing of element types: `table` gives them, by what is declared of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from tflq.dialects.tfl import op_name
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    bf16,
    element_storage,
    f16,
    f32,
    i1,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
    ui16,
)

SCALE = 0.0625
Shaped: TypeAlias = tuple[int, ...]
Attributes: TypeAlias = Mapping[str, Any]
Samples: TypeAlias = Iterator[tuple[str, bytes]]
"""Name and file of each."""
STORED = (i8, ui8, i16)
_FIRST_VERSIONS = {"broadcast_to": 2}
"""First versions that are not 1."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A tensor of a plain type, whatever the others are."""

    shape: Shaped
    element: ScalarType


Slot: TypeAlias = Shaped | Plain | np.ndarray
"""A quantized tensor's shape, a plain tensor, or a plain constant."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An operator's operands, results and options; `others` are further options worth a row, by what is said of them;
    `mixed`: results of another width can have these shapes."""

    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    options: Attributes = field(default_factory=dict)
    others: Mapping[str, Attributes] = field(default_factory=dict)
    mixed: bool = True


def entry(
    operands: Iterable[Slot], results: Iterable[Slot], others: Mapping[str, Attributes] | None = None, **options: Any
) -> Entry:
    return Entry(tuple(operands), tuple(results), options, others or {})


def ints(*data: Any) -> np.ndarray:
    """An operand of constant integers: one number as it is, several as a vector."""
    return np.asarray(data[0] if len(data) == 1 else data, np.int32)


def longs(*data: int) -> np.ndarray:
    return np.asarray(data, np.int64)


def condition(*shape: int) -> Plain:
    return Plain(shape, i1)


def indices(*shape: int) -> Plain:
    return Plain(shape, i32)


def per_layer(storage: ScalarType, scale: float = SCALE, zero_point: int | None = None) -> UniformQuantizedType:
    """One scale, and a zero point off the middle where the kernels take one."""
    if zero_point is None:
        middle = (storage.minimum + storage.maximum) // 2
        zero_point = 0 if storage.bits >= 16 else middle + (3 if storage.bits == 8 else 1)
    return UniformQuantizedType.of(storage, scale, zero_point)


def stored(shape: Shape, element: ElementType, name: str, data: np.ndarray | None = None) -> Value:
    """A constant of stored integers: `data`, or integers from all over the range."""
    storage = element_storage(element)
    if data is None:
        data = np.arange(np.prod(shape)).reshape(shape) * 7  # type: ignore[arg-type]
        if storage.is_integer:
            data = data % (1 << min(storage.bits, 16)) + max(storage.minimum, -(1 << 15))
    array = np.asarray(data).astype(storage.dtype)
    if storage.bits == 4:
        nibbles = np.append(array.reshape(-1).astype(np.uint8) & 15, np.zeros(array.size % 2, np.uint8))
        array = nibbles[::2] | nibbles[1::2] << 4
    return Value(TensorType(shape, element), name, buffer=Buffer.of(array))


def model_of(
    name: str,
    layer: Entry,
    elements: Sequence[ElementType],
    results: Sequence[ElementType],
    constants: Iterable[int] = (),
) -> bytes:
    """The file of an operator whose quantized tensors have these types; `constants`: which operands are constant."""
    operand_types, result_types = iter(elements), iter(results)
    operands = [_value(slot, operand_types, f"in{i}", i in constants) for i, slot in enumerate(layer.operands)]
    outputs = [_value(slot, result_types, f"out{i}", False) for i, slot in enumerate(layer.results)]
    return file_of(name, operands, outputs, layer.options)


def _value(slot: Slot, elements: Any, name: str, fixed: bool) -> Value:
    if isinstance(slot, np.ndarray):
        return constant(slot, name=name)
    if isinstance(slot, Plain):
        return Value(TensorType(slot.shape, slot.element), name)
    element = next(elements)
    return stored(slot, element, name) if fixed else Value(TensorType(slot, element), name)


def op_of(
    name: str,
    operands: Sequence[Value | None],
    results: Sequence[Value],
    options: Attributes = MappingProxyType({}),
    intermediates: Sequence[Value] = (),
) -> Op:
    info = {"version": _FIRST_VERSIONS.get(name, 1)}
    return Op(op_name(name), [*operands], [*results], dict(options), info=info, intermediates=[*intermediates])


def file_of(
    name: str,
    operands: Sequence[Value | None],
    results: Sequence[Value],
    options: Attributes,
    functions: Sequence[Function] = (),
    intermediates: Sequence[Value] = (),
) -> bytes:
    """The file of a model of one operator, and the functions it calls; operands without data are its inputs."""
    op = op_of(name, operands, results, options, intermediates)
    inputs = [v for v in operands if v is not None and v.buffer is None and not v.info.get("is_variable")]
    return bytes(write(Module([Function("main", list(dict.fromkeys(inputs)), list(results), [op]), *functions])))


# Operators with constant weights: convolutions, FULLY_CONNECTED, BATCH_MATMUL and EMBEDDING_LOOKUP.
#
# Activations of int8, uint8, int16 or float (hybrid) meet weights of int8, uint8, int4 or int16, with one scale, one
# per output channel, or one per block of the last dim.


@dataclass(frozen=True)
class _Weighted:
    """Shapes of input, filter and result; the filter's axis of channels; whether the result's shape is an operand."""

    x: Shaped
    w: Shaped
    y: Shaped
    axis: int
    options: Mapping[str, Any] = field(default_factory=dict)
    shaped: bool = False
    biased: bool = True


_IMAGE, _VOLUME = (1, 4, 4, 4), (1, 3, 3, 3, 2)
_WINDOW = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
_WINDOW_3D = {**_WINDOW, "stride_d": 1, "dilation_d_factor": 1}
_WEIGHTED: Mapping[str, _Weighted] = {
    "batch_matmul": _Weighted((2, 3, 4), (4, 5), (2, 3, 5), 1, biased=False),
    "conv_2d": _Weighted(_IMAGE, (5, 2, 2, 4), (1, 3, 3, 5), 0, _WINDOW),
    "conv_3d": _Weighted(_VOLUME, (2, 2, 2, 2, 3), (1, 2, 2, 2, 3), 4, _WINDOW_3D),
    "conv_3d_transpose": _Weighted(_VOLUME, (2, 2, 2, 3, 2), (1, 4, 4, 4, 3), 3, _WINDOW_3D, shaped=True),
    "depthwise_conv_2d": _Weighted(_IMAGE, (1, 2, 2, 4), (1, 3, 3, 4), 3, {**_WINDOW, "depth_multiplier": 1}),
    "fully_connected": _Weighted((2, 64), (5, 64), (2, 5), 0),
    "transpose_conv": _Weighted(
        (1, 3, 3, 4), (5, 2, 2, 4), (1, 4, 4, 5), 0, {"padding": "VALID", "stride_w": 1, "stride_h": 1}, shaped=True
    ),
}
_TYPES = (
    *((i8, i8), (ui8, ui8), (i16, i8), (i8, i4), (i16, i4), (ui8, i8), (i8, ui8), (i16, i16), (i8, i16)),
    *((f32, i8), (f32, ui8), (f32, i4), (f32, i16)),
)
_KINDS = ("per layer", "per axis", "blockwise")


def _weighted_samples(name: str) -> Samples:
    """Each signature's sample: its name, and the file."""
    layer = _WEIGHTED[name]
    for x, w in _TYPES:
        for kind in _KINDS:
            if kind != "blockwise" or w in (i4, i8):
                yield f"{name} {x} × {w}: {kind}", _model(name, layer, x, w, kind)
    for x, w, y in ((i8, i8, i16), (i16, i8, i8), (ui8, ui8, i16), (i8, i8, i32), (i8, i8, f32)):
        yield f"{name} {x} × {w} → {y}: per layer", _model(name, layer, x, w, "per layer", y)
    if layer.biased:
        yield (
            f"{name} i16 × i8: per axis, int32 bias",
            _model(name, layer, i16, i8, "per axis", bias=i32, options=_BIAS.get(name)),
        )
        yield f"{name} i8 × i8: per axis, no bias", _model(name, layer, i8, i8, "per axis", bias=None)
        yield f"{name} f32 × i8: per axis, no bias", _model(name, layer, f32, i8, "per axis", bias=None)
    yield f"{name} i8 × i8: filter not constant", _model(name, layer, i8, i8, "per layer", fixed=False)
    for words, (storage, options) in (_OPTIONS if name == "fully_connected" else {}).items():
        yield (
            f"{name} {storage} × {storage}: {words}",
            _model(name, layer, storage, storage, "per layer", options=options),
        )


_BIAS = {name: {"quantized_bias_type": "INT32"} for name in ("conv_2d", "fully_connected", "transpose_conv")}
"""The option that says that the bias is not int64 for int16 activations."""
_OPTIONS: Mapping[str, tuple[ScalarType, Mapping[str, Any]]] = {
    "shuffled weights": (ui8, {"weights_format": "SHUFFLED4x16INT8"}),
    "dims kept": (i8, {"keep_num_dims": True}),
    "fused RELU": (i8, {"fused_activation_function": "RELU"}),
}


def _model(
    name: str,
    layer: _Weighted,
    x: ScalarType,
    w: ScalarType,
    kind: str,
    y: ScalarType | None = None,
    *,
    bias: ScalarType | Literal["usual"] | None = "usual",
    fixed: bool = True,
    options: Mapping[str, Any] | None = None,
) -> bytes:
    """The file of one signature; unless given, the bias is int64 for int16 activations, and float for floats."""
    y = y or x
    source = Value(TensorType(layer.x, x if x.is_float else per_layer(x)), "in0")
    result = Value(TensorType(layer.y, y if y.is_float else per_layer(y, 0.5)), "out0")
    weights = _filter(layer.w, w, layer.axis, kind)
    if not fixed:
        weights = Value(weights.type, "in1")
    if bias == "usual":
        bias = x if x.is_float else i64 if x == i16 else i32
    operands: list[Value | None] = [source, weights]
    if layer.shaped:
        operands = [constant(np.asarray(layer.y, np.int32), name="shape"), weights, source]
    if layer.biased and bias is not None:
        operands.append(_bias(weights, layer.w[layer.axis], bias))
    return file_of(name, operands, [result], {**layer.options, **(options or {})})


def _filter(shape: Shaped, storage: ScalarType, axis: int, kind: str) -> Value:
    """A constant filter with one scale, one per index of the axis, or one per block of the last dim."""
    zero = 128 if storage == ui8 else 0
    if kind == "per axis":
        scales = SCALE / (np.arange(shape[axis]) + 2)
        return stored(shape, UniformQuantizedPerAxisType.of(storage, axis, scales, zero), "weights")
    if kind == "per layer":
        return stored(shape, per_layer(storage, SCALE / 2, zero), "weights")
    block = next(b for b in (32, 2, 1) if shape[-1] % b == 0)
    blocks = (*shape[:-1], -(-shape[-1] // block))
    data = (SCALE / (np.arange(np.prod(blocks)) % 5 + 2)).reshape(blocks).astype(np.float16)
    element = UniformQuantizedSubChannelType.of(
        storage, tuple(range(len(shape))), (*[1] * (len(shape) - 1), block), data
    )
    value = stored(shape, element, "weights")
    details = {"scales": constant(data, name="scales"), "zero_points": -1, "block_size": block}
    value.info = {"quantization": {"details": ("BlockwiseQuantization", details)}}
    return value


def _bias(weights: Value, channels: int, storage: ScalarType) -> Value:
    data = np.arange(channels)
    if storage.is_float:
        return stored((channels,), storage, "bias", data)
    if isinstance(weights.type.element, UniformQuantizedPerAxisType):
        scales = np.float32(SCALE) * weights.type.element.scales
        return stored((channels,), UniformQuantizedPerAxisType.of(storage, 0, scales), "bias", data)
    scale = SCALE * getattr(weights.type.element, "scale", SCALE / 2)
    return stored((channels,), UniformQuantizedType.of(storage, scale), "bias", data)


def _embedding() -> Samples:
    """Rows of a quantized table as floats."""
    ids, result = Value(TensorType((2,), i32), "in0"), Value(TensorType((2, 64), f32), "out0")
    for storage in (i8, ui8, i4):
        for kind in _KINDS:
            table = _filter((5, 64), storage, 0, kind)
            yield f"embedding_lookup {storage} → f32: {kind}", file_of("embedding_lookup", [ids, table], [result], {})


# Operators that slide a window without weights.


_POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
_OTHERS = {"padding SAME": {"padding": "SAME"}, "fused RELU": {"fused_activation_function": "RELU"}}


_WINDOWS: Mapping[str, Entry] = {
    **dict.fromkeys(
        ("average_pool_2d", "l2_pool_2d", "max_pool_2d"), entry([_IMAGE], [(1, 2, 2, 4)], _OTHERS, **_POOL)
    ),
    "local_response_normalization": entry([_IMAGE], [_IMAGE], radius=1, bias=1.0, alpha=1.0, beta=0.5),
    "reduce_window": entry(
        [(4, 4), (), longs(2, 2), longs(2, 2), longs(1, 1)],
        [(2, 2)],
        {kind.lower(): {"reduce_function": kind} for kind in ("MUL", "MINIMUM", "MAXIMUM")},
        reduce_function="ADD",
    ),
}


# Operators of one element each, comparisons, reductions and normalizations.


_X = (2, 3)
_UNARY = (
    "abs ceil cos elu exp floor hard_swish l2_normalization log log_softmax logistic neg relu relu6 relu_0_to_1 "
    "relu_n1_to_1 round rsqrt sign sin sqrt square tanh zeros_like"
).split()
_BINARY = "atan2 floor_div floor_mod maximum minimum pow squared_difference".split()
_ACTIVATED = "add div mul sub".split()
_COMPARISONS = "equal greater greater_equal less less_equal not_equal".split()
_REDUCTIONS = "mean reduce_max reduce_min reduce_prod sum".split()
_RELU = {"fused RELU": {"fused_activation_function": "RELU"}}

_ELEMENTWISE: Mapping[str, Entry] = {
    **dict.fromkeys(_UNARY, entry([_X], [_X])),
    "fake_quant": entry([_X], [_X], min=-1.0, max=1.0, num_bits=8),
    "gelu": entry([_X], [_X], {"approximate": {"approximate": True}}),
    "leaky_relu": entry([_X], [_X], alpha=0.25),
    "prelu": entry([_X, (3,)], [_X]),
    "softmax": entry([_X], [_X], {"beta 0.5": {"beta": 0.5}}, beta=1.0),
    **dict.fromkeys(_BINARY, entry([_X, _X], [_X])),
    **dict.fromkeys(_ACTIVATED, entry([_X, _X], [_X], _RELU)),
    **dict.fromkeys(("bitwise_xor", "right_shift"), entry([_X, _X], [_X])),
    **dict.fromkeys(_COMPARISONS, entry([_X, _X], [condition(*_X)])),
    "add_n": entry([_X, _X], [_X]),
    "select": entry([condition(*_X), _X, _X], [_X]),
    "select_v2": entry([condition(2, 1), _X, _X], [_X]),
    "bitcast": replace(entry([_X], [_X]), mixed=False),
    "bucketize": entry([_X], [indices(*_X)], boundaries=np.asarray([-1.0, 0.0, 1.0], np.float32)),
    **dict.fromkeys(_REDUCTIONS, entry([_X, ints([1])], [(2,)])),
    "cumsum": entry([_X, ints(1)], [_X], {"exclusive, reverse": {"exclusive": True, "reverse": True}}),
    **dict.fromkeys(
        ("arg_max", "arg_min"),
        entry([_X, ints(1)], [indices(2)], output_type="INT32"),
    ),
    "topk_v2": entry([_X, ints(2)], [(2, 2), indices(2, 2)]),
    "unique": entry([(6,)], [(6,), indices(6)], idx_out_type="INT32"),
    "where": entry([_X], [Plain((6, 2), i64)]),
    "shape": entry([_X], [indices(2)], out_type="INT32"),
    "rank": entry([_X], [indices()]),
    "batch_matmul": entry([(2, 3, 4), (2, 4, 5)], [(2, 3, 5)]),
    "segment_sum": entry([_X, ints([0, 0])], [(1, 3)]),
    **{f"unsorted_segment_{kind}": entry([_X, ints([1, 0]), ints(2)], [_X]) for kind in ("max", "min", "prod", "sum")},
}


# Operators that move elements: reshaped, sliced, gathered, padded, filled.


_HALF = np.asarray(0.5, np.float32)

_MOVEMENT: Mapping[str, Entry] = {
    "batch_to_space_nd": entry([(4, 2, 2, 2), ints(2, 2), ints([[0, 0], [0, 0]])], [(1, 4, 4, 2)]),
    "broadcast_to": entry([(1, 3), ints(2, 3)], [_X]),
    "concatenation": entry([_X, _X], [(2, 6)], axis=1),
    "depth_to_space": entry([(1, 2, 2, 8)], [(1, 4, 4, 2)], block_size=2),
    "dilate": entry([_X, ints(2, 1), ()], [(3, 3)]),
    "dynamic_update_slice": entry([_X, (1, 3), ints(0, 0)], [_X]),
    "embedding_lookup": entry([indices(2), _X], [_X]),
    "expand_dims": entry([_X, ints(0)], [(1, 2, 3)]),
    "fill": entry([ints(2, 3), ()], [_X]),
    "gather": entry([_X, ints([1])], [(1, 3)], axis=0, batch_dims=0),
    "gather_nd": entry([_X, ints([[1]])], [(1, 3)]),
    "hashtable_lookup": entry([indices(2), indices(2), _X], [_X, Plain((2,), ui8)]),
    "matrix_diag": entry([_X], [(2, 3, 3)]),
    "matrix_set_diag": entry([_X, (2,)], [_X]),
    "mirror_pad": entry([_X, ints([[1, 1], [1, 1]])], [(4, 5)], {"symmetric": {"mode": "SYMMETRIC"}}, mode="REFLECT"),
    "one_hot": entry([indices(2), ints(3), (), ()], [_X], axis=1),
    "pack": entry([_X, _X], [(2, 2, 3)], values_count=2, axis=0),
    "pad": entry([_X, ints([[1, 1], [0, 0]])], [(4, 3)]),
    "padv2": entry([_X, ints([[1, 1], [0, 0]]), ()], [(4, 3)]),
    "reshape": entry([_X, ints(3, 2)], [(3, 2)], new_shape=np.asarray([3, 2], np.int32)),
    **dict.fromkeys(
        ("resize_bilinear", "resize_nearest_neighbor"),
        entry(
            [_IMAGE, ints(8, 8)],
            [(1, 8, 8, 4)],
            {"aligned corners": {"align_corners": True}, "half-pixel centers": {"half_pixel_centers": True}},
        ),
    ),
    "reverse_sequence": entry([_X, ints(1, 2)], [_X], seq_dim=1, batch_dim=0),
    "reverse_v2": entry([_X, ints([1])], [_X]),
    "scatter_nd": entry([ints([[1]]), (1, 3), ints(2, 3)], [_X]),
    "slice": entry([_X, ints(1, 0), ints(1, 3)], [(1, 3)]),
    "space_to_batch_nd": entry([(1, 4, 4, 2), ints(2, 2), ints([[0, 0], [0, 0]])], [(4, 2, 2, 2)]),
    "space_to_depth": entry([(1, 4, 4, 2)], [(1, 2, 2, 8)], block_size=2),
    "sparse_to_dense": entry([ints([[0, 1], [1, 2]]), ints(2, 3), (2,), ()], [_X]),
    "split": entry([ints(1), (2, 4)], [(2, 2), (2, 2)], num_splits=2),
    "split_v": entry([(2, 4), ints(1, 3), ints(1)], [(2, 1), (2, 3)], num_splits=2),
    "squeeze": entry([(1, 3)], [(3,)], squeeze_dims=np.asarray([0], np.int32)),
    "strided_slice": entry([_X, ints(0, 2), ints(2, -4), ints(1, -2)], [(2, 2)]),
    "tile": entry([_X, ints(2, 1)], [(4, 3)]),
    "transpose": entry([_X, ints(1, 0)], [(3, 2)]),
    "unpack": entry([_X], [(3,), (3,)], num=2, axis=0),
    **{
        f"non_max_suppression_{version}": entry(
            [(4, 4), (4,), ints(2), _HALF, _HALF, *more],
            [indices(2), *scores, indices()],
        )
        for version, more, scores in (("v4", (), ()), ("v5", (_HALF,), ((2,),)))
    },
}

ENTRIES: Mapping[str, Entry] = {**_WINDOWS, **_ELEMENTWISE, **_MOVEMENT}


# QUANTIZE, DEQUANTIZE and CAST: from one type to another.


_SHAPE = (2, 4)


def _cast_samples(name: str) -> Samples:
    """Each signature's sample: its name, and the file."""
    for source, target, words in _pairs(name):
        names = " → ".join(str(getattr(e, "storage", e)) for e in (source, target))
        x, y = Value(TensorType(_SHAPE, source), "in0"), Value(TensorType(_SHAPE, target), "out0")
        yield f"{name} {names}: {words}", file_of(name, [x], [y], {})


def _pairs(name: str) -> Iterator[tuple[ElementType, ElementType, str]]:
    if name == "dequantize":
        for source in (*STORED, i4, i32):
            yield per_layer(source), f32, ""
        yield from ((per_layer(i8), real, "") for real in (f16, bf16))
        yield from ((_per_axis(source), f32, "per axis") for source in (*STORED, i4))
        return
    if name == "quantize":
        for target in (*STORED, i4, i32, ui16):
            yield f32, per_layer(target), ""
        yield from ((real, per_layer(i8), "") for real in (f16, bf16))
        yield from ((f32, _per_axis(target), "per axis") for target in STORED)
        yield per_layer(i32), per_layer(i8), ""
        yield per_layer(i16), per_layer(i32), ""
        yield _per_axis(i8), per_layer(i8), "per axis, operand"
    else:
        for plain in (f32, i32, i64, i1):
            yield from ((per_layer(source), plain, "") for source in STORED)
            yield from ((plain, per_layer(target), "") for target in STORED)
        yield per_layer(i4), f32, ""
        yield _per_axis(i8), f32, "per axis"
    for a in STORED:
        for b in STORED:
            yield per_layer(a), per_layer(b, SCALE * 1.5), "other scales"
    yield per_layer(i8), per_layer(i8), "equal scales"


def _per_axis(storage: ScalarType) -> ElementType:
    return UniformQuantizedPerAxisType.of(storage, 1, SCALE / (np.arange(_SHAPE[1]) + 1), 0)


SAMPLES: Mapping[str, Callable[[], Samples]] = {
    "embedding_lookup": _embedding,
    **{name: partial(_weighted_samples, name) for name in _WEIGHTED},
    **{name: partial(_cast_samples, name) for name in ("cast", "dequantize", "quantize")},
}
