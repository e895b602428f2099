"""The reader of documents from outside: kinds, faults with line and field, and what no document may have."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

import pytest

from tflq.base.documents import Check, DocumentError, TomlFile, checked, exactly, parse_json, read_json, read_json_lines
from tflq.base.errors import OptionError

Size = Annotated[int, Check("a size, from 1 on", lambda size: size > 0)]


@dataclass(frozen=True)
class Layer:
    name: str
    sizes: tuple[Size, ...] = ()


class Net(TypedDict, total=False):
    format: Required[Annotated[str, exactly("net")]]
    layers: list[Layer]
    scale: float | None
    kind: Literal["a", "b"]
    pair: tuple[str, int]
    counts: Mapping[str, int]
    rest: Any


GOOD = """{"format": "net",
"layers": [{"name": "x", "sizes": [1, 2]},
           {"name": "y, [z]"}], "scale": 2,
"kind": "a", "pair": ["p", 1],
"counts": {"a b": 3}, "rest": {"more": [null, true, 1.5]}, "unknown": []}
"""


def test_a_document_becomes_its_kind() -> None:
    net = parse_json(GOOD, Net)
    assert net["layers"] == [Layer("x", (1, 2)), Layer("y, [z]")]
    assert net["pair"] == ("p", 1)
    assert net["rest"] == {"more": [None, True, 1.5]}
    assert list(net) == ["format", "layers", "scale", "kind", "pair", "counts", "rest", "unknown"]
    with pytest.raises(DocumentError, match="unknown: there is no such key"):
        parse_json(GOOD, Net, closed=True)


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ('"net"', '"other"', 1, "format: 'other' is not 'net'"),
        ('"format"', '"form"', 1, "format: it is missing"),
        ("[1, 2]", "[1, 0]", 2, r"layers\[0\].sizes\[1\]: 0 is not a size, from 1 on"),
        ("[1, 2]", "[1, true]", 2, r"sizes\[1\]: true is not a whole number"),
        ("[1, 2]", '{"1": 2}', 2, r"layers\[0\].sizes: a table of 1 is not a list"),
        ('"y, [z]"', "null", 3, r"layers\[1\].name: null is not a text"),
        ('"scale": 2', '"scale": NaN', 3, "scale: nan is not a finite number or null"),
        ('"scale": 2', '"scale": -1e999', 3, "scale: -inf is not a finite number or null"),
        ('"kind": "a"', '"kind": "c"', 4, "kind: 'c' is not one of a, b"),
        ('["p", 1]', '["p"]', 4, "pair: a list of 1 is not a list of 2"),
        (
            '"a b": 3',
            '"a b": 9223372036854775808',
            5,
            "counts.a b: a number of more than 64 bits is not a whole number",
        ),
        ('"a b": 3', '"a b": 3, "a b": 3', 5, "counts: 'a b' is there twice"),
        ("1.5", "Infinity", 5, r"rest.more\[2\]: inf is not a finite number"),
        ("1.5", '{"x": 1, "x": 1}', 5, r"rest.more\[2\]: 'x' is there twice"),
        ("[]}", "[]", 6, "not a JSON file: Expecting ',' delimiter"),
        ("1.5", "1" * 5000, 0, "not a JSON file: Exceeds the limit"),
        ('"x"', '"\\ud800"', 2, "a text has half of a surrogate pair"),
        ("1.5", "[" * 120 + "]" * 120, 5, "it is nested over 100 deep"),
        ("1.5", "[" * 100_000, 0, "it is nested over 100 deep"),
        ("1.5", '{"a":' * 100_000, 0, "it is nested over 100 deep"),
    ],
)
def test_a_fault_has_its_line_and_field(tmp_path: Path, before: str, after: str, line: int, what: str) -> None:
    path = tmp_path / "net.json"
    path.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(OptionError, match=what) as caught:
        read_json(path, Net, "a net", remedy="draw it anew")
    reason = caught.value.reason
    assert (reason.path, reason.place, reason.remedy) == (str(path), str(line or ""), "draw it anew")


def test_what_is_no_net_at_all_is_said(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    for content, what in (
        (b"[]", "not a net: a list of 0 is not a table"),
        (b"null", "not a net: null is not a table"),
        (b'{"format": ""}', "not a net: format: '' is not 'net'"),
        (b"", "not a net: not a JSON file"),
        (b'{"format":\n"\xff"}', ":2: not a net: this is not a text file in UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(OptionError, match=what):
            read_json(path, Net, "a net")


def test_half_a_pair_that_stands_for_a_byte_of_a_file_name_may_be_there() -> None:
    assert parse_json('"\\udcff"', str).encode("utf-8", "surrogateescape") == b"\xff"


def test_a_last_line_without_an_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"format": "net"}\n{"format": "net"}\n{"form')
    assert len(list(read_json_lines(path, Net, "a net"))) == 2
    path.write_text('{"format": "net"}\n\n')
    with pytest.raises(OptionError, match=":2: not a net: not a JSON file"):
        list(read_json_lines(path, Net, "a net"))


TOML = """format = "net"
[counts]
a = 1

[[layers]]
name = "x"
sizes = [1, 2]

[[layers]]
name = "y"
sizes = [
  0,
]
"""


@pytest.fixture
def usual_recursion() -> Iterator[None]:
    """Python's own limit of recursion: another test of the process may have raised it, as hypothesis does."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_recursion")
def test_faults_of_toml_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    for before, after, what in (
        ("  0,", "  0,", r":11: layers\[1\].sizes\[0\]: 0 is not a size"),
        ("a = 1", "a = 1.5", ":3: counts.a: 1.5 is not a whole number"),
        ('name = "x"', "nome = 1", r":5: layers\[0\].name: it is missing"),
        ("[counts]", "[count]", ":2: count: there is no such key; there are counts, format"),
        ("a = 1", "a = 1\na = 2", ":4: 'counts.a' is said in line 3 already"),
        ("a = 1", "a = ", ":3: not a TOML file: Invalid value"),
        ("a = 1", "a = " + "[" * 5000, "nested over 100 deep"),
    ):
        path.write_text((TOML if before == "  0," else TOML.replace("  0,", "  3,")).replace(before, after, 1))
        with pytest.raises(OptionError, match=what):
            TomlFile(path).checked(Net, "a net")


def test_objects_of_a_caller_are_checked_too() -> None:
    assert checked({"format": "net", "layers": ({"name": "x", "sizes": (1,)},)}, Net)["layers"] == [Layer("x", (1,))]
    with pytest.raises(DocumentError, match="an unknown") as caught:
        raise DocumentError("an unknown", path=("a", 0))
    assert str(caught.value) == "a[0]: an unknown"
