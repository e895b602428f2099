"""SCATTER_ND: sums of one place, by indices that are known or computed, of every type; what is refused."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from support.harness import argument, const
from support.on_onnx import LEVELS, file_of, function_of, need_onnx, run_file

import tflq
from tflq.formats.onnx.engine import lower
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, f32, i1, i8, i32, i64, ui8

PLACES: Final = np.asarray([[2, 1], [0, 0], [2, 1], [1, 1], [2, 1]], np.int32)
SHAPE: Final = (3, 2, 4)


def scattering(places: Value, element: ScalarType) -> Module:
    updates = argument((*places.type.dims[:-1], *SHAPE[2:]), element, "updates")
    return Module(
        [
            function_of(
                "tfl.scatter_nd", [places, updates, const(np.asarray(SHAPE), i32)], [argument(SHAPE, element, "y")]
            )
        ]
    )


@pytest.mark.parametrize(
    ("known", "element"),
    [*((True, e) for e in (i1, i8, ui8, i32, i64, f32)), *((False, e) for e in (i1, i8, ui8, i32, f32))],
)
def test_updates_of_one_place_are_added(known: bool, element: ScalarType) -> None:
    """Integers wrap."""
    need_onnx()
    rng = np.random.default_rng(3)
    if element in (f32, i1):
        updates = rng.integers(0, 2, (5, 4)).astype(element.dtype)
    else:
        updates = rng.integers(element.minimum, element.maximum, (5, 4), element.dtype, endpoint=True)
    want = np.zeros(SHAPE, element.dtype)
    with np.errstate(over="ignore"):
        np.add.at(want, tuple(PLACES.T), updates)
    module = scattering(const(PLACES, i32) if known else argument(PLACES.shape, i32, "places"), element)
    data = file_of(module)
    given = {v.name: a for v, a in zip(module.main.inputs, [updates] if known else [PLACES, updates], strict=True)}
    for level in LEVELS:
        (got,) = run_file(data, given, level)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)


def test_threads_lose_no_update() -> None:
    """SCATTERND of ONNX Runtime does, where many updates have one place."""
    need_onnx()
    places = np.zeros((4096, 1), np.int32)
    updates = argument((4096, 64), i32, "updates")
    function = function_of(
        "tfl.scatter_nd",
        [argument(places.shape, i32), updates, const(np.asarray([2, 64]), i32)],
        [argument((2, 64), i32, "y")],
    )
    data, array = file_of(Module([function])), np.ones((4096, 64), np.int32)
    for _ in range(3):
        (got,) = run_file(data, {"v0": places, "v1": array}, threads=4)
        assert (got[0] == 4096).all()
        assert not got[1].any()


def test_places_outside_are_refused() -> None:
    with pytest.raises(tflq.UnsupportedError, match=r"an index of 'v?.*' is outside of \(3, 2, 4\)"):
        lower(scattering(const(PLACES + 2, i32), i32))
    with pytest.raises(tflq.UnsupportedError, match="sums of 5 updates of i64 in 6 rows, by indices that are computed"):
        lower(scattering(argument(PLACES.shape, i32, "places"), i64))
    table = const(np.ones((3, 4)), UniformQuantizedType.of(i8, 0.1, 0))
    function = function_of("tfl.embedding_lookup", [const(np.asarray([3]), i32), table], [argument((1, 4), f32, "y")])
    with pytest.raises(tflq.UnsupportedError, match="is outside of the 3 rows"):
        lower(Module([function]))
