"""The rule engine: a module in the tfl form → the same module in the integer form.

`accepted.py` sees to types that files do not have, `walk.py` goes through a function, `deciding.py` says which path an
operator takes, `calls.py` which functions there are. All refusals are collected into one `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.errors import UnsupportedError
from tflq.ir.core import Function, Module, Op
from tflq.ir.notes import COPIED
from tflq.legalize.accepted import accept
from tflq.legalize.calls import Calls, copied
from tflq.legalize.deciding import Policy, Semantics, State
from tflq.legalize.decision import Decision
from tflq.legalize.densified import densified
from tflq.legalize.rule import Rule
from tflq.legalize.variables import variables_of
from tflq.legalize.walk import Shared, Walk
from tflq.targets import INTEGER, Target

__all__ = ["legalize"]

_DENSE = "a sparse constant, made dense"


def legalize(
    module: Module,
    *,
    fallback: bool = True,
    state: State = "kept",
    semantics: Semantics = "interpreter",
    target: Target = INTEGER,
    rules: Mapping[str | type[Op], Sequence[Rule]] | None = None,
) -> tuple[Module, list[Decision]]:
    """The module in the integer form, and one decision per operator; the values of the module given are used on.

    state: whether operators with variable tensors are "kept", or go by their rules to variables: TFLite's ("variables",
    with a warning, since they outlive `reset_all_variables()`) or TOSA's ("lowered").
    semantics: what holds where a reference kernel disregards quantization parameters: the kernel ("interpreter", with
    a warning), or the parameters ("real").
    target: whose quantized kernels are kept. rules: a user's, by custom code or class.
    UnsupportedError lists every operator refused, or every tensor whose type cannot be honoured.
    """
    decisions: list[Decision] = []
    policy, accepted = Policy(fallback, state, semantics, target, rules or {}), accept(module)
    calls = Calls(module, strips=not target.kernels, real=policy.real)
    shared = Shared(policy, calls, variables_of(module), bounds=accepted.bounds)
    functions: list[Function] = []
    for place, (index, interface) in enumerate(shared.calls.made):
        function, rows = module.functions[index], decisions
        if place >= len(module.functions):
            function, rows = copied(function), list[Decision]()
        function, spread = densified(function)
        rows += [Decision(op, "integer" if op.result.type.quantized else "kept", _DENSE) for op in spread]
        functions.append(Walk(function, interface, shared, rows).run())
    if shared.refused:
        reasons = list(dict.fromkeys(shared.refused))
        raise UnsupportedError(f"{len(reasons)} operator(s) cannot be converted:", reasons)
    result = Module(
        functions,
        None if module.signatures is None else [s.with_outputs(shared.outputs) for s in module.signatures],
        module.metadata,
        module.description,
        module.version,
        info=module.info,
        source=module.source,
    )
    result.warnings = [w for w in module.warnings if not w.endswith(COPIED)] + accepted.warnings
    return result, decisions
