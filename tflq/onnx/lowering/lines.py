"""Requantization in float32, where that is proven equal with MUL and ADD rounded separately or once, so that it is
exact in every runtime that computes in float32.

    SUB | a CONV's bias, CLIP, MUL, ADD, FLOOR                              `tflq.numerics.float_falling`
    RELU of a CONV of the other sign, MUL, ADD, RELU, FLOOR                 the same, for levels from 0 on
    SUB, CLIP; MUL, FLOOR; MUL, SUB; MUL, ADD, MUL, ADD, FLOOR, ADD         `tflq.numerics.float_split`

ONNX Runtime and OpenVINO multiply a constant that follows a CONV into its weights. The CLIP or RELU stands between.
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.numerics.float_falling import ClippedRequantization, clipped_arrays
from tflq.numerics.float_split import SplitRequantization, of_split_arrays, split_arrays
from tflq.onnx.lowering.context import Onnx
from tflq.onnx.lowering.held import Held, channel_row
from tflq.onnx.lowering.scaling import Scaling

_LEVELS = 256
"""Levels of a result that are searched for lines."""


def by_lines(t: Onnx, s: Scaling) -> Held | None:
    """A line that is clipped, or else one in two steps."""
    if not 0 < s.most - s.least < _LEVELS or not s.rises:
        return None
    thresholds, slope = s.thresholds(np.arange(s.least - s.zero_out + 1, s.most - s.zero_out + 1)), s.slope
    low, high = s.channel_bounds()
    ranges = [(low.min(keepdims=True), high.max(keepdims=True))] if slope.size == 1 else []
    if low.size > 1 or not ranges:
        ranges.append((low, high))
    bottom = s.least - s.zero_out
    for fit in (clipped_arrays, split_arrays):
        for bounds in ranges:
            rows = [np.broadcast_to(v, (*v.shape[:-1], bounds[0].size)) for v in (thresholds, slope)]
            found = t.remembered(fit, *rows, *bounds, bottom)
            if found:
                return _emitted(t, s, found, clipped=fit is clipped_arrays)
    return None


def _emitted(t: Onnx, s: Scaling, found: tuple[np.ndarray, ...], *, clipped: bool) -> Held:
    rank = len(s.result.type.shape or ())
    first = t.channels_first([s.x], rank)
    lines = Lines(t, rank, first)
    if not clipped:
        split = of_split_arrays(found)
        y = lines.split(_less(t, s, split.h, rank, first=first), split)
    else:
        line = ClippedRequantization(*found)
        falling = _falling(t, s, line.h) if s.least == s.zero_out else None
        if falling is None:
            y = lines.clipped(_less(t, s, line.h, rank, first=first), line)
        else:
            y = lines.fallen(falling, line)
    made = t.made(y, s.result, offset=s.zero_out, first=first)
    made.low, made.high = s.least, s.most
    return made


def _less(t: Onnx, s: Scaling, h: np.ndarray, rank: int, *, first: bool) -> Value:
    """x - zero_in - h: of a CONV in its bias."""
    held = t.held(s.x)
    again = None if held.again is None or s.zero_in else held.again(-h, False)
    if again is not None:
        return again
    x = t.operand(s.x, f32, rank, first=first, zero_point=s.zero_in)
    return t.sub(x, channel_row(t, h, f32, rank, first=first)) if h.any() else x


def _falling(t: Onnx, s: Scaling, h: np.ndarray) -> Value | None:
    """relu(h - x) of a CONV, which has weights of the other sign and h in its bias."""
    again = t.held(s.x).again
    x = None if again is None or s.zero_in else again(h, True)
    return None if x is None else t.relu(x)


class Lines:
    """Lines as operators, of tensors of a rank and layout."""

    def __init__(self, t: Onnx, rank: int = 0, first: bool = False) -> None:
        self.t = t
        self.rank = rank
        self.first = first

    def row(self, numbers: np.ndarray) -> Value:
        return channel_row(self.t, numbers, f32, self.rank, first=self.first)

    def clip(self, x: Value, low: np.ndarray, high: np.ndarray) -> Value:
        """CLIP; MAX and MIN where the ends differ by channel."""
        if low.size and (low == low[0]).all() and (high == high[0]).all():
            return self.t.clip(x, float(low[0]), float(high[0]))
        return self.t.minimum(self.t.maximum(x, self.row(low)), self.row(high))

    def less(self, x: Value, fit: ClippedRequantization | SplitRequantization) -> Value:
        """The line of x, which its h is taken off."""
        u = self.t.sub(x, self.row(fit.h)) if fit.h.any() else x
        return self.clipped(u, fit) if isinstance(fit, ClippedRequantization) else self.split(u, fit)

    def clipped(self, x: Value, fit: ClippedRequantization) -> Value:
        """floor(clip(x - h, -span, 0) * m + c) of x - h."""
        t = self.t
        u = self.clip(x, -fit.span, np.zeros_like(fit.span))
        return t.floor(t.add(t.mul(u, self.row(fit.m)), self.row(fit.c)))

    def fallen(self, u: Value, fit: ClippedRequantization) -> Value:
        """floor(relu(c - u * m)) of u = relu(h - x)."""
        t = self.t
        return t.floor(t.relu(t.add(t.mul(u, self.row(-fit.m)), self.row(fit.c))))

    def split(self, x: Value, fit: SplitRequantization) -> Value:
        """n + floor((u - n S) m + (n d + c)) of u = clip(x - h) and n = floor(u p)."""
        t = self.t
        u = self.clip(x, fit.low, fit.high)
        n = t.floor(t.mul(u, self.row(fit.p)))
        rest = self.row(fit.c)
        if fit.e is not None:
            rest = t.add(t.mul(t.clip(n, 0, 1), self.row(fit.e)), rest)
        rest = t.add(t.mul(n, self.row(fit.d)), rest)
        r = t.sub(u, t.mul(n, self.row(fit.step)))
        return t.add(n, t.floor(t.add(t.mul(r, self.row(fit.m)), rest)))
