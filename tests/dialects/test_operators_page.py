"""docs/operators.md says what is declared."""

from __future__ import annotations

from pathlib import Path

from scripts import make_operators
from tflq.dialects.parameters import MultiplyAccumulate
from tflq.dialects.tfl.arithmetic import AddN
from tflq.dialects.tfl.convolution import Conv2D
from tflq.dialects.traits import Elementwise

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current() -> None:
    kept = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert kept == make_operators.page(), "make it anew: scripts/make_operators.py"


def test_traits_say_what_they_are_of() -> None:
    assert str(AddN.trait(Elementwise)) == "Elementwise(inputs, output, strict=False)"
    assert str(Conv2D.trait(MultiplyAccumulate)) == "MultiplyAccumulate(input, filter, bias, axis=0, zero_point=refuse)"
