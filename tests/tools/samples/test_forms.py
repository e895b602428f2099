"""Each form of samples in each call and command that takes samples: all see the same numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.float_nets import dense, written

import tflq
from tflq.analysis.statistics import read_statistics
from tflq.cli import main
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

SHAPE: Final = (2, 2, 3)
COUNT: Final = 3
MEAN, SCALE = 127.5, 1 / 127.5
PIXELS: Final = np.random.default_rng(0).integers(0, 256, (COUNT, *SHAPE)).astype(np.uint8)
ROWS: Final = ((PIXELS.astype(np.float32) - np.float32(MEAN)) * np.float32(SCALE)).astype(np.float32)

LEVELS: Final = {"mean": MEAN, "scale": SCALE}
FILES: Final = ("npz", "compressed", "npy", "folder of npz", "folder of npy", "folder of inputs", "images")
OBJECTS: Final = ("mapping", "arrays", "mappings", "lists", "generator", "function", "signatures")


def network() -> Module:
    weights = np.random.default_rng(1).normal(size=(4, 12)).astype(np.float32)
    x, flat, y = (Value(TensorType(s, f32), n) for n, s in (("x", (1, *SHAPE)), ("flat", (1, 12)), ("y", (1, 4))))
    reshape = Op("tfl.reshape", [x, constant(np.asarray([1, 12], np.int32))], [flat], {"new_shape": None})
    signatures = [Signature("serve", 0, [("image", x)], [("scores", y)])]
    return Module([Function("main", [x], [y], [reshape, dense(weights, flat, y, "dense")])], signatures)


@pytest.fixture(scope="module")
def floats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("float"), network())


@pytest.fixture(scope="module")
def quantized(floats: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("int8") / "int8.tflite"
    tflq.quantize(floats, path, calibration=list(ROWS), range="minmax")
    return path


@pytest.fixture(scope="module")
def wanted(floats: Path, quantized: Path) -> dict[str, Any]:
    """What each call gives for samples in a list."""
    return {name: call(floats, quantized, list(ROWS), {}) for name, call in CALLS.items()}


def saved(form: str, folder: Path) -> Path:
    """Samples in files of a form."""
    data = folder / "data"
    if form in ("npz", "compressed"):
        {"npz": np.savez, "compressed": np.savez_compressed}[form](data.with_suffix(".npz"), image=ROWS)
        return data.with_suffix(".npz")
    if form == "npy":
        np.save(data, ROWS)
        return data.with_suffix(".npy")
    data.mkdir()
    if form == "folder of inputs":
        np.save(data / "image.npy", ROWS)
    for place, row in enumerate(ROWS):
        if form == "folder of npz":
            np.savez(data / f"{place}.npz", x=row[None])
        elif form == "folder of npy":
            np.save(data / f"{place}.npy", row)
        elif form == "images":
            image = pytest.importorskip("PIL.Image", reason="needs Pillow")
            image.fromarray(PIXELS[place]).save(data / f"{place}.png")
    return data


def made(form: str) -> Any:
    """Samples of a program in a form."""

    def lists() -> Iterator[list[np.ndarray]]:
        return ([row[None]] for row in ROWS)

    forms: dict[str, Callable[[], Any]] = {
        "mapping": lambda: {"image": ROWS},
        "arrays": lambda: list(ROWS[:, None]),
        "mappings": lambda: [{"image": row} for row in ROWS],
        "lists": lambda: list(lists()),
        "generator": lists,
        "function": lambda: lists,
        "signatures": lambda: [("serve", {"image": row}) for row in ROWS],
    }
    return forms[form]()


def calibrated(floats: Path, _: Path, data: Any, levels: dict[str, Any]) -> Any:
    found = tflq.calibrate(floats, data, **levels).statistics
    return found.samples, found.points["x"].minimum, found.points["y"].maximum


def debugged(floats: Path, quantized: Path, data: Any, levels: dict[str, Any]) -> Any:
    found = tflq.debug(floats, quantized, data, **levels)
    return found.samples, found.decibels


def requantized(floats: Path, _: Path, data: Any, levels: dict[str, Any]) -> Any:
    return tflq.write(tflq.quantize(floats, calibration=data, range="minmax", **levels).module)


def verified(floats: Path, quantized: Path, data: Any, levels: dict[str, Any]) -> Any:
    found = tflq.verify(floats, quantized, inputs=data, interface=False, **levels)
    return len(found.runs), [output.largest for output in found.outputs.values()]


CALLS: Final = {"calibrate": calibrated, "debug": debugged, "quantize": requantized, "verify": verified}


@pytest.mark.parametrize("form", OBJECTS)
@pytest.mark.parametrize("name", CALLS)
def test_each_call_takes_each_form_of_a_program(
    name: str, form: str, floats: Path, quantized: Path, wanted: dict[str, Any]
) -> None:
    assert CALLS[name](floats, quantized, made(form), {}) == wanted[name]


@pytest.mark.parametrize("name", CALLS)
def test_each_call_takes_images(
    name: str, floats: Path, quantized: Path, wanted: dict[str, Any], tmp_path: Path
) -> None:
    assert CALLS[name](floats, quantized, saved("images", tmp_path), LEVELS) == wanted[name]


def command(name: str, floats: Path, quantized: Path, data: Path, folder: Path) -> list[str]:
    lines: dict[str, list[object]] = {
        "calibrate": [floats, data, "-o", folder / "s.json"],
        "debug": [floats, quantized, data],
        "quantize": [floats, folder / "q.tflite", "--calibration", data],
        "verify": [floats, quantized, "--inputs", data, "--no-interface"],
    }
    return [name, *map(str, lines[name]), "--json"]


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("name", CALLS)
def test_each_command_takes_each_form_of_files(
    name: str,
    form: str,
    floats: Path,
    quantized: Path,
    wanted: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = command(name, floats, quantized, saved(form, tmp_path), tmp_path)
    line += ["--mean", str(MEAN), "--scale", str(SCALE)] if form == "images" else []
    assert main.run(line) == (5 if name == "verify" else 0)  # floats are not their quantized network's
    document = json.loads(capsys.readouterr().out)
    if name == "calibrate":
        statistics = read_statistics(tmp_path / "s.json")
        found: Any = statistics.samples, statistics.points["x"].minimum, statistics.points["y"].maximum
    elif name == "quantize":
        found = (tmp_path / "q.tflite").read_bytes()
    elif name == "debug":
        found = document["samples"], document["decibels"]
    else:
        found = len(document["runs"]), [output["largest"] for output in document["outputs"]]
    assert found == wanted[name]


@pytest.mark.parametrize("name", CALLS)
def test_each_command_says_which_sample_does_not_fit(
    name: str, floats: Path, quantized: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "data.npz", image=ROWS[:, :, :1])
    assert main.run(command(name, floats, quantized, tmp_path / "data.npz", tmp_path)[:-1]) == 2
    said = capsys.readouterr().err
    assert "has the shape (1, 2, 2, 3), and the sample of row 0 of" in said
    assert "(2, 1, 3)" in said


@pytest.mark.parametrize("name", CALLS)
def test_each_command_points_to_the_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main.run([name, *(["run"] if name == "calibrate" else []), "--help"])
    assert "docs/data.md" in capsys.readouterr().out


def test_images_are_quantized_for_a_network_of_stored_integers(floats: Path, tmp_path: Path) -> None:
    stored = tmp_path / "stored.tflite"
    tflq.quantize(floats, stored, calibration=list(ROWS), range="minmax", io="int8")
    images = saved("images", tmp_path)
    one = tflq.verify(stored, stored, inputs=images, mean=MEAN, scale=SCALE)
    other = tflq.verify(stored, stored, inputs=list(ROWS))
    assert one.equal
    assert other.equal
    assert [run.inputs for run in one.runs] == ["0.png", "1.png", "2.png"]
    assert [run.inputs for run in other.runs] == ["sample 0", "sample 1", "sample 2"]
