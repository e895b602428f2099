"""`make new-op`: what it refuses, and that the attributes it writes are those of the schema."""

from __future__ import annotations

import pytest

from scripts.new_op import ROOT, attribute, begin, camel, families
from tflq.formats.flatbuffer.layout import table


@pytest.mark.parametrize(
    ("name", "family", "message"),
    [
        ("add", "unary", r"tfl\.add is declared in tflq/dialects/tfl/arithmetic\.py"),
        ("no_such", "unary", r"NO_SUCH is not in schema/tflite\.json"),
    ],
)
def test_refused(name: str, family: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        begin(name, family, ["input"])


def test_attributes_are_those_of_the_schema() -> None:
    assert [attribute(field).strip() for field in table("Conv2DOptions").fields][:3] == [
        'padding: str = attribute(default="SAME")',
        "stride_w: int = attribute(default=0)",
        "stride_h: int = attribute(default=0)",
    ]
    assert (
        attribute(table("LeakyReluOptions").fields[0]).strip() == "alpha: float = attribute(default=0.0, finite=True)"
    )
    assert attribute(table("SqueezeOptions").fields[0]).strip() == "squeeze_dims: Any = attribute(default=None)"


def test_name_of_the_class() -> None:
    assert camel("hard_swish") == "HardSwish"


@pytest.mark.parametrize("family", families())
def test_every_family_has_the_import_that_it_adds_to(family: str) -> None:
    text = (ROOT / "tflq" / "dialects" / "tfl" / f"{family}.py").read_text(encoding="utf-8")
    assert "\nfrom tflq.dialects.declare import " in text
