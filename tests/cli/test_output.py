"""Tables and sizes."""

from __future__ import annotations

import os

import click
import pytest

from tflq.cli import output


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (12536, "12.2 KiB"), (5 << 40, "5120.0 GiB")]
)
def test_size(count: int, text: str) -> None:
    assert output.size(count) == text


def test_table_sets_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["operator", "count"], [["ADD", "3"], ["MUL", "12"]], right=(1,))
    assert capsys.readouterr().out == "operator  count\nADD           3\nMUL          12\n"


def test_table_fits_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 24)))
    output.table(["tensor", "count"], [["a" * 30 + "b" * 30, "3"]], right=(1,))
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 40
    assert "a…b" in lines[1]
