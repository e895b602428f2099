"""A module with ops of MLIR's core dialects → one in the tfl form without them.

Functions that are called by name are put in the place of their calls; private ones, and declarations, are no functions
of the file. What has no exact form is refused, all at once.
"""

from __future__ import annotations

from tflq.dialects.calls import callees, renumber
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Function, Module, Value
from tflq.ir.rewriting import copied
from tflq.legalize.core.translation import Translation

__all__ = ["lower_core"]


def lower_core(module: Module) -> None:
    """Replaces the ops (the module is changed in place). UnsupportedError lists every op that has no exact form."""
    refused: list[Reason] = []
    callable_ = {str(f.name): f for f in module.functions if not f.info.get("declaration")}
    named = {signature.function for signature in module.signatures or ()}
    named |= {index for op in module.ops() for index in callees(op)}
    kept = [
        index
        for index, function in enumerate(module.functions)
        if not function.info.get("declaration") and (index in named or not _is_private(function))
    ]
    kept = kept or [index for index, f in enumerate(module.functions) if not f.info.get("declaration")]
    copies = {name: _detached(function) for name, function in callable_.items()}
    made: dict[Value, Value] = {}
    for index in kept:
        function = module.functions[index]
        made |= Translation(function, index, copies, refused, module.source).run()
    if refused:
        remedy = "write it in the ops that docs/core.md lists"
        raise UnsupportedError(f"{len(refused)} operator(s) cannot be converted:", refused, remedy=remedy)
    numbers = {old: new for new, old in enumerate(kept)}
    module.functions = [module.functions[index] for index in kept]
    for op in module.ops():
        renumber(op, numbers)
    if module.signatures is not None:
        for signature in module.signatures:
            signature.function = numbers[signature.function]
        module.signatures = [signature.with_outputs(made) for signature in module.signatures]


def _is_private(function: Function) -> bool:
    return function.info.get("visibility") == "private"


def _detached(function: Function) -> Function:
    """A copy: what is put in the place of calls, whatever becomes of the function itself."""
    known = {value: Value(value.type) for value in function.inputs}
    ops = copied(function.ops, known)
    return Function(
        function.name, list(known.values())[: len(function.inputs)], [known.get(v, v) for v in function.outputs], ops
    )
