"""Resource variables of quantized tensors: their integers, from CALL_ONCE on, over several runs."""

from __future__ import annotations

import numpy as np
import pytest
from harness import argument, const, interpret
from recurrent import per_layer
from running import reference

from tflq.conversion import convert
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ElementType, ScalarType, TensorType, i8, i16, i32, resource, ui8

SHAPE = (2, 3)


def _op(name: str, operands: list[Value], results: list[Value], **attributes: object) -> Op:
    return Op(f"tfl.{name}", list(operands), results, attributes, info={"version": 2 if name == "add" else 1})


def _handle() -> Op:
    return _op("var_handle", [], [Value(TensorType((), resource), "h")], container="", shared_name="total")


def _model(element: ElementType, adds: bool) -> bytes:
    """A variable of sevens that takes the input, or adds it; the result is what it held, or the sum."""
    x, held = argument(SHAPE, element, "x"), argument(SHAPE, element, "held")
    first, handle = _handle(), _handle()
    start = _op("assign_variable", [first.result, const(np.full(SHAPE, 7), element, "start")], [])
    ops = [_op("call_once", [], [], init_subgraph_index=1), handle, _op("read_variable", [handle.result], [held])]
    new = x
    if adds:
        total = argument(SHAPE, element, "total")
        ops.append(_op("add", [held, x], [total], fused_activation_function="NONE", pot_scale_int16=False))
        new = held = total
    ops.append(_op("assign_variable", [handle.result, new], []))
    return bytes(write(Module([Function("main", [x], [held], ops), Function("start", [], [], [first, start])])))


@pytest.mark.parametrize("adds", [False, True], ids=["held", "added"])
@pytest.mark.parametrize("storage", [i8, ui8, i16, i32], ids=str)
def test_held_integers(storage: ScalarType, adds: bool) -> None:
    if adds and storage == i32:
        pytest.skip("ADD has no quantized int32")
    model = _model(per_layer(storage, 0.05, 3 if storage in (i8, ui8) else 0), adds)
    rng = np.random.default_rng(3)
    batches = [[rng.integers(0, 20, SHAPE).astype(storage.dtype)] for _ in range(4)]
    wanted = interpret(model, batches)
    assert len({w[0].tobytes() for w in wanted}) == 4
    tosa = convert(model, format="tosa")
    np.testing.assert_array_equal(reference(tosa.module, batches[0])[0], wanted[0][0])
    for converted in (convert(model).data, convert(tosa.data).data):
        for resolver in ("BUILTIN_REF", "AUTO"):
            for (got,), (want,) in zip(interpret(converted, batches, resolver), wanted, strict=True):
                np.testing.assert_array_equal(got, want)
