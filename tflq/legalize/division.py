"""DIV of 8-bit tensors, a table of all pairs; FLOOR_DIV and FLOOR_MOD, which disregard quantization parameters.

Sources: kernels/div.cc, floor_div.cc, floor_mod.cc; arithmetic in `tflq.numerics.division`.
"""

from __future__ import annotations

from tflq.ir.builder import broadcast
from tflq.ir.core import Op
from tflq.ir.types import TensorType, i8, i16, i32, i64, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name, per_layer
from tflq.numerics.activation import activation_range
from tflq.numerics.division import division_table

__all__: list[str] = []


@rule("tfl.div")
def div(op: Op, b: RuleBuilder) -> Answer:
    """The quotient of every pair of 8-bit values, as the kernel computes it."""
    elements = per_layer(op)
    if isinstance(elements, NotApplicable):
        return elements
    first, second, output = elements
    storage = output.storage
    if storage not in (i8, ui8) or first.storage != storage or second.storage != storage:
        return NotApplicable(f"DIV has no table for {first.storage}, {second.storage} → {storage}")
    activation = op.attributes.get("fused_activation_function", "NONE")
    zero_points = (first.zero_point, second.zero_point, output.zero_point)
    try:
        bounds = activation_range(activation, storage.minimum, storage.maximum, output.scale, output.zero_point)
        table = division_table(storage.dtype, (first.scale, second.scale, output.scale), zero_points, bounds)
    except ValueError as error:
        return NotApplicable(f"the kernel refuses these parameters: {error}")
    x, y = b.value(op.operand(0)), b.value(op.operand(1))
    shape = broadcast(x.type.shape, y.type.shape)
    return b.emit("ext.table_2d", [x, y, b.constant(table.reshape(-1), storage)], TensorType(shape, storage))


@rule("tfl.floor_div", "tfl.floor_mod")
def floor_division(op: Op, b: RuleBuilder) -> Answer:
    """The kernels divide stored integers, and stop at a zero."""
    storage = op.result.type.storage
    if storage not in (i8, i16, i32, i64) or any(v.type.storage != storage for v in op.values):
        return NotApplicable(
            f"{kernel_name(op)} has no kernel for {' and '.join(str(v.type.storage) for v in op.values)}"
        )
    if op.name == "tfl.floor_div" and storage is i64:
        return NotApplicable("FLOOR_DIV has no kernel for i64")
    operands = [b.value(op.operand(0)), b.value(op.operand(1))]
    version = {"version": op.info["version"]} if "version" in op.info else {}
    made = b.op(op.name, operands, [op.result.type.stripped()], op.attributes, version)
    return Rewritten(made.results, warning="the kernel disregards quantization parameters")
