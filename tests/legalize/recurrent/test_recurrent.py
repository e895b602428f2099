"""Recurrent operators that are not kept: their state in resource variables, targets that do not list them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import interpret
from support.recurrent import lstm_model, svdf_model

import tflq
from tflq.legalize.caveats import EXCEPTIONS

pytestmark = pytest.mark.usefixtures("forked")

OUTLIVES = "its state is in resource variables, which reset_all_variables() does not reset"
DEVICE = '[target]\nname = "device"\n[kernels]\nadd = "qi8 qi8 -> qi8"\n'
Model = Callable[..., bytes]


def _device(folder: Path, text: str) -> str:
    path = folder / "device.toml"
    path.write_text(text)
    return str(path)


def _assert_same(model: bytes, converted: bytes) -> None:
    rng = np.random.default_rng(1)
    shape = tuple(d or 0 for d in tflq.read(model).main.inputs[0].type.shape or ())
    batches = [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(6)]
    wanted = interpret(model, batches)
    assert np.unique(wanted).size > 3
    for resolver in ("BUILTIN_REF", "AUTO"):
        for (got,), (want,) in zip(interpret(converted, batches, resolver), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("model", [svdf_model, lstm_model])
def test_state_in_resource_variables(model: Model) -> None:
    file = model(np.random.default_rng(0))
    conversion = tflq.convert(file, state="variables")
    (row,) = conversion.report.rows
    assert (row.path, row.warning, row.exception) == ("integer", OUTLIVES, "state")
    assert row.remedy == EXCEPTIONS["state"].remedy
    assert tflq.verify(file, conversion.data).verdict == "equal"
    assert not any(v.type.quantized for op in conversion.module.ops() for v in op.tensors if v.name not in ("x", "y"))
    _assert_same(file, conversion.data)


@pytest.mark.parametrize(
    ("text", "options", "path"),
    [
        (DEVICE, {}, "integer"),
        (DEVICE, {"state": "kept"}, "kept"),
        (DEVICE.replace("[kernels]", 'base = "kernels"\n[kernels]'), {}, "kept"),
        (DEVICE + 'svdf = "qi8 qi8 qi16 qi32? qi16 -> qi8"\n', {}, "kept"),
        (DEVICE + 'svdf = "qi8 qi8 qi8 qi32? qi8 -> qi8"\n', {}, "integer"),
    ],
    ids=["not listed", "kept all the same", "base kernels", "listed", "listed on other types"],
)
def test_targets(tmp_path: Path, text: str, options: dict[str, Any], path: str) -> None:
    file = svdf_model(np.random.default_rng(0))
    conversion = tflq.convert(file, target=_device(tmp_path, text), **options)
    assert [row.path for row in conversion.report.rows] == [path]
    _assert_same(file, conversion.data)


def test_two_operators_have_variables_of_their_own() -> None:
    """Their state tensors have one name."""
    from tflq.formats.tflite.writer import write
    from tflq.ir.module import Function, Module

    modules = [tflq.read(svdf_model(np.random.default_rng(seed))) for seed in (0, 1)]
    (x,), other = modules[0].main.inputs, modules[1].main
    for op in other.ops:
        op.operands = [x if v is other.inputs[0] else v for v in op.operands]
    ops, outputs = ([*modules[0].main.ops, *other.ops], [*modules[0].main.outputs, *other.outputs])
    file = bytes(write(Module([Function("main", [x], outputs, ops)])))
    batches = [[np.full((2, 5), value, np.int8)] for value in (90, -70, 30, 5)]
    got, want = interpret(tflq.convert(file, state="variables").data, batches), interpret(file, batches)
    np.testing.assert_array_equal(got, want)


def test_refused_where_there_is_no_rule(tmp_path: Path) -> None:
    file = lstm_model(np.random.default_rng(0), steps=600)
    with pytest.raises(tflq.UnsupportedError, match=r"600 steps would be written out.*keep it as it is") as caught:
        tflq.convert(file, target=_device(tmp_path, DEVICE))
    assert "(UNIDIRECTIONAL_SEQUENCE_LSTM), tensor 'y'" in str(caught.value.reasons[0])


def test_options() -> None:
    file = svdf_model(np.random.default_rng(0))
    with pytest.raises(tflq.OptionError, match="state 'kept' is for TFLite files"):
        tflq.convert(file, format="tosa", state="kept")
    with pytest.raises(ValueError, match="state='held' is not known; known are kept, variables"):
        tflq.convert(file, state="held")  # type: ignore[arg-type]
