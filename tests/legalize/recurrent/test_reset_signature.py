"""The signature that resets state lowered into resource variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import interpret
from support.recurrent import lstm_model, svdf_model

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import SCALARS, TensorType

Model = Callable[..., bytes]


def _sequences(model: bytes) -> list[list[np.ndarray]]:
    """Two sequences of three steps, the same inputs in both."""
    rng = np.random.default_rng(1)
    shape = tuple(d or 0 for d in tflq.read(model).main.inputs[0].type.shape or ())
    return 2 * [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(3)]


def _signed(model: bytes) -> bytes:
    """The model with a signature."""
    module = tflq.read(model)
    main = module.main
    module.signatures = [Signature("run", 0, [("in", main.inputs[0])], [("out", main.outputs[0])])]
    return bytes(write(module))


@pytest.mark.parametrize("model", [svdf_model, lstm_model])
@pytest.mark.parametrize("change", [bytes, _signed], ids=["no signature", "one signature"])
@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "AUTO"])
def test_two_sequences(model: Model, change: Callable[[bytes], bytes], resolver: str) -> None:
    file = change(model(np.random.default_rng(0)))
    batches = _sequences(file)
    wanted = interpret(file, batches, resets=[0, 3])
    conversion = tflq.convert(file, state="variables", reset_signature=True)
    np.testing.assert_array_equal(interpret(conversion.data, batches, resolver, resets=[0, 3]), wanted)
    assert (np.asarray(interpret(conversion.data, batches, resolver)[3:]) != np.asarray(wanted[3:])).any()
    keys = [s.key for s in conversion.module.signatures or ()]
    assert keys == [*([] if change is bytes else ["run"]), "tflq_reset"]


def test_none_by_default() -> None:
    file = svdf_model(np.random.default_rng(0))
    assert tflq.convert(file, state="variables").module.signatures is None


@pytest.mark.parametrize("options", [{}, {"target": "kernels"}])
def test_nothing_to_reset_is_said(options: dict[str, Any]) -> None:
    conversion = tflq.convert(svdf_model(np.random.default_rng(0)), reset_signature=True, **options)
    (warning,) = conversion.report.warnings
    assert warning.startswith(
        "no state was lowered into variables, so there is no signature 'tflq_reset' to add; leave"
    )
    assert conversion.module.signatures is None


def test_of_tflite_files() -> None:
    with pytest.raises(tflq.OptionError, match=r"reset_signature is for TFLite files; a \.tosa file has no"):
        tflq.convert(svdf_model(np.random.default_rng(0)), format="tosa", reset_signature=True)


def test_a_taken_key() -> None:
    file = svdf_model(np.random.default_rng(0))
    once = tflq.convert(file, state="variables", reset_signature=True).data
    with pytest.raises(tflq.UnsupportedError, match="the model has a signature 'tflq_reset' already"):
        tflq.convert(once, reset_signature=True)
    assert [s.key for s in tflq.convert(once).module.signatures or ()] == ["tflq_reset"]


def test_own_variables_are_left_alone() -> None:
    module = tflq.read(svdf_model(np.random.default_rng(0)))
    handle = Value(TensorType((1,), SCALARS["!tfl.resource"]), "handle")
    main = module.main
    x = main.inputs[0]
    read = Value(x.type.stripped(), "held")
    names = {"container": "", "shared_name": "count"}
    ops = [
        Op("tfl.var_handle", [], [handle], names),
        Op("tfl.assign_variable", [handle, x], []),
        Op("tfl.read_variable", [handle], [read]),
    ]
    file = bytes(write(Module([Function("main", [x], [*main.outputs, read], [*main.ops, *ops])])))
    conversion = tflq.convert(file, state="variables", reset_signature=True)
    warning = "signature 'tflq_reset' does not reset the model's own variables 'count'; create the interpreter anew to"
    assert any(said.startswith(warning) for said in conversion.report.warnings)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tflq.cli.main import run

    source, out = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(svdf_model(np.random.default_rng(0)))
    assert run(["convert", str(source), str(out), "--state", "variables", "--reset-signature"]) == 0
    assert "create the interpreter anew, or convert with --reset-signature" in " ".join(capsys.readouterr().out.split())
    assert [s.key for s in tflq.read(out).signatures or ()] == ["tflq_reset"]
