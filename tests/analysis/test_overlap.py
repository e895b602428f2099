"""How far results lie over operands, beside a count of what each place reads; and places of spans that do so."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tflq.analysis.overlap import lead
from tflq.analysis.placing import Span, alive, placed
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i8, i32


def value(*shape: int) -> Value:
    return Value(TensorType(shape, i8), "")


def window(name: str, x: tuple[int, ...], y: tuple[int, ...], kernel: tuple[int, int], **attributes: object) -> Op:
    result = Value(TensorType(y, i32), "")
    if name.endswith("pool2d"):
        return Op(name, [value(*x)], [result], {"kernel": kernel, "input_zp": 0, "output_zp": 0, **attributes})
    deep = name == "tosa.depthwise_conv2d"
    weight = value(*kernel, x[-1], 1) if deep else value(y[-1], *kernel, x[-1])
    more = {} if name == "tosa.transpose_conv2d" else {"dilation": (1, 1)}
    return Op(name, [value(*x), weight, value(y[-1])], [result], {"input_zp": 0, "weight_zp": 0, **more, **attributes})


def reads(op: Op, oy: int, ox: int) -> list[tuple[int, int]]:
    """The places of the operand that one of the result reads."""
    _, height, width, _ = op.operands[0].type.sizes  # type: ignore[union-attr]
    kernel = op.attributes.get("kernel")
    if kernel is None:
        dims = op.operands[1].type.sizes  # type: ignore[union-attr]
        kernel = dims[:2] if op.name == "tosa.depthwise_conv2d" else dims[1:3]
    every = []
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            if op.name == "tosa.transpose_conv2d":
                ay, ax = oy - op.out_pad[0] - ky, ox - op.out_pad[2] - kx  # type: ignore[attr-defined]
                if ay % op.stride[0] or ax % op.stride[1]:  # type: ignore[attr-defined]
                    continue
                iy, ix = ay // op.stride[0], ax // op.stride[1]  # type: ignore[attr-defined]
            else:
                iy = oy * op.stride[0] + ky - op.pad[0]  # type: ignore[attr-defined]
                ix = ox * op.stride[1] + kx - op.pad[2]  # type: ignore[attr-defined]
            if 0 <= iy < height and 0 <= ix < width:
                every.append((iy, ix))
    return every


@pytest.mark.parametrize(
    "op",
    [
        window("tosa.conv2d", (2, 6, 5, 3), (2, 6, 5, 3), (1, 1), stride=(1, 1), pad=(0, 0, 0, 0)),
        window("tosa.conv2d", (1, 6, 5, 2), (1, 6, 5, 7), (1, 1), stride=(1, 1), pad=(0, 0, 0, 0)),
        window("tosa.conv2d", (1, 7, 5, 4), (1, 3, 5, 2), (3, 3), stride=(2, 1), pad=(0, 0, 1, 1)),
        window("tosa.depthwise_conv2d", (1, 6, 6, 4), (1, 6, 6, 4), (3, 3), stride=(1, 1), pad=(1, 1, 1, 1)),
        window("tosa.max_pool2d", (2, 6, 6, 4), (2, 3, 3, 4), (2, 2), stride=(2, 2), pad=(0, 0, 0, 0)),
        window("tosa.transpose_conv2d", (1, 4, 4, 3), (1, 9, 9, 2), (3, 3), stride=(2, 2), out_pad=(0, 0, 0, 0)),
    ],
)
def test_a_result_is_written_over_nothing_that_is_read_later(op: Op) -> None:
    """A place is written at a time when it and what follows still read."""
    n, height, width, channels = op.results[0].type.sizes
    _, rows, columns, depth = op.operands[0].type.sizes  # type: ignore[union-attr]
    places = [(g, oy, ox) for g in range(n) for oy in range(height) for ox in range(width)]
    least = 0
    for written in (1, 4):
        ahead = lead(op, 1, written)
        assert ahead is not None
        for number in range(len(places)):
            later = [(g * rows + iy) * columns + ix for g, oy, ox in places[number:] for iy, ix in reads(op, oy, ox)]
            end = (number + 1) * channels * written
            least = max(least, end - min(later, default=rows * columns * n) * depth)
        assert least <= ahead <= least + 2 * columns * depth
        assert ahead < len(places) * channels * written


def test_what_is_read_until_the_end_has_no_lead() -> None:
    x, y = value(1, 1, 8), Value(TensorType((3, 4, 5), i32), "")
    assert lead(Op("tosa.matmul", [x, value(3, 8, 5)], [y], {"a_zp": 0, "b_zp": 0}), 1, 4) is None
    assert lead(Op("tosa.gather", [value(1, 4, 4), value(1, 2)], [value(1, 2, 4)], {}), 1, 1) is None


def test_spans_that_lie_over_others_need_little_more_than_one() -> None:
    """A chain of results, each 8 bytes before its operand; the second is the largest, and placed first."""
    chain = [Span(size, at, at + 1) for at, size in enumerate((500, 1000, 900, 800))]
    for operand, result in itertools.pairwise(chain):
        result.behind[operand] = max(8, result.size - operand.size)
    least = max(alive(chain).values())
    assert least == 1008
    end = placed(chain)
    assert least <= end <= least + 16
    for operand, result in itertools.pairwise(chain):
        apart = operand.at + operand.size <= result.at or result.at + result.size <= operand.at
        assert apart or operand.at - result.at >= result.behind[operand]


def test_places_of_spans_are_apart() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        spans = [Span(int(size), int(at), int(at + n)) for size, at, n in rng.integers(1, 60, (30, 3))]
        end = placed(spans)
        assert max(alive(spans).values()) <= end
        for one in spans:
            for other in spans:
                apart = one.at + one.size <= other.at or other.at + other.size <= one.at
                assert one is other or apart or one.last < other.first or other.last < one.first


def test_search_of_places_stops_at_an_end_that_is_enough() -> None:
    rng = np.random.default_rng(2)
    for enough in range(400, 700, 20):
        spans = [Span(int(size), int(at), int(at + n)) for size, at, n in rng.integers(1, 60, (30, 3))]
        least, end = placed(spans), placed(spans, enough)
        assert least <= end
        assert end == least or end <= enough
