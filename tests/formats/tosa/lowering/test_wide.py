"""int64 at the edges of a model: int32 in a TOSA file."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, one_op

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, UniformQuantizedType, f32, i8, i32, i64

pytestmark = pytest.mark.usefixtures("forked")

Q = UniformQuantizedType.of(i8, 0.1, 3)

CASES: dict[str, tuple[str, list[Value | None], ElementType, tuple[int, ...], dict[str, object]]] = {
    "indices": (
        "tfl.gather",
        [argument((5, 3), Q), argument((2,), i64, "i")],
        Q,
        (2, 3),
        {"axis": 0, "batch_dims": 0},
    ),
    "numbers": ("tfl.cast", [argument((5, 3), i64)], f32, (5, 3), {}),
    "moved": ("tfl.reshape", [argument((5, 3), i64), const(np.asarray([15]), i32)], i64, (15,), {}),
    "known": ("tfl.shape", [argument((5, 3), Q)], i64, (2,), {"out_type": "INT64"}),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_and_outputs(case: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    name, operands, element, shape, options = CASES[case]
    model = one_op(name, operands, [argument(shape, element, "y")], options)
    conversion = tflq.convert(model, format="tosa")
    main = conversion.module.main
    assert i64 not in [v.type.storage for v in (*main.inputs, *main.outputs)]
    assert tflq.verify(model, conversion.data).equal


def test_arithmetic_of_64_bits_is_refused_by_name() -> None:
    options = {"fused_activation_function": "NONE"}
    model = one_op("tfl.add", [argument((2,), i64), argument((2,), i64, "b")], [argument((2,), i64, "y")], options)
    with pytest.raises(tflq.UnsupportedError, match=r"operator 0 \(ADD\).*int64"):
        tflq.convert(model, format="tosa")
