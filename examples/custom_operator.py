"""A rule for a custom operator: `tflq convert model.tflite out.tflite --rules custom_operator.py`.

`Threshold` gives its input where its stored integer is above the int32 in the operator's options, else zero. The input
and the result have the same parameters.
"""

import numpy as np

import tflq
from tflq import NotApplicable, RuleBuilder
from tflq.dialects.tfl.state import Custom
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i32


def threshold(op: Custom, b: RuleBuilder) -> Value:
    """x > threshold ? x : zero point, on stored integers."""
    x, element = op.inputs[0], op.outputs[0].type.element
    if x is None or not isinstance(element, UniformQuantizedType) or x.type.element != element:
        raise NotApplicable("the input and the result must have the same parameters")
    (least,) = np.frombuffer(op.info["custom_options"], "<i4")
    wide = b.cast(b.value(x), i32)
    above = b.greater(wide, b.constant(least))
    return b.cast(b.select(above, wide, b.constant(element.zero_point)), element.storage)


EXTENSION = tflq.Extension(rules={"Threshold": [threshold]})
