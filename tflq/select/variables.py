"""Variables of the integer form → resource variables: their initial values are written by a function of its own, which
CALL_ONCE runs first.
"""

from __future__ import annotations

from tflq.ir.core import Function, Module, Op

__all__ = ["declare_variables"]


def declare_variables(module: Module) -> None:
    """In the place of VARIABLE: one new function that writes all initial values, called once by every function that
    declares any."""
    initial: dict[str, Op] = {}
    for function in module.functions:
        declarations = [op for op in function.ops if op.name == "tosa.variable"]
        if not declarations:
            continue
        for op in declarations:
            initial.setdefault(op.attributes["name"], op)
        call = Op("tfl.call_once", [], [], {"init_subgraph_index": len(module.functions)}, declarations[0].location)
        function.ops = [call, *(op for op in function.ops if op.name != "tosa.variable")]
    if initial:
        writes = [
            Op("tosa.variable_write", [op.operand(0)], [], {"name": name}, op.location) for name, op in initial.items()
        ]
        module.functions.append(Function("initial_values", [], [], writes))
