"""The `Tensor` table ↔ `Value`: shape, element type and quantization.

The canonical form is what the type alone implies: the stored shape is that of the type, with 1 for an unknown dim;
there is a shape signature only if a dim is unknown; `has_rank` is true for a ranked tensor; quantization per tensor has
one scale and one zero point, per axis one of each per index. What a file says differently is kept in `Value.info` under
the name of its field, and written back as long as it still describes the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tflq.base.errors import VerificationError
from tflq.ir.ops import NO_INFO, Buffer, Value
from tflq.ir.types import (
    SCALARS,
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    FunctionType,
    NoQuantizedType,
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    element_storage,
    f32,
    is_narrowed,
)

_NAMES: Final = """
    FLOAT32=f32 FLOAT16=f16 INT32=i32 UINT8=ui8 INT64=i64 STRING=!tfl.string BOOL=i1 INT16=i16 COMPLEX64=complex<f32>
    INT8=i8 FLOAT64=f64 COMPLEX128=complex<f64> UINT64=ui64 RESOURCE=!tfl.resource VARIANT=!tfl.variant UINT32=ui32
    UINT16=ui16 INT4=i4 BFLOAT16=bf16 INT2=i2 UINT4=ui4 FLOAT8_E4M3FN=f8E4M3FN FLOAT8_E5M2=f8E5M2
