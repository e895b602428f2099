"""docs/kernel-sets.md, with two tables made from the sets: what their kernels compute, and which are not known.

An answer of a set is described by its class and by the formula that gives its number, with scales for which the
formulas have different ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8
from tflq.numerics.activation import Leaky
from tflq.numerics.elementwise import Addition
from tflq.numerics.fixed_point import Multiplier, quantize_multiplier
from tflq.numerics.kernel_sets import NAMES, kernel_set
from tflq.numerics.reference import FixedTaps, KernelSet, Slopes, WeightedSum
from tflq.numerics.requantize.scaling import FixedPoint, Float32, Float64, QuantizedMultiplier, Shortened
from tflq.numerics.unary import logistic

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "kernel-sets.md"
COLUMNS: Final = (
    "reference-1.0", "reference-2.3", "reference-2.4-dev", "xnnpack-2.3", "xnnpack-2.3-arm64", "xnnpack-2.3-arm64-a53",
)  # fmt: skip
"""Sets whose kernels differ; of XNNPACK's, those of the delegate."""
HEAD: Final = f"| operator, types | {' | '.join(f'`{name}`' for name in COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}\n"
INEXACT: Final = "| set | kernels |\n|---|---|\n"
f = np.float32
_X, _W, _Y = float(f(0.7285608)), float(f(0.58539003)), float(f(0.3127))
_ALPHA: Final = 0.3
FORMULAS: Final[Mapping[str, float]] = {
    "s w / so": _X * _W / _Y,
    "fl(s w) / so": float(f(_X) * f(_W)) / _Y,
    "fl(fl(s w) / so)": float(f(_X) * f(_W) / f(_Y)),
    "s / so": _X / _Y,
    "fl(s / so)": float(f(_X) / f(_Y)),
    "s / (w so)": _X / (_W * _Y),
    "fl(s / fl(w so))": float(f(_X) / (f(_W) * f(_Y))),
    "s alpha / so": _X * float(f(_ALPHA)) / _Y,
    "fl(fl(s alpha) / so)": float(f(_X) * f(_ALPHA) / f(_Y)),
}
"""Real numbers by which kernels scale; fl is float32."""


class Asked(NamedTuple):
    """What the page asks a set: an operator's types, and the method that its rule calls."""

    operator: str
    storage: ScalarType
    ask: Callable[[KernelSet, UniformQuantizedType, UniformQuantizedType, UniformQuantizedType], Any]


_WEIGHTS: Final = np.asarray([_W], f)
QUESTIONS: Final = (
    Asked("CONV_2D, TRANSPOSE_CONV", i8, lambda k, x, _, y: k.convolution(x, _WEIGHTS, y)),
    Asked("CONV_2D, TRANSPOSE_CONV", ui8, lambda k, x, _, y: k.convolution(x, _WEIGHTS, y)),
    Asked("DEPTHWISE_CONV_2D", ui8, lambda k, x, _, y: k.depthwise(x, _WEIGHTS, y)),
    Asked("FULLY_CONNECTED", i8, lambda k, x, w, y: k.fully_connected(x, w.storage, _WEIGHTS, y)),
    Asked("FULLY_CONNECTED", ui8, lambda k, x, w, y: k.fully_connected(x, w.storage, _WEIGHTS, y)),
    Asked("FULLY_CONNECTED by int8", i16, lambda k, x, _, y: k.fully_connected(x, i8, _WEIGHTS, y)),
    Asked("FULLY_CONNECTED by int16", i16, lambda k, x, w, y: k.fully_connected(x, w.storage, _WEIGHTS, y)),
    Asked("BATCH_MATMUL", i8, lambda k, x, w, y: k.batch_matmul(x, w, y)),
    Asked("BATCH_MATMUL", i16, lambda k, x, w, y: k.batch_matmul(x, w, y)),
    Asked("SVDF", i16, lambda k, x, w, y: k.svdf(x, w, y)),
    Asked("MUL", i8, lambda k, x, w, y: k.multiplication(x, w, y)),
    Asked("MUL", i16, lambda k, x, w, y: k.multiplication(x, w, y)),
    Asked("ADD, SUB", i8, lambda k, x, w, y: k.addition(x, w, y)),
    Asked("DIV", i16, lambda k, x, w, y: k.division(x, w, y)),
    Asked("RELU and its kin", i16, lambda k, x, _, y: k.relu(x, y)),
    Asked("ABS", i16, lambda k, x, _, y: k.absolute(x, y)),
    Asked("LEAKY_RELU", i8, lambda k, x, _, y: k.leaky_relu(x, y, _ALPHA)),
    Asked("LEAKY_RELU", i16, lambda k, x, _, y: k.leaky_relu(x, y, _ALPHA)),
    Asked("PRELU", i16, lambda k, x, w, y: k.prelu(x, w, y)),
    Asked("QUANTIZE of the same type", i8, lambda k, x, _, y: k.requantization(x, y)),
    Asked("QUANTIZE of floats", i8, lambda k, _, __, y: k.reciprocal(y)),
    Asked("MEAN, SUM", i8, lambda k, x, _, y: k.average(x, y, 1, divided=False)),
    Asked("RESIZE_BILINEAR", i8, lambda k, *_: k.bilinear(4, 7, align_corners=False, half_pixel=False)),
    Asked("LOGISTIC, TANH, ELU", i8, lambda k, x, *_: k.table(logistic, x, _of(i8, 1 / 256))),
)
_ABSENT: Final[Mapping[str, str]] = {
    "QUANTIZE of floats": "divided by so, half away",
    "MEAN, SUM": "fl(s / so), twice",
    "RESIZE_BILINEAR": "steps of 1/1024",
}
"""What kernels do where a set answers None."""


