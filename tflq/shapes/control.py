"""Shapes of operators that run functions of the module: calls, branches, loops.

A loop's shapes are those that no iteration changes; branches that differ leave dims open.
Sources: kernels/if.cc, while.cc, call_once.cc, stablehlo_case.cc, stablehlo_composite.cc, stablehlo_while.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflq.analysis.known import Known
from tflq.dialects.inference import Misfit
from tflq.dialects.tfl.control import Call, CallOnce, If, While
from tflq.ir.core import Value
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__ = ["branches", "join_known", "join_shapes", "loop"]


def join_shapes(one: Shape, other: Shape) -> Shape:
    """What holds of both: dims that differ are open."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def join_known(one: Known | None, other: Known | None) -> Known | None:
    return None if one is None or other is None else one.join(other)


def branches(site: Site, functions: Sequence[int], arguments: Sequence[Value | None]) -> list[Shape]:
    """What holds of the results of all these functions on the same arguments."""
    shapes: Sequence[Shape] | None = None
    known: Sequence[Known | None] = []
    given = site.shapes(arguments), site.elements(arguments)
    for function in functions:
        found, elements = site.call(function, *given)
        known = elements if shapes is None else [join_known(a, b) for a, b in zip(known, elements, strict=True)]
        shapes = found if shapes is None else [join_shapes(a, b) for a, b in zip(shapes, found, strict=True)]
    site.results = known
    return list(shapes or ())


@shape_of(Call)
def _call(op: Call, site: Site) -> list[Shape]:
    return branches(site, [op.subgraph], op.operands)


@shape_of(If)
def _if(op: If, site: Site) -> list[Shape]:
    return branches(site, [op.then_subgraph_index, op.else_subgraph_index], op.operands[1:])


@shape_of(CallOnce)
def _call_once(op: CallOnce, site: Site) -> list[Shape]:
    site.call(op.init_subgraph_index, [], [])
    return []


@shape_of(While)
def loop(op: Any, site: Site) -> list[Shape]:
    """Of WHILE, STABLEHLO_WHILE. Elements that the body hands on unchanged stay known: they are the same each round."""
    shapes, known = site.shapes(op.operands), site.elements(op.operands)
    while True:
        after, elements = site.call(op.body_subgraph_index, shapes, known)
        if len(after) != len(shapes):
            raise Misfit("its body has not as many results as arguments")
        joined = [join_shapes(a, b) for a, b in zip(shapes, after, strict=True)]
        kept = [join_known(a, b) for a, b in zip(known, elements, strict=True)]
        settled = joined == shapes and all(_as_known(a, b) for a, b in zip(known, kept, strict=True))
        shapes, known = joined, kept
        if settled:
            break
    site.call(op.cond_subgraph_index, shapes, known)
    site.results = known
    return shapes


def _as_known(one: Known | None, other: Known | None) -> bool:
    return one is other if one is None or other is None else one.same(other)
