"""Lines, tables and sizes: what they hold on a terminal, in a pipe and where the environment says a width."""

from __future__ import annotations

import pytest

from tflq.cli import output

ROWS = [["a" * 30 + " " + "b" * 30, "3"], ["c" * 20, "12"]]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (12536, "12.2 KiB"), (5 << 40, "5120.0 GiB")]
)
def test_size(count: int, text: str) -> None:
    assert output.size(count) == text


def test_a_table_sets_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["operator", "count"], [["ADD", "3"], ["MUL", "12"]], right=(1,))
    assert capsys.readouterr().out == "operator  count\nADD           3\nMUL          12\n"


def test_a_table_wraps_to_the_width_and_loses_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    output.table(["tensor", "count"], ROWS, right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert [line.split() for line in lines] == [["tensor", "count"], ["a" * 30, "3"], ["b" * 30], ["c" * 20, "12"]]


def test_words_longer_than_their_column_go_on_in_the_next_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    output.table(["tensor", "count"], [["x" * 100, "3"]], right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 30
    assert "".join(lines).count("x") == 100


def test_names_of_tensors_end_a_line_behind_a_slash(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    output.table(["tensor", "count"], [["model/block_12/conv2d_1/Relu", "3"]], right=(1,))
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["model/block_12/", "3"],
        ["conv2d_1/Relu"],
    ]


def test_in_a_pipe_a_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["tensor", "why"], [["short", "why " * 100], ["long " * 100, "why"]])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert len(lines[1]) < 48 + 2 + 400
    assert lines[2] == "long " * 100 + "  why"


def test_a_field_wraps_beside_its_name(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    output.field("size", "one two three four five")
    assert capsys.readouterr().out == "size        one two three four\n            five\n"


@pytest.mark.parametrize(("variable", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False), ("", False)])
def test_colour_is_as_the_environment_says(
    variable: str, coloured: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv(variable, "1")
    output.line(("warning", "yellow"))
    assert ("\x1b[33m" in capsys.readouterr().out) == coloured


def test_names_do_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["tensor"], [["\x1b[2J[bold]x\r"]])
    output.warnings(["a\x07b"])
    assert capsys.readouterr().out == "tensor\n\\x1b[2J[bold]x\\x0d\nwarning: a\\x07b\n"


def test_a_warning_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    output.warnings(["a", "b", "a"])
    assert capsys.readouterr().out == "warning: a\nwarning: b\n"
