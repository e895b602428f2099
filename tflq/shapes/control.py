"""Shapes of operators that run functions of the module: calls, branches, loops.

A loop's shapes are those that no iteration changes; branches that differ leave dims open.
Sources: kernels/if.cc, while.cc, call_once.cc, stablehlo_case.cc, stablehlo_composite.cc, stablehlo_while.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.control import Call, CallOnce, If, While
from tflq.dialects.tfl.stablehlo import StablehloCase, StablehloComposite, StablehloWhile
from tflq.ir.types import Shape
from tflq.shapes.known import Known
from tflq.shapes.site import Misfit, Site, shape

__all__ = ["join_known", "join_shapes"]


def join_shapes(one: Shape, other: Shape) -> Shape:
    """What holds of both: dims that differ are open."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def join_known(one: Known | None, other: Known | None) -> Known | None:
    return None if one is None or other is None else one.join(other)


def _branches(site: Site, functions: Sequence[int], first: int) -> list[Shape]:
    shapes: Sequence[Shape] | None = None
    known: Sequence[Known | None] = []
    for function in functions:
        found, elements = site.call(function, site.shapes[first:], site.known[first:])
        known = elements if shapes is None else [join_known(a, b) for a, b in zip(known, elements, strict=True)]
        shapes = found if shapes is None else [join_shapes(a, b) for a, b in zip(shapes, found, strict=True)]
    site.results = known
    return list(shapes or ())


@shape(Call)
def _call(site: Site) -> list[Shape]:
    return _branches(site, [site.attributes["subgraph"]], 0)


@shape(StablehloComposite)
def _composite(site: Site) -> list[Shape]:
    return _branches(site, [site.attributes["decomposition_subgraph_index"]], 0)


@shape(If)
def _if(site: Site) -> list[Shape]:
    return _branches(site, [site.attributes["then_subgraph_index"], site.attributes["else_subgraph_index"]], 1)


@shape(StablehloCase)
def _case(site: Site) -> list[Shape]:
    return _branches(site, [int(i) for i in site.attributes["branch_subgraph_indices"]], 1)


@shape(CallOnce)
def _call_once(site: Site) -> list[Shape]:
    site.call(site.attributes["init_subgraph_index"], [], [])
    return []


@shape(While, StablehloWhile)
def _while(site: Site) -> list[Shape]:
    """Elements that the body hands on unchanged stay known: they are the same ones after each round."""
    shapes, known = list(site.shapes), list(site.known)
    while True:
        after, elements = site.call(site.attributes["body_subgraph_index"], shapes, known)
        if len(after) != len(shapes):
            raise Misfit("its body has not as many results as arguments")
        joined = [join_shapes(a, b) for a, b in zip(shapes, after, strict=True)]
        kept = [join_known(a, b) for a, b in zip(known, elements, strict=True)]
        settled = joined == shapes and all(_as_known(a, b) for a, b in zip(known, kept, strict=True))
        shapes, known = joined, kept
        if settled:
            break
    site.call(site.attributes["cond_subgraph_index"], shapes, known)
    site.results = known
    return shapes


def _as_known(one: Known | None, other: Known | None) -> bool:
    return one is other if one is None or other is None else one.same(other)
