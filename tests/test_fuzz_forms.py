"""A few models drawn by structure, converted to every form: each conversion ends, if at all, with a `TflqError`."""

from __future__ import annotations

import pytest
from support.model_tree import tree

from scripts import fuzz
from scripts.fuzz_forms import FORMS, convert_all
from scripts.fuzz_models import MOST_DEPTH, drawn, nest
from tflq.flatbuffer.codec import encode

COUNT = 24


def test_drawn_models_are_converted_or_refused() -> None:
    outcome = fuzz.run([], 5, range(COUNT), forms=True)
    assert outcome.failures == []
    ends = {form: sum(n for end, n in outcome.counts.items() if end.split()[0] == form) for form in FORMS}
    assert min(ends.values()) == max(ends.values()) > COUNT // 3
    assert outcome.counts["integer converted"] > COUNT // 6


def test_a_drawn_model_is_the_same_every_time() -> None:
    first, again = ([drawn(3, number) for number in range(40)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 40


@pytest.mark.parametrize("kind", ["IF", "WHILE", "STABLEHLO_COMPOSITE"])
def test_nested_calls_are_converted_or_refused(kind: str) -> None:
    model = tree("pad")
    for depth in range(MOST_DEPTH):
        nest(model, kind)
        if depth in (3, 40, 199, MOST_DEPTH - 1):
            ends, findings = convert_all(encode(model))
            assert findings == []
            assert ends["integer converted"] == (1 if depth == 3 else ends["read converted"])
