"""Open dims are run at two sizes, larger than any window; shapes can be given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.chains import chain
from support.harness import argument, const

import tflq
from tflq.ir.types import UniformQuantizedType, f32, i8, i32
from tflq.tools.verify.inputs import Shapes, bound_shapes, chosen_shapes, largest_window, open_in_both
from tflq.tools.verify.model_file import ModelFile

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

Q = UniformQuantizedType.of(i8, 0.05, 3)


def tensor(*signature: int) -> dict[str, Any]:
    shape = [max(d, 1) for d in signature]
    return {"shape": shape, "shape_signature": list(signature), "dtype": "int8", "scales": [], "zero_points": []}


def choices(*signatures: tuple[int, ...], window: int = 3, batch: int | None = None, runs: Any = None) -> list[Shapes]:
    side = [(f"x{i}", tensor(*signature)) for i, signature in enumerate(signatures)]
    return chosen_shapes(
        side, window, bound_shapes(side, batch, {}), [False] * len(side), batch, runs or (lambda _: True)
    )


def test_two_sizes_above_the_window() -> None:
    assert choices((1, -1, -1, 3)) == [[(1, 16, 16, 3)], [(1, 23, 23, 3)]]
    assert choices((-1, -1, -1, 3), window=16) == [[(2, 32, 32, 3)], [(3, 39, 39, 3)]]
    assert choices((-1, -1), batch=5) == [[(5, 16)], [(5, 23)]]


def test_an_open_batch_alone() -> None:
    assert choices((-1, 8), (-1, 4)) == [[(2, 8), (2, 4)], [(3, 8), (3, 4)]]


def test_sizes_with_which_a_model_does_not_run_are_passed_over() -> None:
    assert choices((1, -1), runs=lambda shapes: shapes[0][1] % 32 == 0) == [[(1, 32)], [(1, 64)]]
    assert choices((1, -1), runs=lambda shapes: shapes[0][1] == 1) == []
    assert choices((-1, 8), runs=lambda shapes: shapes[0][0] == 3) == [[(3, 8)]]


def test_dims_that_one_model_states_are_not_open() -> None:
    (_, description), other = open_in_both(
        [("x", tensor(-1, -1)), ("y", tensor())], [("x", tensor(4, -1)), ("y", tensor())]
    )
    assert (description["shape_signature"], other[1]["shape_signature"]) == ([4, -1], [])


def test_an_open_model_and_one_that_is_bound(models: Path) -> None:
    path = models / "two_signatures.tflite"
    bound_to_3 = tflq.convert(path, batch=3).data
    result = tflq.verify(path, bound_to_3, interface=False)
    assert result.equal
    assert {shape[0] for run in result.runs for _, shape in run.shapes} == {3}


def test_shapes_given() -> None:
    side = [("x", tensor(1, -1)), ("y", tensor(-1, 4))]
    assert bound_shapes(side, 3, {"x": (2, 5)}) == [(2, 5), (3, 4)]
    with pytest.raises(tflq.OptionError, match="no input 'z'; its inputs are 'x', 'y'"):
        bound_shapes(side, None, {"z": (1,)})
    with pytest.raises(tflq.OptionError, match="input 'x' is of rank 2, the shape given for it of rank 1"):
        bound_shapes(side, None, {"x": (1,)})


def convolution(dilation: int = 1) -> bytes:
    """A 3×3 convolution of an image of any size."""
    weights = const(np.ones((2, 3, 3, 1), np.int8), UniformQuantizedType.of(i8, 0.01, 0))
    options = {
        "padding": "SAME",
        "stride_h": 1,
        "stride_w": 1,
        "dilation_h_factor": dilation,
        "dilation_w_factor": 1,
    }
    result = argument((1, None, None, 2), Q, "y")
    return chain(
        argument((1, None, None, 1), Q), [("tfl.conv_2d", [weights, const(np.zeros(2), i32)], result, options, 3)]
    )


def test_the_largest_window_is_dilated(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(convolution(dilation=9))
    assert largest_window(ModelFile(str(path)).graphs[0]) == 19
    assert largest_window(ModelFile(str(models / "split.tflite")).graphs[0]) == 1


def test_a_difference_that_a_size_of_1_hides_is_found() -> None:
    model = convolution()
    module = tflq.read(model)
    weights = np.ones((2, 3, 3, 1), np.int8)
    weights[:, 0] = 2  # the window's upper row is padding where the image is 1 high
    module.main.ops[0].operands[1] = const(weights, UniformQuantizedType.of(i8, 0.01, 0))
    other = tflq.write(module)
    assert tflq.verify(model, other, shapes={"x": (1, 1, 1, 1)}).verdict == "equal"
    result = tflq.verify(model, other, layers=True)
    assert result.verdict == "differs"
    assert {run.shapes for run in result.runs} == {(("x", (1, 16, 16, 1)),), (("x", (1, 23, 23, 1)),)}
    assert result.to_json()["runs"][0]["shapes"] == {"x": [1, 16, 16, 1]}
    assert tflq.verify(model, tflq.convert(model).data, layers=True).equal


def test_values_that_a_model_does_not_take_are_no_shapes_that_it_does_not() -> None:
    x, y = (argument((None, 4), f32, name) for name in "xy")
    model = chain(x, [("tfl.rsqrt", [], y, {}, 1)])
    result = tflq.verify(model, model)
    assert result.notes == []
    assert {run.shapes for run in result.runs} == {(("x", (2, 4)),), (("x", (3, 4)),)}
