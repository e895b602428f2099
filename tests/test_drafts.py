"""Files on their way: nothing half-written stays, of whatever process, and what is replaced keeps its mode."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tflq
from tflq import drafts, files
from tflq.cli import main

KILLED = """
import os, signal, sys
from tflq import files
if sys.argv[2] == "named":
    del os.O_TMPFILE

def pieces():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

files.replace_file(sys.argv[1], pieces())
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell hosts and processes apart")


@pytest.fixture(autouse=True)
def first_look() -> None:
    """Each test is the first to write in a folder."""
    drafts._remove_dead.cache_clear()


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the system has unnamed files."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return str(request.param)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_mode_of_what_is_replaced_stays(way: str, tmp_path: Path) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    other.write_bytes(b"")
    files.replace_file(place, [b"first"], force=False)
    assert mode(place) == mode(other)
    for bits in (0o600, 0o444, 0o755):
        place.chmod(bits)
        files.replace_file(place, [b"new"])
        assert (mode(place), place.read_bytes()) == (bits, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "place"]


def test_a_secret_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has a name from the start has the mode of what it replaces from the start."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    place = tmp_path / "place"
    place.touch(0o600)

    def pieces() -> Iterator[bytes]:
        assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
        yield b"secret"

    files.replace_file(place, pieces())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
@pytest.mark.parametrize("there", [False, True])
def test_a_failed_report_leaves_no_result(there: bool, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    if there:
        out.write_bytes(b"precious")
    line = ["convert", str(models / "pad.tflite"), str(out), "--report", "/dev/full", "-q", "--force"]
    assert main.run(line) == 2
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"precious"] * there


def test_of_several_files_all_are_placed_or_none(way: str, tmp_path: Path) -> None:
    """The last place becomes a folder while the files are written."""
    new, old, last = (tmp_path / name for name in ("new", "old", "last"))
    old.write_bytes(b"precious")

    def pieces() -> Iterator[bytes]:
        last.mkdir()
        yield b"last"

    with pytest.raises(tflq.FileError, match=str(last)):
        files.replace_files([(new, [b"1"]), (old, [b"2"]), (last, pieces())])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "old"]
    assert old.read_bytes() == b"precious"


@linux
@pytest.mark.parametrize("there", [False, True])
def test_a_killed_process_leaves_nothing(way: str, there: bool, tmp_path: Path) -> None:
    place = tmp_path / "place"
    if there:
        place.write_bytes(b"precious")
    done = subprocess.run([sys.executable, "-c", KILLED, str(place), way], check=False)
    assert done.returncode == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path != place]
    assert len(left) == (way == "named")
    files.replace_file(tmp_path / "next", [b"next"])
    assert {path.name for path in tmp_path.iterdir()} == {"next"} | ({"place"} if there else set())


@linux
def test_only_what_is_certainly_dead_goes(tmp_path: Path) -> None:
    own, host = os.getpid(), drafts._host()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = {
        f".tflq-{host}-{gone.pid}-5-00000000": True,
        f".tflq-{host}-{own}-5-00000000": True,  # the number of a process that is gone was given again
        f".tflq-{host}-{own}-{drafts._start(own)}-00000000": False,
        f".tflq-{host}-{own}-0-00000000": False,  # begun at a time that is not known
        f".tflq-0123456789abcdef-{gone.pid}-5-00000000": False,
        f".tflq-0-{gone.pid}-5-00000000": False,
        ".tflq-notes": False,
    }
    for name in names:
        (tmp_path / name).touch()
    files.replace_file(tmp_path / "x", [b""])
    assert {path.name for path in tmp_path.iterdir()} == {"x"} | {name for name, dead in names.items() if not dead}


@pytest.mark.parametrize("length", [246, 247, 255])
def test_names_as_long_as_the_system_takes(way: str, length: int, models: Path, tmp_path: Path) -> None:
    place = tmp_path / f"{'n' * (length - 7)}.tflite"
    for _ in range(2):
        tflq.convert(models / "pad.tflite", place, force=True)
    assert [path.name for path in tmp_path.iterdir()] == [place.name]
