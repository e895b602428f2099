"""What changed between two sweeps."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import tflq.sweep.changes as changes_module
from tflq.cli.main import run
from tflq.errors import OptionError
from tflq.sweep import Limits, Plan, Selection, read_results, sweep
from tflq.sweep.baseline import Entry, entry_of, read_entries, write_baseline
from tflq.sweep.changes import compare, failing, is_slower
from tflq.sweep.executor import Ended, Event
from tflq.sweep.merging import merge
from tflq.sweep.result import key_of
from tflq.sweep.slower import slower, suspects
from tflq.sweep.task import Ending, Task

OK = Entry("net", "integer", "ok", True, "", "", "a" * 64, 10, 100, "c" * 64, (), {"ADD": {"integer": 2}}, True, 1.0)
OFF = replace(
    OK, status="differs", expected=False, why="by 1", cause="differs", numbers=("made out: 1 of 9, up to 1 LSB",)
)


@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        (OK, OK, []),
        (OK, OFF, ["failing"]),
        (OFF, OK, ["fixed"]),
        (OFF, OFF, []),
        (OFF, replace(OFF, numbers=("made out: 2 of 9, up to 1 LSB",)), ["numbers"]),
        (OFF, replace(OFF, status="crash", numbers=(), cause="crash"), ["cause"]),
        (OK, replace(OK, paths={"ADD": {"float": 1, "integer": 1}}), ["path"]),
        (OK, replace(OK, static=False), ["memory"]),
        (OK, replace(OK, converted=101), ["larger"]),
        (OK, replace(OK, expected=False), ["unexpected-pass"]),
        (OK, replace(OK, sha256="b" * 64, converted=101), ["content"]),
        (OK, replace(OK, id="other"), ["renamed"]),
        (OK, replace(OK, id="other", sha256="b" * 64), ["new", "gone"]),
        (OK, replace(OFF, id="other", sha256="b" * 64), ["failing", "new", "gone"]),
        (OK, replace(OFF, id="other"), ["failing", "renamed"]),
        (OK, replace(OK, status="refused", why="x"), ["failing"]),
    ],
)
def test_each_kind_of_change(before: Entry, now: Entry, kinds: list[str]) -> None:
    changes = compare([before], [now])
    assert [change.kind for change in changes] == kinds
    worse = {"failing", "numbers", "path", "memory"} & {*kinds}
    assert bool(failing(changes)) == bool(worse)
    assert bool(failing(changes, kinds)) == bool(kinds)


def test_noise_is_not_slower() -> None:
    assert is_slower(2.0, 1.0)
    assert not is_slower(1.2, 1.0)
    assert not is_slower(0.1, 0.01)
    assert not is_slower(1.0, 0.0)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    sweep(Plan([models], folder, selection=Selection(("cnn_int8", "pad", "mul_per_axis", "add_per_axis"))))
    return folder


def test_a_baseline_is_one_file_that_says_the_same(swept: Path, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(read_results(swept), path)
    entries = read_entries(path)
    assert entries == read_entries(swept / "baseline.json")
    assert sorted(entries, key=lambda e: e.key) == sorted(map(entry_of, read_results(swept)), key=lambda e: e.key)
    assert not compare(read_entries(swept), entries)
    assert len(path.read_text().splitlines()) == len(entries) + 2
    assert run(["sweep", "diff", str(swept), str(path)]) == 0


def test_a_regression_is_named_with_its_layer(swept: Path, models: Path, tmp_path: Path) -> None:
    """The baseline says of the model that differs that it was ok."""
    document = json.loads((swept / "baseline.json").read_text())
    for entry in document["entries"]:
        if entry["id"] == "models/mul_per_axis":
            entry.update(status="ok", expected=True, numbers=[], why="", cause="")
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps(document))
    out = tmp_path / "out"
    given = ["sweep", str(models), "-o", str(out), "--baseline", str(baseline), "--only", "per_axis", "--no-cache"]
    assert run(given) == 5
    changes = json.loads((out / "changes.json").read_text())["changes"]
    assert [(c["kind"], c["id"]) for c in changes] == [("failing", "models/mul_per_axis")]
    assert changes[0]["layer"].startswith("operator 0 (MUL)")
    assert "operator 0 (MUL)" in (out / "summary.md").read_text()
    cases = {case.get("name"): case for case in ET.parse(out / "junit.xml").iter("testcase")}  # noqa: S314
    assert cases["models/mul_per_axis"].find("failure") is not None
    assert cases["models/add_per_axis"].find("skipped") is not None


def test_what_fails_as_it_did_is_no_regression(swept: Path, models: Path, tmp_path: Path) -> None:
    given = ["sweep", str(models), "-o", str(tmp_path / "out"), "--baseline", str(swept), "--only", "mul_per_axis"]
    assert run(given) == 0


def test_what_is_slower_runs_again_and_fails_if_asked_to(
    swept: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the baseline a conversion takes next to no time, so that now it is slower for sure."""
    monkeypatch.setattr(changes_module, "SLOWER_BY", (1.25, 0.001))
    document = json.loads((swept / "baseline.json").read_text())
    for entry in document["entries"]:
        entry["seconds"] = 1e-6
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps(document))
    for fail_on, code in (([], 0), (["--fail-on", "slower"], 5)):
        out = tmp_path / f"out{code}"
        common = ["sweep", str(models), "-o", str(out), "--baseline", str(baseline), "--only", "cnn_int8"]
        assert run([*common, *fail_on]) == code
        changes = json.loads((out / "changes.json").read_text())["changes"]
        assert [c["kind"] for c in changes] == ["slower"]


