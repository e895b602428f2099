"""What programs read: errors as documents, numbers with all their digits."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument

import tflq
from tflq.base.errors import Reason, plain_numbers
from tflq.cli import main
from tflq.cli.output import size
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, f64, i8
from tflq.tools.inspect import Summary

FIELDS = {"what", "path", "subgraph", "operator", "opcode", "tensor", "place", "value", "remedy"}


def document(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict]:
    """A command's exit code and the one document that it prints, with nothing on stderr."""
    code = main.run([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, json.loads(printed.out)


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["conert"], 2, "OptionError"),
        (["convert", "{pad}"], 2, "OptionError"),
        (["inspect", "nowhere"], 2, "FileError"),
        (["convert", "{pad}", "{out}.pb"], 2, "OptionError"),
        (["convert", "{pad}", "{out}/no/out.tflite"], 2, "FileError"),
        (["inspect", "{bad}"], 3, "InvalidModelError"),
        (["convert", "{atan2}", "{out}.tflite", "--fallback", "error"], 4, "UnsupportedError"),
        (["ops", "--target", "moon"], 2, "OptionError"),
    ],
)
def test_errors_are_documents(
    arguments: list[str], code: int, kind: str, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_bytes(b"\0\0\0\0TFL3" + b"\xff" * 64)
    names = {"pad": models / "pad.tflite", "atan2": models / "atan2_int16.tflite"}
    names |= {"out": tmp_path / "out", "bad": tmp_path / "bad"}
    found, told = document(capsys, *(text.format(**names) for text in arguments))
    assert (found, told["exit_code"], told["format"], told["version"]) == (code, code, "tflq.error", 3)
    assert told["error"] == kind
    assert told["message"]
    assert all(set(reason) == FIELDS and reason["remedy"] for reason in told["reasons"])


def test_an_error_names_the_operator_and_the_remedy(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = models / "atan2_int16.tflite"
    _, told = document(capsys, "convert", model, tmp_path / "out.tflite", "--fallback", "error")
    (reason,) = told["reasons"]
    with pytest.raises(tflq.UnsupportedError) as caught:
        tflq.convert(model, fallback="error")
    assert reason == caught.value.reason.to_json()
    assert (reason["path"], reason["operator"], reason["opcode"]) == (str(model), 0, "ATAN2")
    assert reason["remedy"]


@pytest.mark.parametrize(("rows", "sizes"), [(2, False), (None, True)])
def test_a_refusal_of_tosa_says_what_else_there_is(
    rows: int | None, sizes: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = argument((rows, 3), f64), argument((rows, 3), f64, "y")
    path = tmp_path / "m.tflite"
    path.write_bytes(bytes(write(Module([Function("main", [x], [y], [Op("tfl.sin", [x], [y], {})])]))))
    code, told = document(capsys, "convert", path, tmp_path / "m.tosa")
    assert code == 4
    (reason,) = told["reasons"]
    assert reason["remedy"].endswith("convert to a .tflite file, or only the part before it (--cut)")
    assert reason["remedy"].startswith("state the sizes of the inputs (--batch, --shape)") == sizes


def test_a_bug_is_a_document(models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(tflq, "inspect", broken, raising=False)
    code, told = document(capsys, "inspect", models / "pad.tflite")
    assert (code, told["error"], told["exit_code"]) == (70, "InternalError", 70)
    Path(told["message"].split("the file ")[1].rstrip(".")).unlink()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1, 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (np.int8(3), 3),
        ((1, 2), "(1, 2)"),
        (None, None),
    ],
)
def test_the_value_of_a_reason(value: object, shown: object) -> None:
    told = Reason("it is wrong", value=value).to_json()["value"]
    assert told == shown
    assert json.loads(json.dumps(told, allow_nan=False)) == shown


def test_numbers_that_json_has_not_read_back() -> None:
    given = {"a": [math.inf, -math.inf, 1e-45], "b": (math.nan,)}
    told = json.loads(json.dumps(plain_numbers(given), allow_nan=False))
    assert [float(x) for x in told["a"]] == given["a"]
    assert math.isnan(float(told["b"][0]))


def test_scales_have_all_their_digits(tmp_path: Path) -> None:
    scales = np.array([1 / 3, 1e-9, 7.0], np.float32)
    per_axis = UniformQuantizedPerAxisType.of(i8, 1, scales, [1, 2, 3])
    blocks = UniformQuantizedSubChannelType.of(i8, (1,), (2,), scales[None, :2])
    x, y = argument((1, 3), per_axis, "x"), argument((1, 4), blocks, "y")
    told = json.loads(json.dumps(Summary.of(Module([Function("main", [x, y], [x], [])])).to_json(), allow_nan=False))
    first, second = (tensor["quantization"] for tensor in told["functions"][0]["inputs"])
    assert np.array_equal(np.array(first["scales"], np.float32), scales)
    assert (first["zero_points"], first["axis"]) == ([1, 2, 3], 1)
    assert np.array_equal(np.array(second["scales"], np.float32), scales[None, :2])
    assert (second["axes"], second["block_sizes"]) == ([1], [2])


def test_custom_operators_have_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = argument((2,), i8, "x"), argument((2,), i8, "y")
    op = Op("tfl.custom", [x], [y], {"custom_code": "Mine"})
    path = tmp_path / "m.tflite"
    path.write_bytes(write(Module([Function("main", [x], [y], [op])])))
    _, told = document(capsys, "inspect", path, "--why")
    assert [(row["opcode"], row["custom_code"]) for row in told["rows"]] == [("CUSTOM", "Mine")]


def test_the_arena_is_stated(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = document(capsys, "convert", models / "cnn_int8.tflite", tmp_path / "out.tflite")
    _, shown = document(capsys, "inspect", tmp_path / "out.tflite")
    assert told["arena"] == shown["functions"][0]["arena"]
    assert told["arena"]["bytes"] == told["arena"]["shared"] + told["arena"]["kept"] > 0
    _, told = document(capsys, "convert", models / "cnn_int8.tflite", tmp_path / "out.tosa")
    assert told["arena"] is None
    main.run(["inspect", str(tmp_path / "out.tflite")])
    assert f"arena       {size(shown['functions'][0]['arena']['bytes'])}" in capsys.readouterr().out
