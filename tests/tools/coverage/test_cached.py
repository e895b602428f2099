"""Tables of `tflq ops` in the user's cache: read when nothing has changed, and never in the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tflq.base.caches import DiskCache, user_cache
from tflq.base.errors import FileError
from tflq.formats.options import Options
from tflq.tools.coverage import CoverageRow, cached, table

ROWS = [
    CoverageRow("ABS", ("qi8",), ("qi8",), "equal scales", "integer", "", "", (), "abs i8: equal scales"),
    CoverageRow("ADD", ("qi8", "none"), ("qi8",), "", "float", "so → it is \udcff", "", ("pro_fp",), "add i8"),
]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that the engine is asked about, in place of which it has two rows; its source is one file."""
    operators: list[str] = []

    def coverage(options: Options, operator: str) -> Iterator[CoverageRow]:
        operators.append(operator)
        return (row for row in ROWS if operator.upper() in row.operator)

    (tmp_path / "engine.py").write_text("1")
    monkeypatch.setattr(table, "coverage", coverage)
    monkeypatch.setattr(cached, "_sources", lambda: [str(tmp_path / "engine.py"), str(tmp_path / "removed.py")])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return operators


def rows(target: str | Path | None = None, operator: str = "", *, fresh: bool = False) -> list[CoverageRow]:
    return list(cached.rows_of(target, Options(), operator, fresh=fresh))


def test_a_table_is_computed_once(asked: list[str]) -> None:
    assert rows() == rows() == ROWS
    assert rows(operator="Ab") == ROWS[:1]
    assert asked == [""]
    assert rows(fresh=True) == ROWS
    assert asked == ["", ""]


def test_a_part_is_computed_alone_and_not_written(asked: list[str]) -> None:
    assert rows(operator="ab") == ROWS[:1]
    assert rows() == ROWS
    assert asked == ["ab", ""]


def test_a_changed_engine_or_target_has_a_table_of_its_own(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, engine = tmp_path / "npu.toml", tmp_path / "engine.py"
    target.write_text("[kernels]")
    rows(target)
    target.write_text("[builtins]")
    rows(target)
    rows()
    os.utime(engine, (1, 1))
    rows()
    monkeypatch.setattr(cached, "__version__", "0")
    rows()
    assert asked == [""] * 5
    rows()
    assert asked == [""] * 5


def test_the_engine_is_all_files_of_the_package() -> None:
    ends = ("tflq/tools/coverage/cached.py", "rules/kernels.toml", "schema/tflite.json")
    sources = list(cached._sources())
    assert all(any(Path(path).as_posix().endswith(end) for path in sources) for end in ends)


@pytest.mark.parametrize("content", [b"", b"[]]", b'[{"operator": "ABS"}]', b'["ABS"]', b"[{}]"])
def test_an_entry_that_is_something_else_is_a_miss(content: bytes, asked: list[str]) -> None:
    rows()
    DiskCache(user_cache() / "ops", cached._LIMIT, shelves=1).put(cached._key(None), content)
    assert rows() == ROWS
    assert asked == ["", ""]


def test_without_a_folder_the_engine_is_asked(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert rows() == rows() == ROWS
    assert asked == ["", ""]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners of files here")
@pytest.mark.parametrize("name", ["tflq", "tflq/ops"])
def test_a_folder_that_others_can_write_to_is_not_believed(name: str, asked: list[str], tmp_path: Path) -> None:
    rows()
    (tmp_path / "caches" / name).chmod(0o777)
    assert rows() == ROWS
    assert asked == ["", ""]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_read_a_second_time(asked: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "target")
    assert rows(tmp_path / "target") == rows(tmp_path / "target") == ROWS
    assert asked == ["", ""]


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(none))
    with pytest.raises(FileError, match=r"Could not determine home directory\.; set XDG_CACHE_HOME"):
        user_cache()
