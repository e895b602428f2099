"""`tflq ops`: the coverage table, as text and JSON, of operators and targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tflq.base.files import resource
from tflq.cli import main
from tflq.tools.coverage import table

WHOLE = ("--target", "integer")
"""The table that the page of coverage has, too: whoever needs it first computes it."""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main.run(["ops", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--operator", "abs")
    assert (code, err) == (0, "")
    head, *rows = out.splitlines()
    assert head.split() == ["operator", "types", "path", "why"]
    assert any(row.startswith("ABS ") and "qi8 -> qi8" in row and " table" in row for row in rows)
    assert rows[-1].startswith("rows")


@pytest.mark.slow
def test_the_second_time_the_table_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(capsys, *WHOLE)
    assert len(first[1].splitlines()) > 2000
    part = (*WHOLE, "--operator", "tanh", "--json")
    computed = run(capsys, *part, "--fresh")
    monkeypatch.setattr(table, "coverage", None)
    assert run(capsys, *WHOLE) == first
    assert run(capsys, *part) == computed


def test_the_forms_of_onnx_have_a_table_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Of operators between casts, and of those that have the exact form."""
    _, out, _ = run(capsys, "--json", "--operator", "tanh", "--target", "qdq")
    document = json.loads(out)
    paths = {row["key"]: row["path"] for row in document["rows"]}
    assert document["target"] == "qdq"
    assert paths["tanh i8: the result's scale is the kernel's"] == "kept"
    assert paths["tanh i16: the result's scale is the kernel's"] == "integer"
    _, out, _ = run(capsys, "--json", "--operator", "tanh", "--target", "onnx")
    assert json.loads(out)["rows"][0]["path"] == "integer"


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 160])
def test_on_a_terminal_it_fits(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = run(capsys, *WHOLE)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    assert "ABS" in lines


@pytest.mark.parametrize("operator", ["softmax", "SOFTMAX"])
def test_json(operator: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--operator", operator, "--json")
    document = json.loads(out)
    assert (code, err, document["format"], document["target"]) == (0, "", "tflq.ops", "integer")
    rows = {(*row["operands"], row["operator"]): row["path"] for row in document["rows"]}
    assert {row[-1] for row in rows} == {"SOFTMAX", "LOG_SOFTMAX"}
    assert rows["qi8", "SOFTMAX"] in ("integer", "table")


@pytest.mark.parametrize(("target", "name"), [("kernels", "kernels"), (resource("rules/npu_example.toml"), "npu")])
def test_target(target: str | Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--operator", "tanh", "--json", "--target", target)
    document = json.loads(out)
    assert (code, document["target"]) == (0, name)
    kept = {row["operands"][0] for row in document["rows"] if row["path"] == "kept"}
    assert "qi8" in kept
    assert ("qi16" in kept) == (name == "kernels")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, 2, "mine.toml: No such file"),
        ("[kernels]\nabs = 'qi9 -> qi8'", 2, "mine.toml:2: [kernels] abs: 'qi9' is not a port"),
    ],
)
def test_a_target_that_is_none(
    content: str | None, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_text(content)
    found, out, err = run(capsys, "--target", path)
    assert (found, out) == (code, "")
    assert message in err


def test_an_operator_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--operator", "nonsense")
    assert (code, out) == (2, "")
    assert "no operator's name contains 'nonsense'; tflq ops lists all" in err


def test_a_name_of_no_target(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--target", "kernel")
    assert (code, out) == (2, "")
    assert "did you mean 'kernels'? known: integer, kernels, portable, tflm, int8, int16x8, uint8, tosa" in err
