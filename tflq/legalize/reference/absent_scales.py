"""Kernels that know one scale per tensor, on tensors that have several: they find a scale and a zero point of 0, or the
first of them, and run.

The operator is then what its kernel makes of such a tensor, with a warning. Most divide by the result's scale, which is
not defined for 0: there, and where parameters must hold, the real function is computed. Sources:
core/interpreter_builder.cc (GetLegacyQuantization), kernels/elementwise.cc; which kernels run is measured.
"""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i16
from tflq.legalize.rule import RULES, Answer, NotApplicable, Rejected, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name

__all__: list[str] = []

_FIRST = ("tfl.abs", "tfl.log", "tfl.rsqrt", "tfl.sqrt")
"""Those that take the first scale and zero point."""
_LOGARITHM = ("tfl.logistic", "tfl.tanh")
"""Those that take the logarithm of int16's scale."""
_EQUAL = ("tfl.reduce_max", "tfl.reduce_min")
"""Those that ask for equal scales of operand and result, and use none."""
_NAMES = (
    *("div", "exp", "gelu", "hard_swish", "leaky_relu", "logistic", "mean", "mul", "prelu", "quantize"),
    *("reduce_prod", "relu", "relu6", "relu_0_to_1", "relu_n1_to_1", "sum", "tanh"),
)


@rule("tfl.neg", *_FIRST, *_EQUAL, *(f"tfl.{name}" for name in _NAMES))
def absent_scales(op: Op, b: RuleBuilder) -> Answer:
    """The operator on tensors of the one scale and zero point that its kernel takes."""
    several = [v for v in op.values if isinstance(v.type.element, UniformQuantizedPerAxisType)]
    if not several or b.real or not _defined(op, several):
        return NotApplicable("")
    first, scale = op.name in _FIRST, float(op.name in _EQUAL)
    seen = Op(op.name, [], [_seen(v, first, scale) for v in op.results], op.attributes, op.location, info=op.info)
    for value in op.operands:
        stand_in = value if value is None else _seen(value, first, scale)
        if value is not None and stand_in is not None and stand_in is not value:
            b.alias(stand_in, value)
        seen.operands.append(stand_in)
    for candidate in RULES[op.name]:
        if candidate is absent_scales or not candidate.__module__.startswith("tflq.legalize.reference."):
            continue
        start = len(b.ops)
        answer = candidate(seen, b)
        if isinstance(answer, Rejected):
            return answer
        if isinstance(answer, NotApplicable):
            del b.ops[start:]
            continue
        results = [answer] if isinstance(answer, Value) else answer.results if isinstance(answer, Rewritten) else answer
        taken = "takes the first" if first else "finds none, and takes 0"
        return Rewritten(results, warning=f"'{several[0].name}' has several scales: {kernel_name(op)}'s kernel {taken}")
    return NotApplicable("")


def _defined(op: Op, several: list[Value]) -> bool:
    """Whether the kernel runs, and neither divides by a scale of 0 nor takes its logarithm."""
    if op.name in _EQUAL:
        return all(v in several for v in (op.operand(0), op.result))
    if op.name == "tfl.div" and op.operand(1) in several:  # which its kernel refuses
        return False
    if op.name in _LOGARITHM and op.result.type.storage == i16:
        return False
    return op.name in ("tfl.neg", *_FIRST) or not any(v in several for v in op.results)


def _seen(value: Value, first: bool, scale: float) -> Value:
    """A tensor as the kernel finds it: by its first scale, or by the one given."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedPerAxisType):
        return value
    first = first or element.scales.size == 1
    scale, zero = (float(element.scales[0]), int(element.zero_points[0])) if first else (scale, 0)
    one = UniformQuantizedType(
        element.storage, element.expressed, scale, zero, element.storage_min, element.storage_max
    )
    return Value(value.type.with_element(one), value.name, buffer=value.buffer)
