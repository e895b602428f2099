"""Functions as parameters are propagated through them: calls are inlined, since each call of a function may have other
parameters, and regions are in an order that is the graph's, not the text's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from tflq.dialects.core_tensors import Call
from tflq.dialects.regions import Region
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Function, Module, Op, Value, walk
from tflq.ir.rewriting import copied, replace_values
from tflq.passes.regions.lookup import regions_of


def inline_calls(module: Module) -> bool:
    """Inlines every `func.call` of a function that holds regions, or calls one that does, since each call may have
    other parameters; private functions that nothing refers to any more go. Returns whether there were any.
    UnsupportedError if one calls itself."""
    by_name = {str(function.name): function for function in module.functions}
    holding = {name for name, function in by_name.items() if any(isinstance(op, Region) for op in function.ops)}
    calls = {name: {str(op.callee) for op in _calls(f.ops)} for name, f in by_name.items()}
    while wider := {name for name, called in calls.items() if called & holding and name not in holding}:
        holding |= wider
    done: set[str] = set()
    modified = False
    for name in by_name:
        modified |= _inline(module, by_name, name, holding, done, ())
    if modified:
        _drop_unused(module, holding)
    return modified


def _calls(ops: Sequence[Op]) -> list[Call]:
    return [op for op in walk(ops) if isinstance(op, Call)]


def _inline(
    module: Module,
    by_name: Mapping[str, Function],
    name: str,
    holding: set[str],
    done: set[str],
    path: tuple[str, ...],
) -> bool:
    """Inlines the calls in a function, after those in the functions that it calls."""
    if name in path and name in holding:
        what = f"function @{name} calls itself, by way of {', '.join('@' + n for n in path)}"
        raise UnsupportedError(what, [Reason(what, remedy="regions are quantized per call, so write the calls out")])
    if name in done:
        return False
    function = by_name[name]
    ops: list[Op] = []
    replacements: dict[Value, Value] = {}
    for op in function.ops:
        callee = str(op.callee) if isinstance(op, Call) else ""
        if callee not in holding:
            ops.append(op)
            continue
        _inline(module, by_name, callee, holding, done, (*path, name))
        called = by_name[callee]
        known: dict[Value, Value] = {
            inner: value for inner, value in zip(called.inputs, op.operands, strict=True) if value is not None
        }
        ops += copied(called.ops, known)
        replacements |= {r: known.get(v, v) for r, v in zip(op.results, called.outputs, strict=True)}
    done.add(name)
    if not replacements and ops == function.ops:
        return False
    function.ops = ops
    replace_values(module, function, replacements)
    return True


def _drop_unused(module: Module, holding: set[str]) -> None:
    """Drops private functions that were inlined and that nothing names any more."""
    named = {str(item) for op in walk(list(module.ops())) for item in op.attributes.values() if isinstance(item, str)}
    kept = [
        f
        for f in module.functions
        if f.info.get("visibility") != "private" or str(f.name) in named or str(f.name) not in holding
    ]
    if not module.signatures and len(kept) < len(module.functions):
        module.functions = kept


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
