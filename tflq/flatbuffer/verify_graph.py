"""The graph: every value written once, before it is read; subgraph calls without recursion.

An interpreter runs operators in file order. A value is known if it is an input of its function, a constant, a variable
(its memory outlives a run) or a result of an earlier operator. Source: `VerifySubGraphConsistency` in
tflite/core/tools/verifier.cc, `Subgraph::PrepareOpsStartingAt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.dialects.declare import Operator
from tflq.dialects.tfl.control import If, While
from tflq.dialects.traits.effects import Calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tflq.ir.core import Function, Module, Op, Value
    from tflq.ir.notes import Notes

__all__ = [
    "verify_call_arity",
    "verify_calls",
    "verify_flow",
    "verify_operator_codes",
    "verify_signatures",
]

_PLACEHOLDER = 127


def verify_operator_codes(module: Module, notes: Notes) -> None:
    """Both code fields agree, custom operators have a name, versions start at 1."""
    from tflq.flatbuffer.layout import enum

    values = enum("BuiltinOperator").values
    for index, row in enumerate(module.operator_codes):
        where = f"Model.operator_codes[{index}]"
        old, new = int(row["deprecated_builtin_code"]), values[row["builtin_code"]]
        if old and new and old not in (min(new, _PLACEHOLDER), new):
            notes.fail(where, f"deprecated_builtin_code {old} and builtin_code {new} name different operators")
        if old < 0 or max(old, new) == _PLACEHOLDER:
            notes.fail(where, f"deprecated_builtin_code {old} names no operator, and builtin_code does not either")
        if max(old, new) == values["CUSTOM"] and not row["custom_code"]:
            notes.fail(where, "custom operator without a name")
        if row["version"] < 1:
            notes.fail(where, f"operator version {row['version']} is below 1")


def verify_flow(function: Function, index: int, notes: Notes) -> None:
    """Values are written once and before they are read."""
    where = f"subgraph {index}"
    inputs = set(function.inputs)
    if len(inputs) != len(function.inputs):
        notes.warn(where, "one tensor is listed twice as an input", remedy="list it once")
    known = inputs.copy()
    for op in function.ops:
        for slot, value in enumerate(op.operands):
            if value is None or value in known or _is_given(value):
                continue
            if value.producer is not None:
                notes.fail_op(op, f"operand {slot}, '{value.name}', is read before it is written")
            if (value.info.get("quantization") or {}).get("details") is None:
                notes.fail_op(op, f"operand {slot}, '{value.name}', is never written")
            what = f"operand {slot}, '{value.name}', has quantization details and no data"
            notes.warn_op(op, what, remedy="store its data as a constant")
        for slot, value in enumerate(op.results):
            if value in known:
                kind = "an input of the subgraph" if value in inputs else "written twice"
                notes.fail_op(op, f"result {slot}, '{value.name}', is {kind}")
            if value.buffer is not None and value.buffer.data.size:
                notes.fail_op(op, f"result {slot}, '{value.name}', is a constant")
            if value.info.get("is_variable"):
                notes.fail_op(op, f"result {slot}, '{value.name}', is a variable")
            known.add(value)
    for slot, value in enumerate(function.outputs):
        if value not in known and not _is_given(value):
            notes.fail(where, f"output {slot}, '{value.name}', is never written")


def _is_given(value: Value) -> bool:
    """Whether a value has contents before any operator runs."""
    return value.is_constant or "is_variable" in value.info or "external_buffer" in value.info


def _called_functions(op: Op) -> Iterable[tuple[str, int]]:
    """The subgraphs an op calls: attribute name and index."""
    calls = op.trait(Calls) if isinstance(op, Operator) else None
    return () if calls is None else calls.called(op)


def verify_signatures(module: Module, notes: Notes) -> None:
    """Each signature has a name of its own, and names inputs and outputs of its subgraph."""
    keys: set[str | None] = set()
    for signature in module.signatures or ():
        where = f"signature '{signature.key}'"
        if signature.key in keys:
            notes.fail(where, "there are two of this name")
        keys.add(signature.key)
        function = module.functions[signature.function]
        for kind, pairs, values in (
            ("input", signature.inputs, function.inputs),
            ("output", signature.outputs, function.outputs),
        ):
            known = set(values)
            for name, value in pairs or ():
                if value not in known:
                    what = f"{kind} '{name}' is not an {kind} of subgraph {signature.function}"
                    notes.warn(where, what, remedy="name one, or leave it out")


def verify_calls(module: Module, notes: Notes) -> None:
    """Subgraph indices are in range, and no subgraph reaches itself."""
    calls: list[list[int]] = []
    for function in module.functions:
        called: list[int] = []
        for op in function.ops:
            for attribute, index in _called_functions(op):
                if not 0 <= index < len(module.functions):
                    notes.fail_op(op, f"{attribute} {index} is not one of the {len(module.functions)} subgraphs")
                called.append(index)
        calls.append(called)
    done: set[int] = set()
    for root in range(len(calls)):
        _no_recursion(root, calls, done, notes)


def _no_recursion(root: int, calls: list[list[int]], done: set[int], notes: Notes) -> None:
    """Depth first without Python's own recursion, which a chain of many subgraphs would exhaust."""
    if root in done:
        return
    path, pending = [root], [iter(calls[root])]
    open_ones = {root}
    while pending:
        following = next(pending[-1], None)
        if following is None:
            pending.pop()
            closed = path.pop()
            open_ones.discard(closed)
            done.add(closed)
        elif following in open_ones:
            chain = " → ".join(map(str, [*path[path.index(following) :], following]))
            notes.fail(f"subgraph {following}", f"it calls itself: {chain}")
        elif following not in done:
            path.append(following)
            open_ones.add(following)
            pending.append(iter(calls[following]))


def verify_call_arity(module: Module, op: Op, notes: Notes) -> None:
    """IF and WHILE pass as many values as their subgraphs take and return. Source: kernels/if.cc, kernels/while.cc."""
    if not isinstance(op, (If, While)):
        return
    passed = len(op.operands) - isinstance(op, If)
    for attribute, index in _called_functions(op):
        function: Function = module.functions[index]
        returned = 1 if attribute == "cond_subgraph_index" else len(op.results)
        if len(function.inputs) != passed or len(function.outputs) != returned:
            stated = f"{len(function.inputs)} inputs and {len(function.outputs)} outputs"
            notes.fail_op(op, f"{attribute} {index} has {stated}, where {passed} and {returned} are expected")
