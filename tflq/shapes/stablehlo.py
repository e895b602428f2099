"""Shapes of StableHLO operators that carry what they need in their options.

Sources: kernels/stablehlo_pad.cc, stablehlo_gather.cc, stablehlo_reduce_window.cc; for those without a kernel the
StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.dialects.inference import Misfit, NotInferred, agree, product, text
from tflq.dialects.tfl.stablehlo import (
    StablehloCase,
    StablehloClamp,
    StablehloComposite,
    StablehloConcatenate,
    StablehloDotGeneral,
    StablehloDynamicSlice,
    StablehloDynamicUpdateSlice,
    StablehloGather,
    StablehloPad,
    StablehloReduce,
    StablehloReduceWindow,
    StablehloReshape,
    StablehloRngBitGenerator,
    StablehloSelect,
    StablehloSlice,
    StablehloSort,
    StablehloTranspose,
    StablehloWhile,
)
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape
from tflq.shapes.control import branches, loop
from tflq.shapes.indexing import updated
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


def _option(op: Op, name: str, count: int | None = None, default: int | None = None) -> list[int]:
    """The numbers of an option; `count`: how many there must be, `default`: what each is if there are none."""
    stated = getattr(op, name)
    found = [] if stated is None else [int(v) for v in stated]
    if not found and default is not None:
        found = [default] * (count or 0)
    if count is not None and len(found) != count:
        raise Misfit(f"its {name} are {len(found)}, where {count} are expected")
    return found


def _axes(op: Op, site: Site, name: str, rank: int) -> list[int]:
    """Dims that an option names."""
    return [site.axis(axis, rank) for axis in _option(op, name)]


@shape_of(StablehloTranspose)
def _transpose(op: StablehloTranspose, site: Site) -> Shape:
    dims = site.dims(op.input)
    return tuple(dims[site.axis(p, len(dims))] for p in _option(op, "permutation", len(dims)))


@shape_of(StablehloConcatenate)
def _concatenate(op: StablehloConcatenate, site: Site) -> Shape:
    return site.joined(op.inputs, op.dimension)


@shape_of(StablehloReshape)
def _reshape(op: StablehloReshape, site: Site) -> Shape:
    """What the file says: it is the only place that does."""
    stated, count = op.result.type.shape, product(site.dims(op.input))
    if stated is None or None in stated:
        raise NotInferred("the file does not say what shape it makes")
    if count not in (None, product(stated)):
        raise Misfit(f"{text(site.dims(op.input))} has not as many elements as the shape {text(stated)}")
    return stated


@shape_of(StablehloSlice)
def _slice(op: StablehloSlice, site: Site) -> Shape:
    rank = len(site.dims(op.input))
    parts = (_option(op, name, rank) for name in ("start_indices", "limit_indices", "strides"))
    return tuple(len(range(*part)) for part in zip(*parts, strict=True))


@shape_of(StablehloDynamicSlice)
def _dynamic_slice(op: StablehloDynamicSlice, site: Site) -> Shape:
    rank = len(site.dims(op.input))
    agree(len(op.operands) - 1, rank, "starts and dims")
    return tuple(_option(op, "slice_sizes", rank))


@shape_of(StablehloDynamicUpdateSlice)
def _dynamic_update_slice(op: StablehloDynamicUpdateSlice, site: Site) -> Shape:
    """A start for each dim, each an operand."""
    dims = updated(site, op.input, op.update)
    agree(len(op.starts), len(dims), "starts and dims")
    return dims


@shape_of(StablehloPad)
def _pad(op: StablehloPad, site: Site) -> Shape:
    """Edges may be negative; between two elements `interior` are added."""
    dims = site.dims(op.input)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    parts = (_option(op, name, len(dims)) for name in names)
    out: list[int | None] = []
    for dim, low, high, inner in zip(dims, *parts, strict=True):
        out.append(None if dim is None else max(dim + max(dim - 1, 0) * inner + low + high, 0))
    return tuple(out)


@shape_of(StablehloGather)
def _gather(op: StablehloGather, site: Site) -> Shape:
    """Dims of the slices at `offset_dims`, those of the indices elsewhere."""
    dims, indices = site.dims(op.input), site.dims(op.indices)
    collapsed, offsets = set(_axes(op, site, "collapsed_slice_dims", len(dims))), _option(op, "offset_dims")
    sizes, mapped = _option(op, "slice_sizes", len(dims)), _axes(op, site, "start_index_map", len(dims))
    slices = [s for i, s in enumerate(sizes) if i not in collapsed]
    at = int(op.index_vector_dim)
    agree((*indices, 1)[site.axis(at, len(indices) + 1)], len(mapped), "the lengths of indices and start_index_map")
    batch = [d for i, d in enumerate(indices) if i != at]
    rank = len(slices) + len(batch)
    if len(offsets) != len(slices) or any(not 0 <= o < rank for o in offsets):
        raise Misfit("its offset_dims do not fit its slices")
    inner: Iterator[int] = iter(slices)
    outer: Iterator[int | None] = iter(batch)
    return tuple(next(inner) if i in offsets else next(outer) for i in range(rank))


@shape_of(StablehloDotGeneral)
def _dot_general(op: StablehloDotGeneral, site: Site) -> Shape:
    """Batch dims, then what is left of each side."""
    a, b = site.dims(op.lhs), site.dims(op.rhs)
    batch, inner = (_pairs(op, site, kind, len(a), len(b)) for kind in ("batching", "contracting"))
    gone_a, gone_b = {i for i, _ in batch}, {j for _, j in batch}
    for i, j in inner:
        agree(a[i], b[j], "the dims that are multiplied")
        gone_a.add(i)
        gone_b.add(j)
    lead = [agree(a[i], b[j], "the batch dims") for i, j in batch]
    return (
        *lead,
        *(d for i, d in enumerate(a) if i not in gone_a),
        *(d for j, d in enumerate(b) if j not in gone_b),
    )


def _pairs(op: Op, site: Site, kind: str, left: int, right: int) -> list[tuple[int, int]]:
    """Dims of both sides that belong together."""
    sides = [_axes(op, site, f"{side}_{kind}_dimensions", rank) for side, rank in (("lhs", left), ("rhs", right))]
    if len(sides[0]) != len(sides[1]):
        raise Misfit(f"its {kind} dims are {len(sides[0])} on the left, {len(sides[1])} on the right")
    return list(zip(*sides, strict=True))


@shape_of(StablehloReduce)
def _reduce(op: StablehloReduce, site: Site) -> list[Shape]:
    gone = set(_axes(op, site, "dimensions", len(site.dims(op.inputs[0]))))
    reduced = op.inputs[: len(op.outputs)]
    return [tuple(d for i, d in enumerate(site.dims(value)) if i not in gone) for value in reduced]


@shape_of(StablehloReduceWindow)
def _reduce_window(op: StablehloReduceWindow, site: Site) -> list[Shape]:
    """The input dilated, padded, then reduced over windows."""
    dims = site.dims(op.inputs[0])
    rank = len(dims)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    window, strides, base, dilations = (_option(op, name, rank, 1) for name in names)
    padding = _option(op, "padding", 2 * rank, 0)
    out = [
        _windows(*row, padding[2 * i : 2 * i + 2])
        for i, row in enumerate(zip(dims, window, strides, base, dilations, strict=True))
    ]
    return [tuple(out)] * len(op.results)


def _windows(dim: int | None, window: int, stride: int, base: int, dilation: int, sides: Sequence[int]) -> int | None:
    if dim is None:
        return None
    extent = (dim - 1) * base + 1 + sum(sides)
    reach = (window - 1) * dilation + 1
    return 0 if extent < reach else (extent - reach) // stride + 1


@shape_of(StablehloSort)
def _sort(op: StablehloSort, site: Site) -> list[Shape]:
    return [site.dims(value) for value in op.inputs[: len(op.outputs)]]


@shape_of(StablehloRngBitGenerator)
def _random_bits(op: StablehloRngBitGenerator, site: Site) -> list[Shape]:
    """What is drawn has the shape that the file states."""
    return [site.dims(op.state), op.output.type.shape]


@shape_of(StablehloSelect)
def _select(op: StablehloSelect, site: Site) -> Shape:
    """The condition may be a scalar."""
    return site.common([op.on_true, op.on_false, *_with_dims(site, op.condition)])


@shape_of(StablehloClamp)
def _clamp(op: StablehloClamp, site: Site) -> Shape:
    """The bounds may be scalars."""
    return site.common([op.input, *_with_dims(site, op.low, op.high)])


def _with_dims(site: Site, *values: Value) -> list[Value]:
    """Those that are not scalars."""
    return [value for value in values if site.dims(value)]


@shape_of(StablehloComposite)
def _composite(op: StablehloComposite, site: Site) -> list[Shape]:
    return branches(site, [op.decomposition_subgraph_index], op.operands)


@shape_of(StablehloCase)
def _case(op: StablehloCase, site: Site) -> list[Shape]:
    return branches(site, [int(i) for i in op.branch_subgraph_indices], op.operands[1:])


@shape_of(StablehloWhile)
def _while(op: StablehloWhile, site: Site) -> list[Shape]:
    return loop(op, site)
