"""A result in TOSA, as text and in ONNX names the kernel sets that it is exact for."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from tflq.formats.sources import read, write
from tflq.ir.module import Metadata
from tflq.numerics.kernel_sets import IN_FILE, Exactness
from tflq.tools.verify.kernels import exactness_of

pytestmark = pytest.mark.usefixtures("forked")

MODEL = "models/cnn_int8.tflite"


@pytest.mark.parametrize("format", ["tosa", "onnx", "tflite"])
def test_a_file_names_its_kernel_sets(format: str, tmp_path: Path) -> None:
    if format == "onnx":
        pytest.importorskip("onnx")
    conversion = tflq.convert(MODEL, format=format, kernel_set="xnnpack")
    path = tmp_path / f"out.{format}"
    path.write_bytes(conversion.data)
    exactness = exactness_of(str(path))
    assert exactness == conversion.report.exactness
    assert exactness is not None
    assert exactness.name == "xnnpack-2.3"
    assert exactness.exact_for == ("xnnpack-2.3", "xnnpack-2.4-dev")  # on arm64 the mean is not known


def test_the_first_region_has_the_name(tmp_path: Path) -> None:
    module = read(bytes(tflq.convert(MODEL, format="tosa").data))
    assert module.main.name == "main"
    exactness = Exactness.read(module.metadata_of(IN_FILE))
    assert exactness is not None
    (tmp_path / "in.tosa").write_bytes(tflq.convert(MODEL, format="tosa").data)
    back = read(bytes(tflq.convert(tmp_path / "in.tosa", format="tosa").data))
    assert Exactness.read(back.metadata_of(IN_FILE)) == exactness
    assert tflq.verify(MODEL, bytes(tflq.convert(MODEL, format="tosa", kernel_set="xnnpack").data), seeds=1)


def test_text_has_a_comment() -> None:
    text = bytes(tflq.convert(MODEL, format="mlir", kernel_set="xnnpack").data).decode()
    assert text.split("\n")[1] == (
        "// kernels of xnnpack-2.3: exact for xnnpack-2.3, xnnpack-2.4-dev; 7 operators differ under reference-2.3"
    )
    assert "kernels of" not in bytes(tflq.convert(text.encode(), format="mlir").data).decode()


HOSTILE = {"lines": b'{"name": "a name\\n%0 = y", "differing": {}}', "bytes": b"\xff", "list": b"[]"}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("format", ["tosa", "mlir", "onnx", "tflite", "c"])
def test_metadata_of_a_hostile_file_is_left_out(kind: str, format: str) -> None:
    if format == "onnx":
        pytest.importorskip("onnx")
    module = read(bytes(tflq.convert("models/pad.tflite").data))
    module.metadata = [Metadata.of(IN_FILE, HOSTILE[kind])]
    files = tflq.convert(bytes(write(module)), format=format).files
    assert not any(b"a name\n" in bytes(data) for data in files.values())
