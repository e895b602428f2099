"""The site's page of operators has all that are declared, and traits say what they are of."""

from __future__ import annotations

import re

from scripts.pages import operators
from tflq.dialects.parameters import MultiplyAccumulate
from tflq.dialects.tfl.arithmetic import AddN
from tflq.dialects.tfl.convolution import Conv2D
from tflq.dialects.traits import Elementwise
from tflq.ir.ops import op_names


def test_the_page_has_every_operator_of_tflite_and_tosa() -> None:
    page = operators.page()
    for name in ("tfl", "tosa"):
        section = re.split(r"^## ", page.partition(f"\n## {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        assert sorted(listed) == sorted(each.partition(".")[2] for each in op_names(name))


def test_traits_say_what_they_are_of() -> None:
    assert str(AddN.trait(Elementwise)) == "Elementwise(inputs, output, strict=False)"
    assert str(Conv2D.trait(MultiplyAccumulate)) == "MultiplyAccumulate(input, filter, bias, axis=0, zero_point=refuse)"
