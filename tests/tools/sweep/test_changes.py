"""What changed between two sweeps."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from support.made_results import passing

import tflq.tools.sweep.baseline as changes_module
from tflq.base.errors import OptionError
from tflq.cli.main import run
from tflq.tools.sweep import driver as comparing
from tflq.tools.sweep import sweeping
from tflq.tools.sweep.baseline import Entry, compare, entry_of, failing, is_slower, merge, read_entries, write_baseline
from tflq.tools.sweep.driver import slower, suspects
from tflq.tools.sweep.server import Ended, Event
from tflq.tools.sweep.store import Selection, read_results
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.sweep.task import Ending, Limits, Settings, Task, cause_of, key_of

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


@pytest.mark.parametrize("static", [True, False, None])
def test_a_baseline_holds_what_is_compared(tmp_path: Path, static: bool | None) -> None:
    result = passing(0) | {"static": {} if static is None else {"kept": static}}
    write_baseline([result], tmp_path / "baseline.json")
    assert read_entries(tmp_path / "baseline.json") == [entry_of(result)]
    assert entry_of(result).static is static


def test_failures_of_one_cause_have_one_sentence() -> None:
    a = cause_of("refused", "Didn't find op 'ATAN2' at operator 12, 1x3 of 4.5e-3 in /tmp/a/x.tflite")
    b = cause_of("refused", "Didn't find op 'ELU' at operator 7, 2x8 of 1 in /home/me/y.tflite")
    assert a == b == "refused: Didn't find op '…' at operator …, … of … in PATH"
    hashes = [cause_of("checksum", f"its SHA-256 is {digit * 64}, pinned is {'0' * 64}") for digit in "7b"]
    assert set(hashes) == {"checksum: its SHA-256 is …, pinned is …"}
    assert cause_of("unavailable", "https://host.org/a/b.tflite?x=1: HTTP 404") == "unavailable: URL: HTTP …"
    assert cause_of("ok", "") == ""


def test_a_cause_is_compared_as_this_release_words_it() -> None:
    earlier = replace(OK, status="refused", why="PAD: 'x' has 3 elements", cause="refused: PAD: '…' has N elements")
    assert not list(compare([earlier], [replace(earlier, why="PAD: 'y' has 4 elements", cause="new")]))


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ({"bytes": -2}, "bytes: -2 is not a whole number, from 0 on"),
        ({"paths": {"ADD": {"integer": -2}}}, "paths.ADD.integer: -2 is not"),
        ({"paths": {"ADD": {"integer_": 2}}}, "is not counts by path: integer, float, kept"),
        ({"seconds": -1.0}, "seconds: -1.0 is not"),
    ],
)
def test_a_baseline_has_no_counts_that_no_sweep_has(tmp_path: Path, field: dict[str, object], what: str) -> None:
    document = {"format": "tflq.sweep-baseline", "version": 1, "entries": [OK.to_json() | field]}
    (tmp_path / "b.json").write_text(json.dumps(document))
    with pytest.raises(OptionError, match=what):
        read_entries(tmp_path / "b.json")


def test_a_result_that_is_there_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document: dict[str, object] = {"settings": {}, "fingerprint": {}, "sources": [], "jobs": []}
    (tmp_path / "sweep.json").write_text(json.dumps({"format": "tflq.sweep", "version": 1, **document}))
    (tmp_path / "results.jsonl").write_text((json.dumps(passing(0)) + "\n") * 2)
    for line in (["merge", str(tmp_path), "-o", str(tmp_path / "out")], ["page", str(tmp_path)]):
        assert run(["sweep", *line]) == 2
        assert "results.jsonl:2: nets/net_0000 [integer] is in line 1, too; " in capsys.readouterr().err


def test_noise_is_not_slower() -> None:
    assert is_slower(2.0, 1.0)
    assert not is_slower(1.2, 1.0)
    assert not is_slower(0.1, 0.01)
    assert not is_slower(1.0, 0.0)


ONLY = ("cnn_int8", "/pad", "add_per_axis", "two_signatures")
PLAIN = Settings(0, xnnpack=False)
"""The settings of all sweeps here: verified on few inputs."""
AS_PLAIN = ("--seeds", "0", "--no-xnnpack")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    sweep(Plan([models], folder, selection=Selection(ONLY), settings=PLAIN))
    return folder


@pytest.fixture
def rule_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps by a compiler with a wrong rule of convolutions."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    for module in (sweeping, comparing):
        monkeypatch.setattr(module, "JOB", "jobs:broken_rule")


def test_a_baseline_is_one_file_that_says_the_same(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(read_results(swept), path)
    entries = read_entries(path)
    assert entries == read_entries(swept / "baseline.json")
    assert sorted(entries, key=lambda e: e.key) == sorted(map(entry_of, read_results(swept)), key=lambda e: e.key)
    assert not compare(read_entries(swept), entries)
    assert len(path.read_text().splitlines()) == len(entries) + 2
    assert run(["sweep", "diff", str(swept), str(path)]) == 0
    other = tmp_path / "other.json"
    other.write_text(path.read_text().replace('"status": "ok"', '"status": "differs"'))
    capsys.readouterr()
    assert run(["sweep", "diff", str(path), str(other), "--markdown"]) == 5
    assert "| **failing** | models/cnn\\_int8 \\[integer\\] |" in capsys.readouterr().out


@pytest.mark.usefixtures("rule_broken")
def test_a_regression_is_named_with_its_layer(swept: Path, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ["sweep", str(models), *AS_PLAIN, "--only", "cnn_int8", "--only", "/pad", "--only", "add_per_axis"]
    assert run([*given, "-o", str(out), "--baseline", str(swept)]) == 5
    changes = json.loads((out / "changes.json").read_text())["changes"]
    assert [(c["kind"], c["id"]) for c in changes] == [("failing", "models/cnn_int8")]
    assert changes[0]["layer"].startswith("operator 0 (CONV_2D)")
    assert "operator 0 (CONV" in (out / "summary.md").read_text().replace("\\", "")
    cases = {case.get("name"): case for case in ET.parse(out / "junit.xml").iter("testcase")}  # noqa: S314
    assert cases["models/cnn_int8"].find("failure") is not None
    assert cases["models/add_per_axis"].find("skipped") is not None
    (result,) = (r for r in read_results(out) if r["status"] != "ok" and not r["expected"])
    assert result["tries"] == ["differs", "differs"]
    assert (out / result["artifacts"] / "converted.tflite").exists()
    assert run([*given, "-o", str(tmp_path / "again"), "--baseline", str(out)]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("rule_broken")
def test_an_expected_difference_that_changes_is_looked_into(swept: Path, models: Path, tmp_path: Path) -> None:
    """What is expected to differ runs once; its layer is sought when its numbers are others than in the baseline."""
    manifest = tmp_path / "one.toml"
    expect = '{ status = "differs", reason = "a broken rule" }'
    manifest.write_text(f"[[model]]\nid = 'models/cnn_int8'\npath = '{models}/cnn_int8.tflite'\nexpect = {expect}\n")
    command = ["sweep", str(manifest), *AS_PLAIN, "-o"]
    assert run([*command, str(tmp_path / "first")]) == 0
    document = json.loads((tmp_path / "first/baseline.json").read_text())
    document["entries"][0]["numbers"] = ["verification out: 1 of 9, up to 1 LSB"]
    (tmp_path / "baseline.json").write_text(json.dumps(document))
    assert run([*command, str(tmp_path / "second"), "--baseline", str(tmp_path / "baseline.json")]) == 5
    changes = json.loads((tmp_path / "second/changes.json").read_text())["changes"]
    assert [c["kind"] for c in changes] == ["numbers"]
    assert changes[0]["layer"].startswith("operator 0 (CONV_2D)")


@pytest.mark.slow
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
        common = ["sweep", str(models), *AS_PLAIN, "-o", str(out), "--baseline", str(baseline), "--only", "cnn_int8"]
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


@pytest.mark.slow
@pytest.mark.usefixtures("rule_broken")
def test_parts_merge_into_the_whole(models: Path, tmp_path: Path) -> None:
    def swept_to(out: Path, selection: Selection, target: str = "integer") -> None:
        sweep(Plan([models], out, [target], selection=selection, settings=PLAIN))

    swept_to(tmp_path / "whole", Selection(ONLY))
    parts = [tmp_path / str(i) for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        swept_to(part, Selection(ONLY, shard=(i, 2)))
    merge(parts, tmp_path / "all")
    assert not compare(read_entries(tmp_path / "whole"), read_entries(tmp_path / "all"))
    failed = [r for r in read_results(tmp_path / "all") if r["status"] == "differs"]
    assert [key_of(r) for r in failed] == [("models/cnn_int8", "integer"), ("models/two_signatures", "integer")]
    assert all((tmp_path / "all" / r["artifacts"] / "converted.tflite").exists() for r in failed)
    with pytest.raises(OptionError, match="is in both"):
        merge([parts[0], parts[0]], tmp_path / "twice")
    swept_to(tmp_path / "other", Selection(("/pad",)), "kernels")
    with pytest.raises(
        OptionError, match=r"options or versions are not those of .*, --target integer \(now --target kernels\)"
    ):
        merge([parts[0], tmp_path / "other"], tmp_path / "mixed")
    again = tmp_path / "again"
    swept_to(again, Selection(failed_from=tmp_path / "all"))
    assert sorted(key_of(r) for r in read_results(again)) == sorted(key_of(r) for r in failed)


def test_a_merge_says_what_is_missing(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A part that was not given, and one that was interrupted."""
    only, parts = ("pad", "split", "arg_min", "log_softmax"), [tmp_path / str(i) for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        sweep(Plan([models], part, selection=Selection(only, shard=(i, 3)), settings=PLAIN))
    keys = [{key_of(r) for r in read_results(part)} for part in parts]
    last = next(part for part, held in zip(parts, keys, strict=True) if held)
    rest = [part for part in parts if part != last]
    assert run(["sweep", "merge", *map(str, parts), "-o", str(tmp_path / "all")]) == 0
    assert "ALL AS EXPECTED" in capsys.readouterr().out
    assert run(["sweep", "merge", *map(str, rest), "-o", str(tmp_path / "some")]) == 5
    for again in ([], ["sweep", "page", str(tmp_path / "some")]):
        assert not again or run(again) == 0
        assert 'verdict bad">' in (page := (tmp_path / "some" / "index.html").read_text("utf-8"))
        assert "is not among them" in page
    out = capsys.readouterr().out
    missing = len(keys[parts.index(last)])
    assert f"{missing} OF 4 MISSING" in out
    assert f"part {parts.index(last) + 1}/3 is not among them, with {missing} of 4 results: merge it, too" in out
    assert all(id.removeprefix("models/") in out for id, _ in keys[parts.index(last)])
    assert f'failures="{missing}"' in (tmp_path / "some" / "junit.xml").read_text()
    assert f"**{missing} missing**" in (tmp_path / "some" / "summary.md").read_text()
    lines = (last / "results.jsonl").read_bytes().splitlines(keepends=True)
    (last / "results.jsonl").write_bytes(b"".join(lines[1:]))
    assert run(["sweep", "merge", *map(str, parts), "-o", str(tmp_path / "all"), "--force"]) == 5
    out = capsys.readouterr().out
    assert "1 OF 4 MISSING" in out
    assert f"{last} lacks 1 of {missing} results: go on with that sweep by --resume" in out


@pytest.mark.usefixtures("rule_broken")
def test_a_tolerance_accepts_what_it_covers(models: Path, tmp_path: Path) -> None:
    for counts, status in ((0.0, "differs"), (255.0, "ok")):
        out = tmp_path / status
        sweep(Plan([models / "cnn_int8.tflite"], out, settings=replace(PLAIN, max_lsb=counts)))
        (result,) = read_results(out)
        assert result["status"] == status
    assert result["verification"]["verdict"] == "accepted"


def test_the_cache_spares_verification(models: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        sweep(Plan([models / "pad.tflite"], tmp_path / name, cache=tmp_path / "cache"))
    (first,), (second,) = (read_results(tmp_path / name) for name in ("first", "second"))
    assert first["cached"] == []
    assert second["cached"] == ["random", "xnnpack"]
    assert first["verification"] == second["verification"]
