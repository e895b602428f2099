"""`tflq convert IN... -o DIR`: many models, one summary, and what becomes of those that fail."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import tflq
from tflq.cli import main
from tflq.conversion.cost import total

pytestmark = pytest.mark.usefixtures("forked")

NAMES = ("pad", "split", "mul_per_axis", "atan2_int16")


@pytest.fixture
def sources(models: Path, tmp_path: Path) -> list[Path]:
    folder = tmp_path / "in"
    folder.mkdir()
    return [Path(shutil.copy(models / f"{name}.tflite", folder)) for name in NAMES]


def run(*arguments: object) -> int:
    return main.run(["convert", *map(str, arguments)])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("format", ["tflite", "tosa"])
def test_the_bytes_are_those_of_one_by_one(
    workers: int, format: str, sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "out"
    assert run(*sources, "-o", out, "--workers", workers, "--format", format) == 0
    assert contents(out) == {f"{p.stem}.{format}": tflq.convert(p, format=format).data for p in sources}
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["converted: 4 of 4 models", "integer: 3 of 4 operators", "computed in float: 1 (ATAN2)"]
    assert sum(line.startswith(f"{name}.{format}") for line in lines for name in NAMES) == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_one_that_fails_does_not_stop_the_others(
    workers: int, sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(b"junk")
    given = [broken, *sources]
    assert run(*given, "-o", tmp_path / "out", "--workers", workers, "--fallback", "error") == 4
    printed = capsys.readouterr()
    assert set(contents(tmp_path / "out")) == {"pad.tflite", "split.tflite", "mul_per_axis.tflite"}
    assert printed.out.startswith("converted: 3 of 5 models\nintegers"[:-1])
    assert [line for line in printed.err.splitlines() if line.startswith("tflq: ")] == [
        f"tflq: {broken}: not a TFLite model: 4 bytes are too few; was it written, or downloaded, to the end?",
        f"tflq: {sources[-1]}: cannot convert 1 operator:",
    ]
    assert run(broken, sources[0], "-o", tmp_path / "other", "-q") == 3
    quiet = capsys.readouterr()
    assert (quiet.out, len(quiet.err.splitlines())) == ("", 1)


def test_as_json(sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*sources, "-o", tmp_path / "out", "--workers", 2, "--fallback", "error", "--json") == 4
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert printed.err == ""
    assert (told["format"], told["version"], told["exit_code"]) == ("tflq.conversions", 2, 4)
    assert [found["format"] for found in told["conversions"]] == [*["tflq.conversion"] * 3, "tflq.error"]
    assert [found["arena"]["bytes"] > 0 for found in told["conversions"][:3]] == [True] * 3
    assert told["cost"] == total([tflq.convert(path).cost for path in sources[:3]]).to_json()
    assert [found["source"] for found in told["conversions"]] == [str(path) for path in sources]
    report = tflq.convert(sources[0], fallback="error").report
    assert told["conversions"][0]["report"] == json.loads(json.dumps(report.to_json()))


def test_the_cost_of_each_and_of_all(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [models / f"{name}.tflite" for name in ("cnn_int8", "atan2_int16")]
    assert run(*given, "-o", tmp_path / "out", "--workers", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "file 12.9 → 119.7 KiB (×9.2), arena 11.3 → 65.5 KiB (×5.8), 5.5 KiB persistent" in lines
    assert sum(line.startswith("Expect an interpreter to run 1 of 2 results slower") for line in lines) == 1
    rows = [line.split("  ")[-2:] for line in lines if line.startswith(("cnn_int8", "atan2"))]
    assert rows == [
        ["12.2 → 116.3 KiB (×9.5)", "11.1 → 65.0 KiB (×5.8)"],
        ["720 B → 3.4 KiB (×4.8)", " 176 → 480 B (×2.7)"],
    ]


def test_equal_names_are_an_error_before_anything_is_written(
    sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more").mkdir()
    twin = Path(shutil.copy(sources[0], tmp_path / "more"))
    out = tmp_path / "out"
    assert run(*sources, twin, "-o", out) == 2
    err = capsys.readouterr().err
    assert all(str(path) in err for path in (sources[0], twin, out / "pad.tflite"))
    assert not out.exists()


def test_files_that_exist_are_replaced_only_by_force(sources: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "split.tflite").write_bytes(b"precious")
    assert run(*sources, "-o", out) == 2
    assert contents(out) == {"split.tflite": b"precious"}
    assert run(*sources, "-o", out, "--force", "--workers", 1) == 0
    assert len(contents(out)) == 4


def test_models_are_never_replaced(sources: list[Path]) -> None:
    before = contents(sources[0].parent)
    assert run(*sources, "-o", sources[0].parent, "--force") == 2
    assert contents(sources[0].parent) == before


def test_a_folder_keeps_its_tree(sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results in a folder among the models are none of them."""
    folder = sources[0].parent
    (folder / "deep" / "er").mkdir(parents=True)
    twin = Path(shutil.copy(sources[0], folder / "deep" / "er"))
    (folder / "deep" / "notes.txt").write_text("no model")
    out = folder / "out"
    for options in ([], ["--force"]):
        assert run(folder, "-o", out, "--workers", 1, *options) == 0
        written = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
        assert written == {*(f"{name}.tflite" for name in NAMES), f"deep/er/{twin.name}"}
    assert "converted: 5 of 5 models" in capsys.readouterr().out
    assert run(folder, "-o", folder, "--force") == 2
    assert "the models to convert are in this folder" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty", "-o", out) == 2
    assert "there is no model in this folder" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_there_is_skipped(sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "split.tflite").write_bytes(b"precious")
    assert run(sources[0].parent, "-o", out, "--skip-existing", "--workers", 2) == 0
    assert capsys.readouterr().out.startswith("converted: 3 of 4 models, 1 of 4 were there\n")
    assert (out / "split.tflite").read_bytes() == b"precious"
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert run(*sources, "-o", out, "--skip-existing", "--json", "--workers", 1) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["skipped"], [each["format"] for each in told["conversions"]]) == (4, ["tflq.skipped"] * 4)
    assert told["conversions"][0]["files"] == [str(out / "pad.tflite")]
    assert before == {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert run(*sources, "-o", out, "--skip-existing", "--force") == 2


def test_of_several_signatures_what_is_missing_is_written(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model whose name begins as another's does not count as one of its signatures."""
    source = Path(shutil.copy(models / "two_signatures.tflite", tmp_path / "a.tflite"))
    out, options = tmp_path / "out", ("--format", "mlir", "--skip-existing", "--workers", 1)
    out.mkdir()
    (out / "a.other.mlir").write_bytes(b"precious")
    assert run(source, "-o", out, *options) == 0
    assert {*contents(out)} == {"a.other.mlir", "a.classify.mlir", "a.embed.mlir"}
    whole = contents(out)
    capsys.readouterr()
    assert run(source, "-o", out, *options) == 0
    assert "0 of 1 models, 1 of 1 were there" in capsys.readouterr().out
    (out / "a.embed.mlir").unlink()
    (out / "a.classify.mlir").write_bytes(b"kept")
    assert run(source, "-o", out, *options) == 0
    assert contents(out) == {**whole, "a.classify.mlir": b"kept"}


def test_signatures_that_meet(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of a signature that would take another's place is known before one is written."""
    first = Path(shutil.copy(models / "two_signatures.tflite", tmp_path / "a.tflite"))
    second = Path(shutil.copy(models / "pad.tflite", tmp_path / "a.embed.tflite"))
    options = "--format", "mlir", "--force", "--workers", 1
    assert run(first, second, "-o", tmp_path / "out", *options) == 2
    assert f"{first} and {second} would both be this file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    second = tmp_path / "a.other.tflite"
    second.write_bytes(b"")
    assert run(first, second, "-o", tmp_path / "out", *options) == 3
    assert {*contents(tmp_path / "out")} == {"a.classify.mlir", "a.embed.mlir"}


def test_files_beside_that_meet(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NAME_data.c is a file of one model and of another, where constants have one of their own."""
    first, second = (
        Path(shutil.copy(models / "pad.tflite", tmp_path / name)) for name in ("a.tflite", "a_data.tflite")
    )
    out, options = tmp_path / "out", ("--format", "c", "--workers", 1, "--data")
    for more in ((), ("--force",)):
        assert run(first, second, "-o", out, *options, "separate", *more) == 2
        err = capsys.readouterr().err
        assert f"{out / 'a_data.c'}: {first} and {second} would both be this file; rename one" in err
        assert not out.exists()
    assert run(first, second, "-o", out, *options, "inline") == 0
    assert {*contents(out)} == {"a.c", "a.h", "a_data.c", "a_data.h"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.tflite", "-o", "out", "--report", "r.json"], "--report is for one model"),
        (["-", "-o", "out"], "no name to write under"),
        (["a.tflite", "b.tflite", "c.tflite"], "a folder: -o DIR"),
        (["a.tflite", "b.tflite", "--workers", "2"], "are for many models"),
        (["nowhere.tflite", "-o", "out"], "there is no such file"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def of_session(session: int) -> list[str]:
    """The processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, of = path.read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(path.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_stops_the_workers_too(name: str, models: Path, tmp_path: Path) -> None:
    given = [shutil.copy(models / "cnn_int8.tflite", tmp_path / f"m{n}.tflite") for n in range(40)]
    command = [sys.executable, "-m", "tflq", "convert", *map(str, given), "-o", str(tmp_path / "out"), "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    out, deadline = tmp_path / "out", time.monotonic() + 60
    while not (out.is_dir() and any(out.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)
    assert process.returncode == {"SIGTERM": 143, "SIGINT": 130}[name]
    assert b"Traceback" not in err
    assert all(path.suffix == ".tflite" and not path.name.startswith(".") for path in out.iterdir())
    assert all(path.read_bytes() == tflq.convert(given[0]).data for path in list(out.iterdir())[:1])
    assert b"the same command with --skip-existing goes on with the rest" in err
    while (left := of_session(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == []
