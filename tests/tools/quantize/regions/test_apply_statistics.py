"""quant-apply-stats: points that become statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.analysis.statistics import PointStatistics, Statistics, write_statistics
from tflq.base.errors import OptionError
from tflq.dialects.regions import Stats, StatsRef
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.instrument import apply_statistics

POINTS = {
    "conv/1": PointStatistics(24, -1.5, 2.5),
    "weights": PointStatistics(6, -0.9, 0.75, 1, (-0.9, -0.5, 0.0), (0.1, 0.75, 0.0)),
    "never": PointStatistics(0),
}
SEEN = Statistics(POINTS)


def observed(*keys: str) -> Module:
    points = "\n".join(
        f'%p{place} = "quant.stats_ref"(%a) {{statsKey = "{key}"}} : (tensor<2x3xf32>) -> tensor<2x3xf32>'
        for place, key in enumerate(keys)
    )
    returned = f"%p{len(keys) - 1} : tensor<2x3xf32>"
    return parse_module(f"func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {{\n{points}\nreturn {returned}\n}}")


def test_points_become_statistics(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    write_statistics(path, SEEN)
    module = observed("conv/1", "weights", "never")
    assert parse_pipeline(f"quant-apply-stats{{statistics={path}}}").run(module).modified
    verify(module)
    first, second, third = module.main.ops
    assert isinstance(first, Stats)
    assert isinstance(second, Stats)
    assert first.layer_stats.tolist() == [-1.5, 2.5]
    assert first.axis_stats is None
    assert second.axis_stats is not None
    np.testing.assert_array_equal(second.axis_stats, np.array([[-0.9, 0.1], [-0.5, 0.75], [0, 0]], np.float32))
    assert second.axis == 1
    assert isinstance(third, StatsRef)
    assert third.stats_key == "never"


def test_a_point_without_statistics_is_an_error_and_nothing_changes() -> None:
    module = observed("conv/1", "conv/2")
    with pytest.raises(OptionError, match="no statistics of 1 point: 'conv/2'") as caught:
        apply_statistics(module, SEEN, "statistics.json")
    assert caught.value.reasons[0].remedy == "did you mean 'conv/1'?"
    assert all(isinstance(op, StatsRef) for op in module.main.ops)


@pytest.mark.parametrize("axis", [0, 2])
def test_statistics_of_another_tensor_are_refused(axis: int) -> None:
    seen = PointStatistics(6, 0.0, 1.0, axis, (0.0,) * 3, (1.0,) * 3)
    with pytest.raises(OptionError, match=f"3 indices of axis {axis}, and the tensor is"):
        apply_statistics(observed("conv/1"), Statistics({"conv/1": seen}))


def test_the_pass_needs_a_file() -> None:
    with pytest.raises(OptionError, match="needs statistics"):
        parse_pipeline("quant-apply-stats").run(observed("conv/1"))
