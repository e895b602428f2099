"""Inlining of calls, since each call of a function may have other parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.dialects.func import Call
from tflq.dialects.quant.regions import Region
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Function, Module, Op, Value, walk
from tflq.ir.rewriting import copied, replace_values


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
