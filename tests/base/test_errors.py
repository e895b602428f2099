"""Errors carry their reasons as data, and survive pickling and copying, as conversions do."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from support.harness import argument, one_op

import tflq
from tflq.base.errors import InvalidModelError, ParseError, Reason, Refused, TflqError, VerificationError
from tflq.ir.ops import Location
from tflq.ir.text.parser import parse_module
from tflq.ir.types import UniformQuantizedType, i16
from tflq.tools.verify.runner import RunError

MODELS = Path(__file__).parents[2] / "models"


def unsupported() -> None:
    tflq.convert(MODELS / "atan2_int16.tflite", fallback="error")


def invalid() -> None:
    data = bytearray((MODELS / "cnn_int8.tflite").read_bytes())
    tflq.read(bytes(data[:700]))


def bad_option() -> None:
    tflq.convert(MODELS / "pad.tflite", mac="int7")  # type: ignore[arg-type]


def no_file() -> None:
    tflq.read("nowhere/model.tflite")


def no_text() -> None:
    parse_module("func.func @f(%x: tensor<1xi8", "m.mlir")


def not_run() -> None:
    raise RunError("the interpreter's process aborted", fatal=True)


def plain() -> None:
    raise TflqError("something")


RAISERS = [unsupported, invalid, bad_option, no_file, no_text, not_run, plain]
COPIES = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]  # noqa: S301 - our own


@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("raiser", RAISERS)
def test_errors_survive(raiser: Callable[[], None], again: Callable[[object], object]) -> None:
    with pytest.raises(TflqError) as caught:
        raiser()
    error = caught.value
    error.add_note("in a pool")
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert isinstance(other, TflqError)
    assert other.reasons == error.reasons
    assert other.args == error.args
    assert other.__notes__ == ["in a pool"]
    for name in ("filename", "errno", "strerror", "line", "column", "excerpt"):
        assert getattr(other, name, None) == getattr(error, name, None)


def test_a_refusal_says_where_and_what_to_do() -> None:
    with pytest.raises(tflq.UnsupportedError) as caught:
        unsupported()
    reason = caught.value.reason
    assert (reason.path, reason.subgraph, reason.operator) == (str(MODELS / "atan2_int16.tflite"), 0, 0)
    assert (reason.opcode, reason.tensor) == ("ATAN2", "angle")
    assert reason.remedy == "without --fallback error it is computed in float"
    assert str(caught.value).startswith(f"{reason.path}: ")
    assert str(reason).removeprefix(f"{reason.path}: ") in str(caught.value)
    assert json.loads(json.dumps(reason.to_json()))["operator"] == 0


def test_an_invalid_file_says_where() -> None:
    x = argument((1, 4), UniformQuantizedType.of(i16, 0.1, 3))
    y = argument((1, 4), UniformQuantizedType.of(i16, 0.1), "y")
    data = one_op("tfl.average_pool_2d", [x], [y], {"stride_w": 0, "stride_h": 1}, 3)
    with pytest.raises(InvalidModelError) as caught:
        tflq.read(data)
    assert (caught.value.reason.subgraph, caught.value.reason.operator) == (0, 0)
    assert caught.value.where in str(caught.value)


def test_a_file_error_is_an_os_error() -> None:
    with pytest.raises(OSError, match=r"nowhere/model.tflite: No such file or directory") as caught:
        no_file()
    assert isinstance(caught.value, tflq.FileError)
    assert (caught.value.filename, caught.value.errno) == ("nowhere/model.tflite", 2)


def test_an_option_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="mac='int7' is not known; known are integer, float32") as caught:
        bad_option()
    assert isinstance(caught.value, tflq.OptionError)
    assert caught.value.reason.value == "int7"


def test_reprs_are_short() -> None:
    with pytest.raises(TflqError) as caught:
        unsupported()
    conversion = tflq.convert(MODELS / "cnn_int8.tflite")
    for thing in (caught.value, conversion, conversion.report, conversion.module, conversion.module.main):
        assert len(repr(thing)) < 200


@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("format", ["tflite", "tosa", "mlir"])
def test_conversions_survive(format: str, again: Callable[[object], object]) -> None:
    conversion = tflq.convert(MODELS / "cnn_int8.tflite", format=format)
    other = again(conversion)
    assert isinstance(other, tflq.Conversion)
    assert other.data == conversion.data
    assert other.format == format
    assert other.report.to_json() == conversion.report.to_json()
    if format != "mlir":
        assert len(other.module.main.ops) == len(conversion.module.main.ops)


@pytest.mark.parametrize(
    ("place", "numbers"),
    [
        ("subgraphs[2].operators[7].inputs[0]", (2, 7, "")),
        ("subgraph 1, tensor 4 'a b'.quantization", (1, None, "a b")),
        ("metadata[3].buffer", (None, None, "")),
    ],
)
def test_places_in_a_file(place: str, numbers: tuple[int | None, int | None, str]) -> None:
    reason = Reason.within(place, "is wrong", path="m.tflite", remedy="mend it")
    assert (reason.subgraph, reason.operator, reason.tensor) == numbers
    assert str(reason) == f"m.tflite: {place}: is wrong; mend it"


def test_sentences() -> None:
    location = Location("m.tflite", 0, 3, "CONV_2D", "y")
    assert str(Reason.at(location, "no")) == "m.tflite: subgraph 0, operator 3 (CONV_2D), tensor 'y': no"
    assert str(Reason("no", "t.toml", place="12")) == "t.toml:12: no"
    assert str(VerificationError("left")) == "left"
    assert str(ParseError("m.mlir", 2, 5, "no op", "x\n^")) == "m.mlir:2:5: no op\nx\n^"


def test_a_refusal_carries_its_reason() -> None:
    refused = Refused("it has no form", "write it in f32")
    assert (str(refused), refused.reason) == ("it has no form", Reason("it has no form", remedy="write it in f32"))
    location = Location("m.tflite", 0, 3, "CONV_2D", "y")
    assert refused.at(location) == Reason.at(location, "it has no form", remedy="write it in f32")
    inside = "m.mlir: function 1, @f: it has no form; write it in f32"
    assert str(refused.within("function 1, @f", "m.mlir", 1)) == inside
    assert isinstance(tflq.NotApplicable("not here"), Refused)
