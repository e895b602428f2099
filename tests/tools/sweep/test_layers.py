"""What a sweep keeps of layers that differ."""

from __future__ import annotations

import numpy as np

from tflq.tools.sweep.measure import layers_of
from tflq.tools.verify.difference import difference
from tflq.tools.verify.outcome import Divergence, Layers, Verification


def test_a_layer_compared_at_several_shapes_counts_once() -> None:
    zeros = np.zeros(4, np.int8)
    small, large = difference(zeros[:1] + 1, zeros[:1]), difference(zeros + 3, zeros)
    diverging = tuple(Divergence("", n, "ADD", f"sum {n}", each) for n in (1, 2) for each in (small, large))
    found = layers_of([Verification("a", "b", "reference", layers=Layers(3, 3, diverging, diverging))])
    assert found is not None
    assert (found["results"], found["differing"]) == (3, 2)
    assert [layer["operator"] for layer in found["diverging"]] == [1, 2]
    first = found["first"]
    assert (first["elements"], first["differing"], first["largest"]) == (5, 5, 3.0)
    assert first["histogram"] == {"0": 1, "1": 4}
