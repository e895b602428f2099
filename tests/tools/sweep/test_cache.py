"""What runs found is kept by content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.tools.sweep import task as cache
from tflq.tools.sweep.store import read_results
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.sweep.task import Cache, Originals, Result, Settings
from tflq.tools.verify.comparison import compare_models
from tflq.tools.verify.inputs import Options

INPUTS: list[np.ndarray] = [np.arange(6, dtype=np.int8).reshape(2, 3), np.array(2.5, np.float32)]
OUTPUTS: list[np.ndarray] = [
    np.array([[1, -1]], np.int16),
    np.array(3, np.int32),
    np.zeros((0, 4), np.float32),
    np.array([b"ab", b"c"]),
]


def same(a: list[np.ndarray] | None, b: list[np.ndarray]) -> bool:
    return a is not None and all(
        x.dtype == y.dtype and x.shape == y.shape and (x == y).all() for x, y in zip(a, b, strict=True)
    )


def test_outputs_come_back_as_they_were(tmp_path: Path) -> None:
    kept = Originals(tmp_path, "m")
    assert kept.get("reference", "", INPUTS) is None
    kept.put("reference", "", INPUTS, OUTPUTS)
    assert same(kept.get("reference", "", INPUTS), OUTPUTS)
    assert kept.hits == 1


@pytest.mark.parametrize(
    ("model", "kernels", "entry", "inputs"),
    [
        ("other", "reference", "", INPUTS),
        ("m", "default", "", INPUTS),
        ("m", "reference", "serve", INPUTS),
        ("m", "reference", "", [INPUTS[0].reshape(3, 2), INPUTS[1]]),
        ("m", "reference", "", [INPUTS[0].astype(np.uint8), INPUTS[1]]),
        ("m", "reference", "", [INPUTS[0] + np.int8(1), INPUTS[1]]),
    ],
)
def test_another_run_is_another_key(
    tmp_path: Path, model: str, kernels: str, entry: str, inputs: list[np.ndarray]
) -> None:
    Originals(tmp_path, "m").put("reference", "", INPUTS, OUTPUTS)
    assert Originals(tmp_path, model).get(kernels, entry, inputs) is None


def test_another_interpreter_or_cpu_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(tmp_path, dict[str, int]).put("key", {"a": 1})
    for name, other in (("version", lambda _: "9.9"), ("cpu_name", lambda: "another")):
        with monkeypatch.context() as patch:
            patch.setattr(cache, name, other)
            cache.surroundings.cache_clear()
            assert Cache(tmp_path, dict[str, int]).get("key") is None
    cache.surroundings.cache_clear()
    assert Cache(tmp_path, dict[str, int]).get("key") == {"a": 1}


def swept(folder: Path, source: Path, kept: Path, target: str = "integer") -> Result:
    sweep(Plan([source], folder, targets=(target,), cache=kept))
    return next(iter(read_results(folder)))


def test_a_sweep_for_another_target_does_not_run_the_original_again(models: Path, tmp_path: Path) -> None:
    source, kept = models / "cnn_int8.tflite", tmp_path / "cache"
    first = swept(tmp_path / "a", source, kept)
    assert (first["cached"], first["recorded"]) == ([], 0)
    other = swept(tmp_path / "b", source, kept, "kernels")
    runs = len(other["verification"]["inputs"]) + len(other["xnnpack"]["inputs"])
    assert (other["status"], other["cached"], other["recorded"]) == ("ok", [], runs)
    again = swept(tmp_path / "c", source, kept)
    assert (again["cached"], again["recorded"]) == (["random", "xnnpack"], 0)
    for folder in ("verified", "outputs"):
        assert any((kept / folder).rglob("*"))


def test_another_tolerance_is_asked_anew(models: Path, tmp_path: Path) -> None:
    """What was found for one tolerance says nothing of another; the original's outputs are the same."""
    source, kept = models / "pad.tflite", tmp_path / "cache"
    swept(tmp_path / "a", source, kept)
    sweep(Plan([source], tmp_path / "b", cache=kept, settings=Settings(max_lsb=1)))
    (result,) = read_results(tmp_path / "b")
    assert result["cached"] == []
    assert result["recorded"] > 0


class Wrong:
    """Outputs that the original does not give."""

    asked = 0

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        assert (kernels, entry, len(inputs)) == ("reference", "", 1)
        self.asked += 1
        return [np.full((1, 10), 99, np.int8)]

    def put(self, *_: object) -> None:
        raise AssertionError


def test_recorded_outputs_are_what_is_compared_with(models: Path) -> None:
    path, wrong = models / "cnn_int8.tflite", Wrong()
    done = compare_models(path, path, Options(recorded=wrong, seeds=1))
    assert (done.verdict, wrong.asked) == ("differs", len(done.runs))
    done = compare_models(path, path, Options(recorded=wrong, seeds=1, layers=True))
    assert (done.verdict, wrong.asked) == ("equal", len(done.runs))


def test_an_entry_of_another_kind_is_a_miss(tmp_path: Path) -> None:
    found = Cache(tmp_path, dict[str, int])
    others: list[Any] = [[], None, {"a": "b"}, 3]
    for document in others:
        found.put("key", document)
        assert found.get("key") is None
    found._entries.put(f"{cache.surroundings()} key", b"no JSON")
    assert found.get("key") is None


def test_outputs_of_other_types_than_the_model_has_are_not_believed(models: Path, tmp_path: Path) -> None:
    pad = models / "pad.tflite"
    kept = Originals(tmp_path, "m")
    before = compare_models(pad, pad, Options(seeds=1, recorded=kept))
    assert (before.verdict, kept.hits) == ("equal", 0)

    class Other(Originals):
        def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
            found = super().get(kernels, entry, inputs)
            return None if found is None else [array.astype(np.float64) for array in found]

    assert compare_models(pad, pad, Options(seeds=1, recorded=Other(tmp_path, "m"))).verdict == "equal"
    for data in (b"", b"{}\n", b'{"arrays": [["|O", [1]]]}\n', b'{"arrays": [["<i4", [-1]]]}\n', b"[" * 5000):
        kept._entries.put(kept._key("reference", "", INPUTS), data)
        assert kept.get("reference", "", INPUTS) is None
