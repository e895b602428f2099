"""An order of regions that is the graph's, not the text's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tflq.dialects.quant.regions import Region
from tflq.ir.core import Function, Op
from tflq.passes.regions.lookup import regions_of


def topological(function: Function) -> Sequence[Region]:
    """The regions, each after those that it needs, in the order in which the results need them; those that no result
    needs are last, ordered by their descriptions."""
    order: list[Region] = []
    seen: set[Op] = set()
    for value in function.outputs:
        _visit(value.producer, seen, order)
    if unneeded := [region for region in regions_of(function.ops) if region not in seen]:
        for region in sorted(unneeded, key=_descriptions(function).__getitem__):
            _visit(region, seen, order)
    return order


def _visit(start: Op | None, seen: set[Op], order: list[Region]) -> None:
    """Adds an op's regions to an order, if it is one, behind those that it needs. seen: the ops that were visited."""
    stack: list[tuple[Op | None, bool]] = [(start, False)]
    while stack:
        op, finished = stack.pop()
        if op is None or (op in seen and not finished):
            continue
        if finished:
            if isinstance(op, Region):
                order.append(op)
            continue
        seen.add(op)
        stack.append((op, True))
        stack += [(value.producer, False) for value in reversed(op.operands) if value is not None]


def _descriptions(function: Function) -> dict[Op, tuple[str, str]]:
    """A description of each op, and a hash of it and of all that the op needs: independent of the order of the ops."""
    known = {value: f"argument {place}" for place, value in enumerate(function.inputs)}
    descriptions = {}
    for op in function.ops:
        said = f"{op.name} {[str(op.attributes.get(key)) for key in ('kernel', 'input_specs', 'output_specs')]}"
        needed = [known.get(v, f"{v.name} {v.type}") if v is not None else "" for v in op.operands]
        total = hashlib.sha256(f"{said} {needed}".encode()).hexdigest()
        descriptions[op] = said, total
        known |= {value: f"{total} {place}" for place, value in enumerate(op.results)}
    return descriptions
