"""The main job with TOSA: models of the project as flatbuffers and text, and back, against the interpreter."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import validate

import tflq
from tflq.ir.text.printer import print_module

MODELS = Path(__file__).parent.parent / "models"
NETWORKS = ["cnn_int8", "cnn_uint8", "cnn_int16x8"]
INTEGER = [*NETWORKS, "arg_min", "pad", "split"]

pytestmark = pytest.mark.usefixtures("forked")


def tools() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_equal_in_every_layer(name: str) -> None:
    tools()
    path = MODELS / f"{name}.tflite"
    result = tflq.verify(path, tflq.convert(path, format="tosa").data, layers=True)
    assert result.verdict == "equal", result.to_json()
    assert result.layers is not None
    assert result.layers.compared == result.layers.results


@pytest.mark.parametrize("name", INTEGER)
def test_the_integer_profile_is_enough(name: str) -> None:
    conversion = tflq.convert(MODELS / f"{name}.tflite", format="tosa")
    assert conversion.report.requirements is not None
    assert tuple(conversion.report.requirements.profiles) == ("pro_int",)
    assert not any(v.type.storage.is_float for op in conversion.module.ops() for v in op.tensors)


@pytest.mark.parametrize("name", ["log_softmax", "l2_normalization", "add_per_axis", "mul_per_axis"])
def test_a_fallback_needs_the_float_profile_or_is_integer(name: str, tmp_path: Path) -> None:
    path = MODELS / f"{name}.tflite"
    conversion = tflq.convert(path, format="tosa")
    floats = bool(conversion.report.counts["float"])
    assert conversion.report.requirements is not None
    assert ("pro_fp" in conversion.report.requirements.profiles) == floats
    target = tmp_path / "integer.toml"
    target.write_text('[target]\nprofiles = ["pro_int"]\nextensions = ["int16", "doubleround"]\n')
    if floats:
        with pytest.raises(tflq.UnsupportedError, match="pro_fp"):
            tflq.convert(path, format="tosa", target=str(target))
    else:
        tflq.convert(path, format="tosa", target=str(target))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_target_without_double_rounding(name: str, tmp_path: Path) -> None:
    tools()
    path, target = MODELS / f"{name}.tflite", tmp_path / "device.toml"
    target.write_text('[target]\nprofiles = ["pro_int"]\nextensions = ["int16"]\n')
    conversion = tflq.convert(path, format="tosa", target=str(target))
    assert conversion.report.requirements is not None
    assert "doubleround" not in conversion.report.requirements.extensions
    assert tflq.verify(path, conversion.data).equal


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.tflite")), ids=lambda path: path.stem)
def test_text_is_valid(path: Path, tmp_path: Path) -> None:
    is_open = any(None in (v.type.shape or ()) for v in tflq.read(path).main.inputs)
    for text in tflq.convert(path, format="mlir", batch=2 if is_open else None).files.values():
        validate(text.decode(), tmp_path)


@pytest.mark.parametrize("name", NETWORKS)
def test_there_and_back(name: str) -> None:
    tools()
    path = MODELS / f"{name}.tflite"
    back = tflq.convert(tflq.convert(path, format="tosa").data)
    result = tflq.verify(path, back.data, layers=True, interface=False)
    assert result.verdict == "equal", result.to_json()


def test_names_of_inputs_and_outputs_are_kept() -> None:
    before = tflq.read(MODELS / "cnn_uint8.tflite").main
    after = tflq.read(tflq.convert(MODELS / "cnn_uint8.tflite", format="tosa").data).main
    for old, new in zip((*before.inputs, *before.outputs), (*after.inputs, *after.outputs), strict=True):
        assert (old.name, old.type.shape, old.type.storage) == (new.name, new.type.shape, new.type.storage)


def test_a_file_for_each_signature(tmp_path: Path) -> None:
    tools()
    path = MODELS / "two_signatures.tflite"
    keys = [s.key or "" for s in tflq.read(path).signatures or ()]
    conversion = tflq.convert(path, tmp_path / "out.tosa", batch=2)
    assert sorted(conversion.files) == sorted(keys)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f"out.{key}.tosa" for key in keys)
    with pytest.raises(tflq.TflqError, match=keys[0]):
        _ = conversion.data
    for key in keys:
        assert tflq.verify(path, tmp_path / f"out.{key}.tosa").equal
        alone = tflq.convert(path, format="tosa", signature=key, batch=2)
        assert _without_sets(alone.data) == _without_sets(conversion.files[key])


def _without_sets(data: Any) -> str:
    """A file as text, without the kernel sets, which count the operators of all entries that were converted."""
    module = tflq.read(data)
    module.metadata = None
    return print_module(module)


def test_no_file_is_replaced_or_written_beside_one_that_must_stay(tmp_path: Path) -> None:
    path = MODELS / "two_signatures.tflite"
    key = (tflq.read(path).signatures or [])[1].key
    (tmp_path / f"out.{key}.tosa").write_bytes(b"mine")
    with pytest.raises(tflq.TflqError, match="exists already"):
        tflq.convert(path, tmp_path / "out.tosa", batch=1)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"mine"]


def test_an_unknown_signature_is_an_error() -> None:
    with pytest.raises(tflq.TflqError, match="moon"):
        tflq.convert(MODELS / "two_signatures.tflite", format="tosa", signature="moon")


@pytest.fixture
def open_batch() -> Path:
    return next(
        p for p in MODELS.glob("*.tflite") if any(None in (v.type.shape or ()) for v in tflq.read(p).main.inputs)
    )


def test_an_open_batch_is_kept_in_text_and_bound_in_a_flatbuffer(open_batch: Path) -> None:
    tools()
    key = next((s.key for s in tflq.read(open_batch).signatures or ()), None)
    assert b"tensor<?x" in tflq.convert(open_batch, format="mlir", signature=key).data
    with pytest.raises(tflq.UnsupportedError, match="batch"):
        tflq.convert(open_batch, format="tosa", signature=key)
    for batch in (1, 3):
        conversion = tflq.convert(open_batch, format="tosa", signature=key, batch=batch)
        assert {v.type.shape[0] for v in conversion.module.main.inputs if v.type.shape} == {batch}
        assert tflq.verify(open_batch, conversion.data).equal


@pytest.mark.slow
def test_an_open_batch_there_and_back(open_batch: Path) -> None:
    tools()
    key = next((s.key for s in tflq.read(open_batch).signatures or ()), None)
    back = tflq.convert(tflq.convert(open_batch, format="tosa", signature=key, batch=3).data)
    alone = tflq.convert(open_batch, signature=key)
    result = tflq.verify(alone.data, back.data, interface=False)
    assert result.verdict == "equal", result.to_json()
    assert tflq.verify(back.data, alone.data, interface=False).equal


def test_a_whole_shape_can_be_given(open_batch: Path) -> None:
    module = tflq.read(open_batch)
    key = next((s.key for s in module.signatures or ()), None)
    shapes = {v.name: tuple(4 if d is None else d for d in v.type.shape or ()) for v in module.main.inputs}
    conversion = tflq.convert(open_batch, format="tosa", signature=key, shapes=shapes)
    assert {v.name: v.type.shape for v in conversion.module.main.inputs} == shapes


def test_a_tosa_file_becomes_text(tmp_path: Path) -> None:
    path = MODELS / "cnn_int8.tflite"
    conversion = tflq.convert(tflq.convert(path, format="tosa").data, format="mlir")
    validate(conversion.data.decode(), tmp_path)


def test_a_stated_shape_cannot_be_bound_twice() -> None:
    data = tflq.convert(MODELS / "cnn_int8.tflite", format="tosa").data
    with pytest.raises(tflq.OptionError, match="no open dims"):
        tflq.convert(data, batch=2)


def test_verify_names_the_first_layer_that_differs() -> None:
    tools()
    path = MODELS / "cnn_int8.tflite"
    module = tflq.read(tflq.convert(path, format="tosa").data)
    names = {v.name for op in tflq.read(path).ops() for v in op.results}
    scaled = [op for op in module.ops() if op.name == "tosa.rescale" and op.result.name in names]
    scaled[2].attributes["output_zp"] += 1
    result = tflq.verify(path, tflq.write(module), layers=True)
    assert result.verdict == "differs"
    assert result.layers is not None
    assert result.layers.first is not None
    assert result.layers.first.tensor == scaled[2].result.name


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8"])
def test_compiled_by_iree(name: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("iree.runtime", reason="needs IREE: pip install iree-base-compiler iree-base-runtime")
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    tool = shutil.which("iree-compile", path=str(Path(sys.executable).parent)) or shutil.which("iree-compile")
    if tool is None:
        pytest.skip("needs iree-compile: pip install iree-base-compiler")
    text, compiled = tmp_path / "model.mlir", tmp_path / "model.vmfb"
    path = MODELS / f"{name}.tflite"
    tflq.convert(path, text)
    flags = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
    subprocess.run([tool, *flags, "--iree-llvmcpu-target-cpu=host", text, "-o", compiled], check=True)
    context = runtime.SystemContext(config=runtime.Config("local-task"))
    context.add_vm_module(runtime.VmModule.mmap(context.instance, str(compiled)))
    module = tflq.read(path)
    entry = context.modules.module[(module.signatures or [])[0].key or "main"]
    from support.harness import edge_inputs, interpret

    for arrays, want in zip(
        edge_inputs(module.main.inputs), interpret(path.read_bytes(), edge_inputs(module.main.inputs)), strict=True
    ):
        found = entry(*(a.view(np.int8) if a.dtype == np.uint8 else a for a in arrays))
        got = np.asarray(found.to_host())
        np.testing.assert_array_equal(got.view(want[0].dtype), want[0])
