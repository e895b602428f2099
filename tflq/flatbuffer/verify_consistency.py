"""An operator's tensors among each other: element types, broadcasting, shapes of operands that hold one item per dim.

An interpreter computes result shapes anew and disregards what a file says of them; a conversion relies on it. So a
file whose stated shapes are not those that an interpreter would find is refused, wherever they can be known: unknown
dims agree with everything. Source: the Prepare functions of tflite/kernels; `ComputePaddingHeightWidth` in
kernels/padding.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tflq.flatbuffer.verify_notes import Site
    from tflq.ir.core import Value
    from tflq.ir.types import Shape

    Check = Callable[[Site, tuple[str, ...]], None]

__all__ = ["CHECKS"]


def _text(shape: Shape) -> str:
    return "unranked" if shape is None else f"[{', '.join('?' if d is None else str(d) for d in shape)}]"


def _differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one != other


def _alike(site: Site, names: tuple[str, ...]) -> None:
    """With a last word `real`, quantized values may be of several types."""
    values = [v for name in names if name != "real" for v in site.values(name)]
    if names[-1] == "real" and all(v.type.quantized for v in values):
        return
    for value in values[1:]:
        if value.type.storage is not values[0].type.storage:
            first = values[0]
            site.fail(f"'{first.name}' is {first.type.storage} and '{value.name}' is {value.type.storage}")


def _stored(site: Site, arguments: tuple[str, ...]) -> None:
    value = site.value(arguments[0])
    if value is not None and value.type.storage.name not in arguments[1:]:
        site.fail(f"{arguments[0]} '{value.name}' is {value.type.storage}, not one of {', '.join(arguments[1:])}")


def _congruent(site: Site, names: tuple[str, ...]) -> None:
    values = [v for name in names for v in site.values(name) if v.type.shape is not None]
    for value in values[1:]:
        one, other = values[0].type.shape, value.type.shape
        if one is other or one == other or one is None or other is None:
            continue
        if len(one) != len(other) or any(map(_differ, one, other)):
            site.fail(
                f"'{values[0].name}' is {_text(one)} and '{value.name}' {_text(other)}; they must be of one shape"
            )


def _broadcast(site: Site, names: tuple[str, ...]) -> None:
    """The last name is the result's."""
    shapes = [v.type.shape for name in names for v in site.values(name)]
    if all(shape == shapes[0] for shape in shapes):
        return
    *operands, result = shapes
    if result is None or any(shape is None for shape in operands):
        return
    known = [shape for shape in operands if shape is not None]
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    stated = " and ".join(map(_text, known))
    if len(result) != rank:
        site.fail(f"{stated} broadcast to rank {rank}, but the result is {_text(result)}")
    for dims, out in zip(zip(*padded, strict=True), result, strict=True):
        wide = {d for d in dims if d not in (1, None)}
        if len(wide) > 1:
            site.fail(f"{stated} do not broadcast")
        expected = None if None in dims and not wide else next(iter(wide), 1)
        if _differ(expected, out):
            site.fail(f"{stated} do not broadcast to the result, {_text(result)}")


def _pairs(site: Site, names: tuple[str, ...]) -> None:
    _per_dim(site, names, tail=(2,))


def _per_dim(site: Site, names: tuple[str, ...], tail: tuple[int, ...] = ()) -> None:
    items, value = site.value(names[0]), site.value(names[1])
    if items is None or value is None or value.type.rank is None or items.type.shape is None:
        return
    _has_shape(site, names[0], items, (value.type.rank, *tail))


def _sized(site: Site, arguments: tuple[str, ...]) -> None:
    name, count = arguments
    items = site.value(name)
    if items is not None and items.type.shape is not None:
        _has_shape(site, name, items, (int(count),))


def _has_shape(site: Site, name: str, items: Value, expected: tuple[int, ...]) -> None:
    shape = items.type.shape or ()
    if len(shape) != len(expected) or any(map(_differ, shape, expected)):
        site.fail(f"{name} '{items.name}' is {_text(shape)}, where {_text(expected)} is expected")


def _channels(site: Site, arguments: tuple[str, ...]) -> None:
    """`channels OUT IN`: the dims of the filter that count the channels of the result and of the input."""
    outputs, inputs = int(arguments[0]), int(arguments[1])
    data, weights, result = site.value("input"), site.value("filter"), site.op.results[0]
    if data is None or weights is None or weights.type.shape is None:
        return
    shape = weights.type.shape
    for value in (data, weights, result):
        if value.type.rank is not None and value.type.rank != 4:
            site.fail(f"'{value.name}' is of rank {value.type.rank}, not 4")
    if result.type.shape is not None and _differ(shape[outputs], result.type.shape[3]):
        site.fail(
            f"filter {_text(shape)} gives {shape[outputs]} channels, but the result is {_text(result.type.shape)}"
        )
    channels, group = None if data.type.shape is None else data.type.shape[3], shape[inputs]
    if channels is not None and group is not None and not _fits(channels, group, depthwise=inputs == outputs):
        site.fail(f"filter {_text(shape)} does not fit the {channels} channels of '{data.name}'")
    bias = site.value("bias")
    if bias is not None and bias.type.is_static and shape[outputs] is not None:
        count = 1
        for dim in bias.type.shape or ():
            count *= dim or 0
        if count != shape[outputs]:
            site.fail(f"bias '{bias.name}' has {count} elements for {shape[outputs]} channels")


def _fits(channels: int, group: int, *, depthwise: bool) -> bool:
    """Groups divide the input's channels; a depthwise filter is a multiple of them."""
    whole, part = (group, channels) if depthwise else (channels, group)
    return part > 0 and whole % part == 0


def _window(site: Site, arguments: tuple[str, ...]) -> None:
    """`window FILTER`: a filter's operand, or `-` for the attributes; the result's height and width follow from it."""
    data, result = site.value("input"), site.op.results[0]
    weights = None if arguments[0] == "-" else site.value(arguments[0])
    if data is None or data.type.shape is None or result.type.shape is None:
        return
    if len(data.type.shape) != 4 or len(result.type.shape) != 4:
        site.fail(
            f"'{data.name}' is {_text(data.type.shape)} and '{result.name}' {_text(result.type.shape)}, not of rank 4"
        )
    if weights is not None and weights.type.rank != 4:
        return
    for axis, letter, word in ((1, "h", "height"), (2, "w", "width")):
        size = site.attribute(f"filter_{word}") if weights is None else (weights.type.shape or ())[axis]
        source, target = data.type.shape[axis], result.type.shape[axis]
        if size is None or source is None:
            continue
        reach = (size - 1) * site.op.attributes.get(f"dilation_{letter}_factor", 1) + 1
        stride = site.attribute(f"stride_{letter}")
        same = site.attribute("padding") == "SAME"
        expected = -(-source // stride) if same else -(-(source - reach + 1) // stride)
        if _differ(max(expected, 0), target):
            site.fail(f"its {word} is {target}, but an interpreter computes {expected}")


CHECKS: Final[dict[str, Check]] = {
    "alike": _alike,
    "stored": _stored,
    "congruent": _congruent,
    "broadcast": _broadcast,
    "pairs": _pairs,
    "per_dim": _per_dim,
    "sized": _sized,
    "channels": _channels,
    "window": _window,
}
"""Trait -> its check."""
