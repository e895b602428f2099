"""The verdict on a conversion: what is said first, in how many words, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.harness import argument

import tflq
from tflq.analysis.arena import Arena
from tflq.cli import main, output
from tflq.cli.conversion_report import print_cost, types
from tflq.conversion.cost import Cost
from tflq.conversion.report import Report, Row, details, verdict, warnings
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, f32, i8

Q = UniformQuantizedType(i8, f32, 0.5, 0, -128, 127)


def row(number: int, opcode: str, path: str = "integer", reason: str = "", **fields: Any) -> Row:
    return Row(0, number, opcode, "t", ("qi8",), ("qi8",), path, reason, "", fields.pop("warning", ""), 1, **fields)


def report(*rows: Row, warnings: tuple[str, ...] = ()) -> Report:
    found = Report(Module([]), [])
    said = [*warnings, *(f"{r.place}: {r.warning}" for r in rows if r.warning)]
    found.__dict__.update(rows=rows, warnings=said)
    return found


def custom_model(path: Path) -> Path:
    """ADD, and two custom operators of one name."""
    x, y, a, b = (argument((4,), Q, name) for name in "xyab")
    ops = [Op("tfl.add", [x, x], [y], {"fused_activation_function": "NONE"})]
    ops += [Op("tfl.custom", [y], [out], {"custom_code": "Mine"}) for out in (a, b)]
    path.write_bytes(write(Module([Function("main", [x], [a, b], ops)])))
    return path


def test_all_integer() -> None:
    assert verdict([row(0, "ADD"), row(1, "MUL")]) == [("integer", "2 of 2 operators")]
    assert verdict([]) == [("integer", "0 of 0 operators")]


def test_custom_operators_come_first_by_their_names() -> None:
    kept = [row(n, "WHILE", "kept", "calls a subgraph") for n in range(2)]
    kept.append(row(2, "CUSTOM", "kept", "no quantized tensor", custom_code="TFLite_Detection_PostProcess"))
    assert verdict([*kept, row(3, "ADD")]) == [
        ("integer", "1 of 4 operators"),
        ("kept as they are", "3 (TFLite_Detection_PostProcess, WHILE x2)"),
    ]


def test_one_operator_of_a_kind_is_told_with_its_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    kept = [row(number, "WHERE", "kept") for number in (2, 3)]
    output.blocks(details(report(row(0, "ADD"), row(1, "ATAN2", "float", "no table"), *kept)))
    listed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ATAN2", "1", "'t'", "float", "no", "table"] in listed
    assert ["WHERE", "2,", "3", "kept"] in listed


def test_what_is_kept_is_told_apart() -> None:
    rows = row(0, "SHAPE", "kept", "no quantized tensor"), row(1, "ADD", "kept", "a kernel of the target 'npu': qi8")
    assert verdict([*rows, row(2, "ATAN2", "float", "no table")]) == [
        ("integer", "0 of 3 operators"),
        ("computed in float", "1 (ATAN2)"),
        ("kernels of the target", "1 (ADD)"),
        ("without quantized tensors", "1 (SHAPE)"),
    ]


def test_many_kinds_are_counted() -> None:
    (_, (_, text)) = verdict([row(n, f"OP{n}", "float", "why") for n in range(9)])
    assert text == "9 (OP0, OP1, OP2, OP3, OP4 and 4 more kinds)"
    assert verdict([row(n, "AB"[n > 0], "float", "why") for n in range(3)])[1][1] == "3 (B x2, A)"


def test_a_warning_of_many_operators_is_one() -> None:
    rows = [row(n, "MEAN", warning="its scale is disregarded") for n in range(3)]
    assert warnings(report(*rows, row(3, "ADD", warning="another"), warnings=("of the file",))) == [
        "of the file",
        "3 operators (MEAN x3), the first of them operator 0 (MEAN), tensor 't': its scale is disregarded",
        "operator 3 (ADD), tensor 't': another",
    ]


def test_runs_of_types_are_counted() -> None:
    assert types(["f32", *["qi8"] * 3, "none", "none"], ["f32"]) == "f32, qi8 x3, none, none -> f32"


@pytest.mark.parametrize("columns", ["80", "160", ""])
def test_convert_says_it_first(
    columns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    model = custom_model(tmp_path / "m.tflite")
    assert main.run(["convert", str(model), str(tmp_path / "out.tflite")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["integer: 1 of 3 operators", "kept as they are: 2 (Mine x2)"]
    assert [line for line in lines if line.startswith("Mine") and "custom operator" in line] == [
        "Mine      1, 2    kept  custom operator"
    ]
    assert any(line.startswith("ops: ") for line in lines)


def test_inspect_why_at_80_columns_keeps_the_reason(
    models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = models / "atan2_int16.tflite"
    assert main.run(["inspect", str(path), "--why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (found,) = tflq.convert(path).report.rows
    assert lines[:2] == ["integer: 0 of 1 operator", "computed in float: 1 (ATAN2)"]
    assert max(map(len, lines)) <= 80
    words = " ".join(" ".join(lines[4:]).split())
    assert all(word in words for word in found.reason.split())


FILE = "file 12.2 → 116.0 KiB (×9.5)"
UNKNOWN = "unknown before a run: operator 3 (WHERE) gives what it finds then"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, None, ""),  # TOSA
        (None, Arena(1536, 512), ", arena 2.0 KiB, 512 B persistent"),  # of TOSA
        (Arena(1600, 0), Arena(12900, 0), ", arena 1.6 → 12.6 KiB (×8.1)"),
        (Arena(900, 0), Arena(9000, 0, beside=("TOP",)), ", arena 900 B → 8.8 KiB (×10); scratch of TOP not counted"),
        (Arena(0, 0), Arena(64, 0), ", arena 0 → 64 B"),
        (Arena(None, 0, "operator 1 (WHERE)"), Arena(None, 64, "operator 3 (WHERE)"), f", arena {UNKNOWN}"),
        (Arena(64, 0), Arena(None, 0, "operator 3 (WHERE)"), f", arena 64 B → {UNKNOWN}"),
        (Arena(None, 0, "operator 1 (WHERE)"), Arena(64, 0), ", arena unknown before a run → 64 B"),
    ],
)
def test_file_and_arena_before_and_after(
    before: Arena | None, after: Arena | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_cost(Cost(12536, 118784, before, after))
    assert capsys.readouterr().out == f"{FILE}{told}\n"


def test_the_cost_is_told(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(models / "cnn_int8.tflite")
    cost = tflq.convert(model).cost
    assert main.run(["convert", model, str(tmp_path / "out.tflite")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "file 12.2 → 116.3 KiB (×9.5), arena 11.1 → 65.0 KiB (×5.8), 5.5 KiB persistent"
    assert lines[3:5] == [cost.slower, cost.instead]
    assert main.run(["convert", model, str(tmp_path / "out.tosa")]) == 0
    assert capsys.readouterr().out.splitlines()[2:4] == ["file 12.2 → 24.5 KiB (×2)", ""]


def test_quiet_costs_nothing(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where many are converted."""
    monkeypatch.setattr(tflq.Conversion, "cost", property(lambda _: pytest.fail("it is worked out")))
    paths = [str(models / name) for name in ("pad.tflite", "split.tflite")]
    assert main.run(["convert", paths[0], str(tmp_path / "out.tflite"), "-q"]) == 0
    assert main.run(["convert", *paths, "-o", str(tmp_path / "out"), "--workers", "1", "-q"]) == 0
