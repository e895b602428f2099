"""write(read(x)) says the same as x, for models with every feature of the format."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.handmade import FEATURES
from support.structure import structural_difference

from tflq.base.errors import InvalidModelError
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.ops import constant


@pytest.mark.parametrize("feature", FEATURES)
def test_an_untouched_module_is_written_as_it_was_read(feature: str) -> None:
    source = FEATURES[feature]
    once = write(read(source))
    assert structural_difference(source, once) is None
    assert write(read(once)) == once


@pytest.mark.slow
@settings(max_examples=300)
@example("stored shape that is not 1", [(0.146484375, 0)])  # an empty vector of buffers
@given(
    st.sampled_from(sorted(FEATURES)),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_bytes_are_refused_or_come_back_as_they_were_read(
    feature: str, damage: list[tuple[float, int]]
) -> None:
    source = bytearray(FEATURES[feature])
    for place, byte in damage:
        source[int(place * len(source))] = byte
    with contextlib.suppress(InvalidModelError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert structural_difference(source, write(read(source))) is None


def test_a_constant_never_takes_the_place_of_the_buffer_that_stands_for_none() -> None:
    source = FEATURES["stored shape that is not 1"]
    for said in ({"absent": ("buffers",)}, {"no_buffers": True}):
        module = read(source)
        module.buffers, module.info = [], said
        added = constant(np.arange(4, dtype=np.int32))
        module.main.outputs.append(added)
        again = read(write(module))
        assert again.main.outputs[-1].buffer is not None
        assert again.buffers[0].data.size == 0
