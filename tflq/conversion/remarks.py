"""Sentences about a whole conversion that are no warnings: there was nothing to lower, or what the user gave for it,
rules and lines of a target file, was of no use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tflq.base.arguments import nearest
from tflq.base.errors import operators
from tflq.base.faults import name_of
from tflq.dialects.forms import INTEGER_EDGE
from tflq.dialects.tfl.state import Custom
from tflq.ir.ops import op_class, op_names

if TYPE_CHECKING:
    from tflq.ir.ops import Op
    from tflq.legalize.rule import Rule
    from tflq.targets.target import Target
    from tflq.transforms.pass_manager import Decision

_IN_INTEGER_FORM: Final = "this model is in the integer form: nothing to lower"
_FLOAT: Final = "no tensor is quantized: this is a float network, which 'tflq quantize' quantizes"


def of_model(decisions: Sequence[Decision]) -> Iterator[str]:
    """Why nothing of a model was lowered, if nothing was."""
    quantized = [d for d in decisions if any(v.type.quantized for v in d.op.tensors)]
    if quantized and all(d.reason == INTEGER_EDGE for d in quantized):
        yield _IN_INTEGER_FORM
    if not quantized and any(v.type.storage.is_float for d in decisions for v in d.op.tensors):
        yield _FLOAT


def of_rules(decisions: Sequence[Decision], rules: Mapping[str | type[Op], Sequence[Rule]]) -> Iterator[str]:
    """The rules of the user that no operator took."""
    used = {(_key(d.op), d.rule) for d in decisions if d.rule is not None}
    there = {_key(d.op) for d in decisions}
    for key, rules_of_key in rules.items():
        name = key if isinstance(key, str) else key.__name__
        for rule in rules_of_key:
            if (key, rule) not in used:
                why = "it applied to none of them" if key in there else _absent(key, there)
                yield f"rule '{name_of(rule)}' for {name} matched nothing: {why}"


def _absent(key: str | type[Op], there: set[str | type[Op]]) -> str:
    """Why the model has no operator of this key: a string names custom operators alone."""
    if isinstance(key, str):
        name = "tfl." + key.removeprefix("tfl.").lower()
        if name in op_names("tfl") and (builtin := op_class(name)) not in (None, Custom):
            what = f"a text is the code of a custom operator, and this is the builtin {name}"
            return f"{what}; its key is a class: from {builtin.__module__} import {builtin.__name__}"
    near = nearest(key, (code for code in there if isinstance(code, str)))
    return f"the model has no such operator{near and '; '}{near}"


def _key(op: Op) -> str | type[Op]:
    return op.code if isinstance(op, Custom) else type(op)


def of_target(decisions: Sequence[Decision], target: Target) -> Iterator[str]:
    """The lines of a target file that matched nothing, although they are the nearest to operators of that name."""
    used = {d.reason for d in decisions if d.path == "kept"}
    missed: dict[tuple[str, str], list[tuple[Decision, str]]] = {}
    for decision in decisions:
        name = decision.op.short_name
        if decision.path == "kept" or not decision.not_kernel or name not in target.kernels:
            continue
        signature, words = target.nearest(decision.op)
        if not signature.lowers and target.reason(signature) not in used:
            missed.setdefault((name, signature.text), []).append((decision, words))
    for (name, text), misses in missed.items():
        decision, words = min(misses, key=lambda miss: len(miss[1]))
        at = decision.op.location
        number = f"operator {at.operator}" if at is not None else "the operator"
        what = f"{name} = \"{text}\" of target '{target.name}' matched none of {operators(len(misses))}"
        yield f"{what}; nearest is {number}: {words}"