def _of(storage: ScalarType, scale: float) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, scale, 0)


def formula(number: float) -> str:
    """The formula of a real number, or of its multiplier of 31 bits."""
    for text, value in FORMULAS.items():
        if number == value or quantize_multiplier(number) == quantize_multiplier(value):
            return text
    raise ValueError(f"no formula gives {number!r}: add it to FORMULAS")


def words(asked: Asked, answer: Any, reference: Any) -> str:
    """The arithmetic of an answer."""
    match answer:
        case None:
            return _ABSENT.get(asked.operator, "does not run")
        case QuantizedMultiplier():
            return f"{formula(float(answer.scale[0]))}, twice"
        case Float64():
            return f"{formula(float(answer.scale[0]))} in double, once, half away"
        case Float32(after=None):
            return f"{formula(float(answer.scale[0]))} in float32, half to even"
        case Float32():
            return f"{formula(float(answer.scale[0]))} and the zero point in float32, half to even"
        case FixedPoint():
            return "24 bits, once, half up"
        case Shortened():
            return "15 bits, twice, half up"
        case Multiplier():
            return f"{formula(np.ldexp(answer.mantissa, answer.shift - 31))}, twice"
        case Leaky():
            parts = (answer.identity, answer.alpha)
            return "; below zero ".join(words(asked, part, None) for part in parts)
        case (Multiplier(), Multiplier()):
            return "; below zero ".join(words(asked, part, None) for part in answer)
        case Slopes():
            return "1/256, half up"
        case WeightedSum():
            return "one shift of a sum of integers, half up"
        case Addition():
            return "shifted by 20, three roundings"
        case FixedTaps():
            return "weights of 1/2048, half up"
        case np.ndarray():
            return "a table, half away" if np.array_equal(answer, reference) else "a table, half to even"
        case _:
            return "times fl(1 / so), half to even"


def table() -> str:
    """The table of what kernels compute, of the operators that sets tell apart."""
    rows = []
    for asked in QUESTIONS:
        x, w, y = (_of(asked.storage, scale) for scale in (_X, _W, _Y))
        cells = []
        reference = asked.ask(kernel_set("reference-2.3"), x, w, y)
        for name in COLUMNS:
            kernels = kernel_set(name).of(delegated=asked.storage is not i16)
            cells.append(words(asked, asked.ask(kernels, x, w, y), reference))
        shown = ["the same" if i and cell == cells[i - 1] else cell for i, cell in enumerate(cells)]
        if len({*cells}) > 1:
            rows.append(f"| {asked.operator}, {asked.storage} | {' | '.join(shown)} |\n")
    return HEAD + "".join(rows)


def unknown() -> str:
    """The table of kernels whose arithmetic is not known here."""
    rows: dict[frozenset[str], list[str]] = {}
    for name in NAMES:
        own = kernel_set(name)
        rows.setdefault(own.inexact | (own.delegated.inexact if own.delegated else frozenset()), []).append(f"`{name}`")
    common, lines = kernel_set("xnnpack-2.3").inexact, []
    for listed, names in rows.items():
        more = common < listed
        each = ["those of `xnnpack-2.3`"] * more + sorted(listed - common if more else listed)
        lines += [f"| {', '.join(names)} | {'; '.join(each)} |\n"] if listed else []
    return INEXACT + "".join(lines)


def page() -> str:
    """The page with both tables as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    for head, rows in ((HEAD, table()), (INEXACT, unknown())):
        text = re.sub(re.escape(head) + r"(\|.*\n)*", rows, text)
    return text