class Stopwatch:
    """An executor whose tasks take the CPU times that it is given."""

    slots = 1

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = iter(seconds)

    def submit(self, number: int, task: Task, limits: Limits) -> None:
        """Nothing runs."""

    def poll(self, seconds: float) -> list[Event]:  # noqa: ARG002
        return [Ended(0, Ending("answer", {"cpu": {"read": 0.0, "convert": next(self._seconds)}}))]

    def close(self) -> None:
        """Nothing ran."""


@pytest.mark.parametrize(("times", "found"), [([3.0, 3.0, 1.0, 3.0, 1.0], 1), ([1.0, 1.0, 9.0, 1.1, 9.0], 0)])
def test_the_median_of_five_runs_counts(times: list[float], found: int) -> None:
    now = replace(OK, seconds=9.0)
    pairs = suspects([OK], [now])
    assert list(pairs) == [OK.key]
    assert not suspects([OK], [replace(now, cpu="another")])
    assert not suspects([OK], [replace(now, sha256="another")])
    changes = list(slower(pairs, {OK.key: Task("net", "integer", "")}, Stopwatch(times), Limits()))
    assert len(changes) == found


def test_parts_merge_into_the_whole(swept: Path, models: Path, tmp_path: Path) -> None:
    only = ("cnn_int8", "pad", "mul_per_axis", "add_per_axis")
    parts = [tmp_path / str(i) for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        sweep(Plan([models], part, selection=Selection(only, shard=(i, 2))))
    merge(parts, tmp_path / "all")
    assert not compare(read_entries(swept), read_entries(tmp_path / "all"))
    failed = [r for r in read_results(tmp_path / "all") if "artifacts" in r]
    assert failed
    assert all((tmp_path / "all" / r["artifacts"] / "converted.tflite").exists() for r in failed)
    with pytest.raises(OptionError, match="is in both"):
        merge([parts[0], parts[0]], tmp_path / "twice")
    sweep(Plan([models], tmp_path / "other", ["kernels"], selection=Selection(only)))
    with pytest.raises(OptionError, match=r"another settings\.targets"):
        merge([parts[0], tmp_path / "other"], tmp_path / "mixed")


def test_failed_from_takes_what_failed(swept: Path, models: Path, tmp_path: Path) -> None:
    sweep(Plan([models], tmp_path, selection=Selection(failed_from=swept)))
    assert [key_of(r) for r in read_results(tmp_path)] == [("models/mul_per_axis", "integer")]


def test_the_cache_spares_verification(models: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        sweep(Plan([models / "pad.tflite"], tmp_path / name, cache=tmp_path / "cache"))
    (first,), (second,) = (read_results(tmp_path / name) for name in ("first", "second"))
    assert first["cached"] == []
    assert second["cached"] == ["made", "xnnpack"]
    assert first["verification"] == second["verification"]
