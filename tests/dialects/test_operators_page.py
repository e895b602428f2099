"""docs/operators.md says what is declared."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tflq.dialects.tfl.arithmetic import AddN
from tflq.dialects.tfl.convolution import Conv2D
from tflq.dialects.traits.quantization import MultiplyAccumulate
from tflq.dialects.traits.types import Elementwise

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current() -> None:
    spec = spec_from_file_location("make_operators", ROOT / "scripts" / "make_operators.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert kept == module.page(), "make it anew: scripts/make_operators.py"


def test_traits_say_what_they_are_of() -> None:
    assert str(AddN.trait(Elementwise)) == "Elementwise(inputs, output, strict=False)"
    assert str(Conv2D.trait(MultiplyAccumulate)) == "MultiplyAccumulate(input, filter, bias, axis=0)"
