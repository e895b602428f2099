"""Streaming models: what a file does not say of its variables follows from what they are initialized with, read as and
assigned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import interpret
from support.running import reference, validate
from support.streaming import frames, streaming, streaming_module

import tflq
from tflq.analysis.evaluate.registry import Run
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Op
from tflq.ir.types import Shape


def variables(module: Module) -> dict[str, tuple[Shape, int]]:
    """Shape and first element of what each starts as."""
    found = [op for op in module.main.ops if op.name == "tosa.variable"]
    starts = {op.attributes["name"]: op.operand(0) for op in found}
    return {name: (v.type.shape, int(v.array.reshape(-1)[0])) for name, v in starts.items()}


def evaluated(module: Module, batches: list[list[np.ndarray]]) -> list[np.ndarray]:
    """The first result of each run, in a row."""
    run = Run(module)
    return [run.call(0, batch)[0] for batch in batches]


@pytest.mark.parametrize("read", ["stated", None], ids=str)
@pytest.mark.parametrize("handle", [None, (), (1,)], ids=str)
def test_variables_follow_from_the_file(read: Shape | str, handle: Shape, tmp_path: Path) -> None:
    model = streaming(read=read, handle=handle)
    conversion = tflq.convert(model, format="tosa")
    assert variables(conversion.module) == {
        "stream/states": ((1, 2, 1, 10), -120),
        "stream_1/states": ((1, 4, 1, 8), -128),
    }
    batches = frames()
    wanted = [out for (out,) in interpret(model, batches)]
    assert len({w.tobytes() for w in wanted}) > 5
    for got, want in zip(evaluated(conversion.module, batches), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(reference(conversion.module, batches[0])[0], wanted[0])
    validate(bytes(tflq.convert(model, format="mlir").data).decode(), tmp_path)
    for (got,), want in zip(interpret(tflq.convert(conversion.data).data, batches), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_batch_is_bound_with_its_variables() -> None:
    model = streaming(batch=None)
    bound = tflq.convert(model, format="tosa", batch=1)
    alone = tflq.convert(streaming(), format="tosa")
    for got, want in zip(evaluated(bound.module, frames()), evaluated(alone.module, frames()), strict=True):
        np.testing.assert_array_equal(got, want)
    for (got,), (want,) in zip(
        interpret(tflq.convert(model, batch=1).data, frames()), interpret(model, frames()), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"start_shape": (1, 3, 1, 10)},
            (
                r"READ_VARIABLE.*'read_variable\d+' is \[1, 2, 1, 10\], and its variable 'stream/states' is "
                r"initialized with 'start' \[1, 3, 1, 10\]; give what is read"
            ),
        ),
        ({"read": (1, 1, 1, 10)}, r"is \[1, 1, 1, 10\], and its variable 'stream/states' is initialized with 'start' "),
        (
            {"read": (1, 1, 1, 10), "start": None},
            r"READ_VARIABLE.* is \[1, 1, 1, 10\], and its variable 'stream/states' is assigned 'strided_slice\d+' \[1",
        ),
    ],
    ids=["started", "read", "assigned"],
)
def test_contradictions_name_both(changes: dict[str, object], why: str) -> None:
    with pytest.raises(tflq.UnsupportedError, match=why):
        tflq.convert(streaming(**changes), format="tosa")


def test_a_batch_that_variables_do_not_have_is_refused() -> None:
    with pytest.raises(tflq.UnsupportedError, match="batch of 2"):
        tflq.convert(streaming(batch=None), format="tosa", batch=2)


def test_without_anything_that_says_it_the_shape_is_asked_for() -> None:
    module = streaming_module(read=None, start=None)
    read = next(op for op in module.ops() if op.name == "tfl.read_variable")
    module.main.ops = [op for op in module.main.ops if not (op.name == "tfl.assign_variable" and _same(op, read))]
    with pytest.raises(tflq.UnsupportedError, match=r"READ_VARIABLE.*nothing says what shape its variable has"):
        tflq.convert(bytes(write(module)), format="tosa")


def _same(one: Op, other: Op) -> bool:
    return one.operand(0) is other.operand(0)


def test_two_functions_that_initialize_differently_are_refused() -> None:
    """Which value holds depends on what a caller runs first."""
    one, other = streaming_module(), streaming_module(start=-119)
    functions = [*one.functions, *other.functions]
    functions[2].ops[0].attributes["init_subgraph_index"] = 3
    functions[2].name, functions[3].name = "main2", "NoOp2"
    assert one.signatures is not None
    assert other.signatures is not None
    (second,) = other.signatures
    second.key, second.function = "other", 2
    model = bytes(write(Module(functions, [*one.signatures, second])))
    with pytest.raises(tflq.UnsupportedError, match="'stream/states' starts as 'start' in one function, as 'start' in"):
        tflq.convert(model, format="tosa")
