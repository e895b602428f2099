"""STABLEHLO_DOT_GENERAL and STABLEHLO_CONVOLUTION of files in any layout, against the real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.conversion.report import Row
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    parameters,
    ui8,
)

X, W, Y = (UniformQuantizedType.of(i8, s, z) for s, z in ((0.05, 3), (0.02, 0), (0.3, -7)))
SEED = 5
Shape: TypeAlias = tuple[int, ...]
OfAxis: TypeAlias = Callable[[int, int], ElementType]


def one(element: ElementType) -> OfAxis:
    """The same, whatever the axis."""
    return lambda _axis, _size: element


def per_axis(axis: int, size: int) -> UniformQuantizedPerAxisType:
    return UniformQuantizedPerAxisType.of(i8, axis, [0.01 * (i + 1) for i in range(size)])


def real(kind: TensorType, array: np.ndarray) -> np.ndarray:
    """What stored integers stand for."""
    if not kind.quantized:
        return array.astype(np.float64)
    scales, zeros = parameters(kind)
    return (array.astype(np.float64) - zeros) * scales


def stored(shape: Shape, element: ElementType) -> Value:
    values = np.random.default_rng(SEED).integers(-127, 128, shape)
    return const(values.astype(np.int8), element, "w")


def check(name: str, lhs: Value, rhs: Value, out: Value, wanted: Any, attributes: dict[str, Any]) -> Row:
    """Converts, runs and compares: within a count of the real number. The row of the report is returned."""
    inputs = [v for v in (lhs, rhs) if not v.is_constant]
    model = one_op(f"tfl.stablehlo_{name}", [lhs, rhs], [out], attributes)
    conversion = tflq.convert(model)
    for batch in edge_inputs(inputs, SEED):
        given = dict(zip(inputs, batch, strict=True))
        sides = [real(v.type, v.array if v.is_constant else given[v]) for v in (lhs, rhs)]
        (got,) = interpret(conversion.data, [batch])[0]
        ideal = wanted(*sides)
        assert got.shape == ideal.shape
        if not out.type.quantized:
            np.testing.assert_allclose(got, ideal, rtol=1e-4, atol=1e-4 * np.abs(ideal).max(initial=0))
            continue
        scales, zeros = parameters(out.type)
        counts = ideal / scales + zeros
        np.testing.assert_allclose(got, np.clip(counts, -128, 127), atol=1.001)
    return conversion.report.rows[-1]


DOTS: list[tuple[Shape, Shape, tuple[Shape, Shape, Shape, Shape], str]] = [
    ((4, 5), (5, 3), ((), (), (1,), (0,)), "ab,bc->ac"),
    ((5, 4), (3, 5), ((), (), (0,), (1,)), "ba,cb->ac"),
    ((2, 4, 5), (2, 5, 3), ((0,), (0,), (2,), (1,)), "nab,nbc->nac"),
    ((4, 2, 5), (5, 3, 2), ((1,), (2,), (2,), (0,)), "anb,bcn->nac"),
    ((2, 3, 4, 5), (5, 6, 4), ((), (), (3, 2), (0, 2)), "xycd,dec->xye"),
    ((2, 3, 5), (5, 4, 2), ((), (), (2,), (0,)), "xya,abc->xybc"),
    ((2, 1, 2, 2, 3, 4), (2, 1, 2, 2, 4, 2), ((0, 1, 2, 3), (0, 1, 2, 3), (5,), (4,)), "nmpqab,nmpqbc->nmpqac"),
    ((6,), (6,), ((), (), (0,), (0,)), "a,a->"),
    ((3,), (4,), ((), (), (), ()), "a,b->ab"),
]


def dot(case: tuple[Any, ...], lhs: ElementType, rhs: ElementType, out: ElementType, *, constant: bool = True) -> Row:
    left, right, numbers, text = case
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    attributes = {f"{n}_dimensions": np.asarray(dims, np.int64) for n, dims in zip(names, numbers, strict=True)}
    shape = np.einsum(text, np.zeros(left), np.zeros(right)).shape
    weights = stored(right, rhs) if constant else argument(right, rhs, "w")
    x, y = argument(left, lhs, "x"), argument(shape, out, "y")
    return check("dot_general", x, weights, y, lambda a, b: np.einsum(text, a, b), attributes)


@pytest.mark.parametrize("case", DOTS, ids=lambda case: case[3])
def test_dots(case: tuple[Any, ...]) -> None:
    assert dot(case, X, W, Y).path == "integer"
    assert dot(case, X, W, Y, constant=False).path == "integer"
    dot(case, f32, W, f32)


@pytest.mark.parametrize("case", [c for c in DOTS if c[3] != "a,a->"], ids=lambda case: case[3])
def test_dots_with_scales_along_each_dim(case: tuple[Any, ...]) -> None:
    """Along a column they are converted, along what is summed over refused, along a batch computed in float."""
    _, right, numbers, _ = case
    for axis, size in enumerate(right):
        if size == 1:
            continue  # in a file that is one scale
        element = per_axis(axis, size)
        if axis in numbers[3]:
            with pytest.raises(tflq.UnsupportedError, match="along a dimension that is summed over"):
                dot(case, X, element, Y)
        elif axis in numbers[1]:
            with pytest.raises(tflq.UnsupportedError, match="no scales along a batch dimension"):
                dot(case, X, element, Y)
        else:
            assert dot(case, X, element, Y).path == "integer"
            dot(case, f32, element, f32)


def test_a_dot_of_several_scales_is_computed_in_float() -> None:
    assert dot(DOTS[0], X, W, per_axis(1, 3)).path == "float"


def convolved(x: np.ndarray, w: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    """[N, spatial..., C] with [spatial..., I, O], as the specification has it."""
    rank = x.ndim - 2
    strides, low_high, base, spread, backwards = how["window"]
    w = np.flip(w, [a for a in range(rank) if backwards[a]])
    wide = np.zeros((x.shape[0], *((n - 1) * b + 1 for n, b in zip(x.shape[1:-1], base, strict=True)), x.shape[-1]))
    wide[(slice(None), *(slice(None, None, b) for b in base))] = x
    wide = np.pad(wide, [(0, 0), *((max(low, 0), max(high, 0)) for low, high in low_high), (0, 0)])
    cut = [slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(wide.shape[1:-1], low_high, strict=True)]
    wide = wide[(slice(None), *cut)]
    parts = how["groups"] * how["batches"]
    batch = wide.shape[0] // how["batches"]
    depth, made = w.shape[-2], w.shape[-1] // parts
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[:rank], spread, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(wide.shape[1:-1], reach, strides, strict=True)]
    out = np.zeros((batch, *counts, w.shape[-1]))
    for part in range(parts):
        rows = slice(part * batch, (part + 1) * batch) if how["batches"] > 1 else slice(None)
        features = slice(part * depth, (part + 1) * depth) if how["groups"] > 1 else slice(None)
        for place in np.ndindex(*counts):
            at = [slice(p * s, p * s + r, d) for p, s, r, d in zip(place, strides, reach, spread, strict=True)]
            window = wide[(rows, *at, features)]
            products = np.tensordot(window, w[..., part * made : (part + 1) * made], axes=rank + 1)
            out[(slice(None), *place, slice(part * made, (part + 1) * made))] = products
    return out


def _case(
    x: Shape,
    w: Shape,
    *,
    groups: int = 1,
    batches: int = 1,
    layout: tuple[Shape, Shape, Shape] | None = None,
    **window: Any,
) -> dict[str, Any]:
    rank, ones = len(x) - 2, (1,) * (len(x) - 2)
    how = [window.get("strides", ones), window.get("padding", ((0, 0),) * rank), window.get("base", ones)]
    how += [window.get("spread", ones), window.get("backwards", (0,) * rank)]
    return {"x": x, "w": w, "groups": groups, "batches": batches, "layout": layout, "window": how}


CONVOLUTIONS = {
    "plain": _case((1, 5, 6, 2), (2, 3, 2, 4)),
    "strides, padding, dilation": _case(
        (2, 7, 6, 3), (3, 2, 3, 4), strides=(2, 1), padding=((1, 0), (2, 1)), spread=(1, 2)
    ),
    "features first": _case((1, 5, 6, 2), (2, 3, 2, 4), layout=((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))),
    "input dilated": _case((1, 4, 3, 2), (3, 3, 2, 3), base=(2, 3), padding=((2, 2), (1, 1))),
    "cut": _case((1, 6, 6, 2), (2, 2, 2, 3), padding=((-1, 1), (0, -2))),
    "backwards": _case((1, 5, 6, 2), (2, 3, 2, 4), backwards=(1, 0)),
    "groups": _case((1, 5, 5, 4), (2, 2, 2, 6), groups=2),
    "each feature alone": _case((1, 5, 5, 3), (2, 2, 1, 6), groups=3),
    "groups of batches": _case((4, 4, 4, 2), (2, 2, 2, 6), batches=2),
    "one dim": _case((2, 9, 3), (3, 3, 4), strides=(2,), padding=((1, 1),)),
    "one dim, each feature alone": _case((2, 9, 3), (3, 1, 3), groups=3, layout=((2, 0, 1), (1, 0, 2), (1, 2, 0))),
    "three dims": _case((1, 4, 4, 3, 2), (2, 2, 2, 2, 3), strides=(1, 2, 1), padding=((1, 0), (0, 0), (0, 1))),
}


def convolve(case: dict[str, Any], lhs: ElementType, rhs: OfAxis, out: OfAxis, *, constant: bool = True) -> Row:
    """rhs, out: element types, of the axis and number of the features made."""
    rank = len(case["x"]) - 2
    usual = tuple(range(rank + 2))
    layout: Sequence[Shape] = case["layout"] or (usual, usual, usual)
    to_x, to_w, to_y = layout
    features = to_w.index(rank + 1)
    w_type = rhs(features, case["w"][-1])
    wanted_shape = convolved(np.zeros(case["x"]), np.zeros(case["w"]), case).shape
    y_type = out(to_y.index(rank + 1), case["w"][-1])
    strides, padding, base, spread, backwards = case["window"]
    attributes = {
        "window_strides": np.asarray(strides, np.int64),
        "padding": np.asarray(padding, np.int64).reshape(-1),
        "lhs_dilation": np.asarray(base, np.int64),
        "rhs_dilation": np.asarray(spread, np.int64),
        "window_reversal": np.asarray(backwards, bool),
        "input_batch_dimension": to_x.index(0),
        "input_feature_dimension": to_x.index(rank + 1),
        "input_spatial_dimensions": np.asarray([to_x.index(i + 1) for i in range(rank)], np.int64),
        "kernel_input_feature_dimension": to_w.index(rank),
        "kernel_output_feature_dimension": features,
        "kernel_spatial_dimensions": np.asarray([to_w.index(i) for i in range(rank)], np.int64),
        "output_batch_dimension": to_y.index(0),
        "output_feature_dimension": to_y.index(rank + 1),
        "output_spatial_dimensions": np.asarray([to_y.index(i + 1) for i in range(rank)], np.int64),
        "feature_group_count": case["groups"],
        "batch_group_count": case["batches"],
    }

    def wanted(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return convolved(x.transpose(np.argsort(to_x)), w.transpose(np.argsort(to_w)), case).transpose(to_y)

    x = argument(tuple(case["x"][i] for i in to_x), lhs, "x")
    shape = tuple(case["w"][i] for i in to_w)
    y = argument(tuple(wanted_shape[i] for i in to_y), y_type, "y")
    return check(
        "convolution", x, stored(shape, w_type) if constant else argument(shape, w_type, "w"), y, wanted, attributes
    )


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    case = CONVOLUTIONS[name]
    assert convolve(case, X, one(W), one(Y)).path == "integer"
    assert convolve(case, X, per_axis, one(Y)).path == "integer"
    assert convolve(case, UniformQuantizedType.of(ui8, 0.05, 130), one(W), one(Y)).path == "integer"
    convolve(case, f32, one(W), one(f32))
    convolve(case, f32, per_axis, one(f32))


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_with_several_scales_of_the_result_are_computed_in_float(name: str) -> None:
    assert convolve(CONVOLUTIONS[name], X, per_axis, per_axis).path == "float"


def test_computed_weights() -> None:
    assert convolve(CONVOLUTIONS["backwards"], X, one(W), one(Y), constant=False).path == "integer"


def test_weights_beside_floats_stay_quantized() -> None:
    assert convolve(CONVOLUTIONS["plain"], f32, per_axis, one(f32)).path == "kept"