"""

ELEMENTS: Final[dict[str, ScalarType]] = {
    member: SCALARS[scalar] for member, scalar in (pair.split("=") for pair in _NAMES.split())
}
"""The element type of each member of TensorType."""

TENSOR_TYPES: Final[dict[ScalarType, str]] = {element: name for name, element in ELEMENTS.items()}

_OPTIONAL_FIELDS: Final = (
    ("is_variable", False),
    ("sparsity", None),
    ("variant_tensors", None),
    ("external_buffer", 0),
)


def read_tensor(fields: Mapping[str, Any], buffers: Sequence[Buffer]) -> Value:
    """The value of a decoded `Tensor`, whose buffer index must be in range. Blockwise ones: see `resolve_details`."""
    index = fields["buffer"]
    buffer = buffers[index] if index else None
    stored, signature, has_rank = fields["shape"], fields["shape_signature"], fields["has_rank"]
    shape = _shape(stored, signature, has_rank, buffer is not None and buffer.data.size > 0)
    info: dict[str, Any] = {}
    _keep_shape_form(info, shape, stored, signature, has_rank)
    element: ElementType = ELEMENTS[fields["type"]]
    raw = fields["quantization"]
    if raw is not None:
        element = _read_quantization(raw, element_storage(element), shape, info)
    for key, default in _OPTIONAL_FIELDS:
        if fields[key] != default:
            info[key] = fields[key]
    name = fields["name"]
    if name is None:
        info["name"] = None
    return Value(TensorType(shape, element), name or "", buffer=buffer, info=info or NO_INFO)


def _shape(stored: Sequence[int] | None, signature: Sequence[int] | None, has_rank: bool, has_data: bool) -> Shape:
    """The shape that a stored shape and its signature describe. A signature that contradicts the shape is ignored."""
    dims = tuple(stored) if stored is not None else ()
    if not dims and not has_rank and not has_data and (signature is None or not len(signature)):
        return None
    if signature is None or len(signature) != len(dims):
        return dims
    if any(s not in (-1, d) for s, d in zip(signature, dims, strict=True)):
        return dims
    return tuple(None if s == -1 else d for s, d in zip(signature, dims, strict=True))


def _canonical_shape(shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...] | None, bool]:
    """The stored shape, signature and `has_rank` that the shape of a type alone implies."""
    if shape is None:
        return (), None, False
    if None in shape:
        return tuple(1 if d is None else d for d in shape), tuple(-1 if d is None else d for d in shape), True
    return shape, None, True  # type: ignore[return-value]


def _keep_shape_form(info: dict[str, Any], shape: Shape, stored: Any, signature: Any, has_rank: bool) -> None:
    dims, signs, ranked = _canonical_shape(shape)
    if stored is None or tuple(stored) != dims:
        info["shape"] = stored
    if (None if signature is None else tuple(signature)) != signs:
        info["shape_signature"] = signature
    if has_rank != ranked:
        info["has_rank"] = has_rank


def quantized_element(raw: Mapping[str, Any], storage: ScalarType) -> ElementType:
    """The element type for a storage type and decoded `QuantizationParameters`; `storage` itself if they have no scale.

    ValueError, with the reason, if there is no valid type.
    """
    scales = raw.get("scale")
    if scales is None or not len(scales):
        return storage
    zero_points = raw.get("zero_point")
    if zero_points is None or not len(zero_points):
        zero_points = (0,)
    if len(zero_points) not in (1, len(scales)):
        raise ValueError(f"{len(zero_points)} zero points for {len(scales)} scales")
    if len(scales) == 1:
        return UniformQuantizedType.of(storage, scales[0], zero_points[0])
    return UniformQuantizedPerAxisType.of(storage, raw.get("quantized_dimension", 0), scales, zero_points)


def _read_quantization(raw: Mapping[str, Any], storage: ScalarType, shape: Shape, info: dict[str, Any]) -> ElementType:
    try:
        element = quantized_element(raw, storage) if raw["details"] is None else storage
    except ValueError:
        element = storage
    if element is storage:
        if (calibrated := _calibrated(raw, storage)) is not None:
            return calibrated
        info["quantization"] = {k: v for k, v in raw.items() if v is not None and (k != "quantized_dimension" or v)}
        return storage
    for key in ("min", "max"):
        if raw[key] is not None:
            info[key] = raw[key]
    zero_points, scales = raw["zero_point"], raw["scale"]
    if zero_points is None or len(zero_points) != len(scales):
        info["zero_point"] = zero_points
    if not raw["quantized_dimension"]:
        return element
    if isinstance(element, UniformQuantizedType):
        info["quantized_dimension"] = raw["quantized_dimension"]
    elif isinstance(element, UniformQuantizedPerAxisType) and shape == (element.scales.size,):
        info["quantized_dimension"] = raw["quantized_dimension"]  # a vector does not have it; its only dim is meant
        element = element.replace(axis=0)
    return element


def _calibrated(raw: Mapping[str, Any], storage: ScalarType) -> CalibratedQuantizedType | None:
    """The type of a float tensor whose parameters are one range and nothing else."""
    if storage != f32 or raw["min"] is None or raw["max"] is None or len(raw["min"]) != 1 or len(raw["max"]) != 1:
        return None
    if raw["quantized_dimension"] or any(raw[key] is not None for key in ("scale", "zero_point", "details")):
        return None
    low, high = float(raw["min"][0]), float(raw["max"][0])
    return CalibratedQuantizedType(storage, low, high) if low < high else None


def resolve_details(value: Value, tensors: Sequence[Value]) -> None:
    """Replaces the tensor indices of blockwise or multi-axis quantization by the tensors. IndexError if out of range.

    Blockwise parameters along the last dim, with constant scales, also become the element type.
    Source: kernels/fully_connected.cc, EvalBlockwise4Bit, and kernels/embedding_lookup.cc, EvalBlockwise.
    """
    raw = value.info["quantization"]
    member, details = raw["details"]
    if "scales" not in details:
        return

    def at(index: int, optional: bool) -> Value | None:
        if optional and index == -1:
            return None
        if not 0 <= index < len(tensors):
            raise IndexError(f"{member} names tensor {index} of {len(tensors)}")
        return tensors[index]

    scales, zero_points = at(details["scales"], False), at(details["zero_points"], True)
    details = {**details, "scales": scales, "zero_points": zero_points}
    value.info = {**value.info, "quantization": {**raw, "details": (member, details)}}
    if member == "BlockwiseQuantization" and scales is not None:
        element = _blockwise(value, scales, zero_points, details["block_size"])
        value.type = value.type.with_element(element or value.type.element)


def _blockwise(
    value: Value, scales: Value, zero_points: Value | None, block: int
) -> UniformQuantizedSubChannelType | None:
    shape, storage = value.type.shape, value.type.storage
    if not shape or None in shape or block <= 0 or not storage.is_integer:
        return None
    blocks = (*shape[:-1], -(-(shape[-1] or 0) // block))
    for parameters in (scales, zero_points):
        if parameters is not None and not (parameters.is_constant and parameters.type.shape == blocks):
            return None
    if not scales.type.storage.is_float or not scales.type.storage.numpy:
        return None
    if zero_points is not None and not zero_points.type.storage.is_integer:
        return None
    try:
        zeros: Any = 0 if zero_points is None else zero_points.array
        sizes = (*[1] * (len(shape) - 1), block)
        return UniformQuantizedSubChannelType.of(storage, tuple(range(len(shape))), sizes, scales.array, zeros)
    except ValueError:
        return None


def shape_fields(value: Value) -> tuple[Any, Any, bool]:
    """The stored shape, shape signature and `has_rank` to write: those of the source, if they still mean this shape."""
    shape = value.type.shape
    stored, signature, has_rank = _canonical_shape(shape)
    info = value.info
    if not info:
        return stored, signature, has_rank
    fields = info.get("shape", stored), info.get("shape_signature", signature), info.get("has_rank", has_rank)
    data = value.buffer is not None and value.buffer.data.size > 0
    return fields if _shape(*fields, data) == shape else (stored, signature, has_rank)


def quantization_fields(value: Value) -> dict[str, Any] | None:
    """The `QuantizationParameters` to write, if there are any. Tensors in `details` are still values.

    VerificationError for what files have no place for: blockwise parameters that do not come from a file, which has
    them in tensors, and types that only the text form has.
    """
    element, info = value.type.element, value.info
    if not isinstance(element, ScalarType) and (problem := without_fields(element)):
        raise VerificationError(f"{value.label}: {problem}")
    if isinstance(element, UniformQuantizedType):
        fields: dict[str, Any] = {"scale": (element.scale,), "zero_point": (element.zero_point,)}
        fields["quantized_dimension"] = info.get("quantized_dimension", 0)
    elif isinstance(element, UniformQuantizedPerAxisType):
        axis = info.get("quantized_dimension", 0) if value.type.rank == 1 else element.axis
        fields = {"scale": element.scales, "zero_point": element.zero_points, "quantized_dimension": axis}
    elif isinstance(element, CalibratedQuantizedType):
        return {"min": (element.minimum,), "max": (element.maximum,)}
    elif isinstance(element, UniformQuantizedSubChannelType) and "quantization" not in info:
        raise VerificationError(f"tensor '{value.name}': blockwise quantization without a tensor of scales to write")
    else:
        return info.get("quantization")
    if "zero_point" in info:
        fields["zero_point"] = _source_zero_points(info["zero_point"], element)
    for key in ("min", "max"):
        if key in info:
            fields[key] = info[key]
    return fields


def without_fields(element: ElementType) -> str:
    """The part of a type that a file has no place for, and the remedy; empty if a file can hold the type."""
    if isinstance(element, ScalarType):
        return without_tensors(element)
    if isinstance(element, FunctionType):
        return "it is a function, and a TFLite file has tensors of numbers; call the function where it is used"
    if isinstance(element, NoQuantizedType):
        return "its type is !quant.none, and a TFLite file has no place for that; state the type it expresses"
    if isinstance(element, AnyQuantizedType):
        return "its type is !quant.any, and a TFLite file has to say the parameters; state them (!quant.uniform)"
    if not isinstance(element, CalibratedQuantizedType) and is_narrowed(element):
        bounds = f"<{element.storage_min}:{element.storage_max}>"
        return f"a TFLite file has no place for the bounds {bounds} of its storage; clamp it in the graph instead"
    if (problem := without_tensors(element_storage(element))) or element.expressed == f32:
        return problem
    return (
        f"it expresses {element.expressed}, and what is quantized in a TFLite file expresses f32; state its scales as "
        "those of f32"
    )


def without_tensors(storage: ScalarType) -> str:
    """Why a file has no tensors of a storage type, and the remedy; empty if it has."""
    if storage in TENSOR_TYPES:
        return ""
    return f"a TFLite file has no tensors of {storage}; use {', '.join(t.name for t in TENSOR_TYPES if t.is_integer)}"


def _source_zero_points(
    source: Sequence[int] | None, element: UniformQuantizedType | UniformQuantizedPerAxisType
) -> Any:
    """The short form of the zero points in the source, if the zero points have not changed since."""
    zero_points = np.asarray(element.zero_point if isinstance(element, UniformQuantizedType) else element.zero_points)
    first = source[0] if source is not None and len(source) else 0
    return source if (zero_points == first).all() else zero_points.reshape(-1)


def tensor_fields(value: Value) -> dict[str, Any]:
    """The `Tensor` to write, except for its buffer and the tensors that its quantization names."""
    stored, signature, has_rank = shape_fields(value)
    info = value.info
    fields: dict[str, Any] = {
        "shape": stored,
        "type": TENSOR_TYPES[value.type.storage],
        "name": info.get("name", value.name) if not value.name else value.name,
        "quantization": quantization_fields(value),
        "shape_signature": signature,
        "has_rank": has_rank,
    }
    for key, default in _OPTIONAL_FIELDS:
        fields[key] = info.get(key, default)
    return fields
