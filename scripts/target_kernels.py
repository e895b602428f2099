"""Quantized kernels of a runtime, on up to 8 bits, that give what the reference kernels give (measure_target.py).

Of each line of rules/kernels.toml the models are tried that fit it: those of kernel_trials.py, and denser ones. A line
is listed if the runtime runs all of them, and gives the same numbers; where it does not, with the constraints that
leave only such ones. Names that stand for several types, and numbers of operands, are tried one by one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final

import numpy as np

from scripts.kernel_trials import quantized_op, units
from scripts.kernel_trials import trials as kernel_trials
from scripts.target_trials import MOST, PLAIN, Trial, made
from tflq.base.errors import InvalidModelError
from tflq.base.files import resource
from tflq.dialects.declare import Operator
from tflq.dialects.effects import is_hybrid
from tflq.dialects.tfl import activation, arithmetic, convolution, movement, pooling
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.formats.tflite.reader import read
from tflq.ir.ops import Buffer, Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i4,
    i8,
    i32,
)
from tflq.targets.constraints import CONSTRAINTS
from tflq.targets.signature import Signature, parse_signature
from tflq.targets.slots import split

__all__ = ["Kind", "kernel_lines", "kinds", "quantized_trials"]

COUNT: Final = 24  # models of each generator
BATCHES: Final = 3  # sets of inputs of each
ENOUGH: Final = 4  # fewer exact models say nothing of a line
EXTRA: Final = (
    *("rounds_alike", "indices_from_zero", "rank_at_most 4", "rank_at_most 5"),
    "fixed_scale 0.0078125 0",  # of TANH
    *("scale_ratio_below 524288", "scale_ratio_below 256"),
)
WIDE: Final = re.compile(r"\bqi(16|32|64)\b")  # too many numbers to try them all


@dataclass
class Kind:
    """A line of the table with one type for each of its names, and what came of the models that fit it: which of the
    other constraints each keeps, and what is said of its results."""

    kernel: str
    line: str
    chosen: tuple[str, ...]
    signature: Signature
    outcomes: list[tuple[frozenset[str], str]] = field(default_factory=list)


def kinds() -> list[Kind]:
    """All that is tried."""
    found = []
    for kernel, said in tomllib.loads(Path(resource("rules/kernels.toml")).read_text())["kernels"].items():
        for line in [said] if isinstance(said, str) else said:
            if WIDE.search(" ".join(_activations(line))):
                continue
            for chosen in product(*(ports for _, ports in split(line).named)):
                for text in _counted(_with(line, chosen)):
                    found.append(Kind(kernel, line, chosen, parse_signature(text)))  # noqa: PERF401
    return found


def _activations(line: str) -> list[str]:
    """The words of a line that are not names, which may stand for a bias."""
    parts = split(line)
    return [word for word in (*parts.operands, *(parts.results or [])) if not word.startswith("qi32")]


def _with(line: str, chosen: Sequence[str]) -> str:
    """The line with these ports for its names."""
    parts = split(line)
    ports = dict(zip((name for name, _ in parts.named), chosen, strict=True))
    sides = [[_replaced(word, ports) for word in side] for side in (parts.operands, parts.results or [])]
    return "; ".join([f"{' '.join(sides[0])} -> {' '.join(sides[1])}", *parts.clauses])


def _replaced(word: str, ports: Mapping[str, str]) -> str:
    name = word.rstrip("?*")
    return ports.get(name, name) + word[len(name) :]


def _counted(text: str) -> list[str]:
    """Up to so many operands, and any number."""
    words = text.partition(" -> ")[0].split()
    return [text.replace("* ->", f"*{MOST} ->", 1), text] if words[-1].endswith("*") else [text]


def fitting(op: Operator, every: Mapping[str, Sequence[Kind]]) -> list[Kind]:
    """The kinds that an op is a trial of."""
    found = [kind for kind in every.get(op.short_name, ()) if kind.signature.fits(op)]
    return [kind for kind in found if kind.signature.broken(op) is None]


def quantized_trials(every: Sequence[Kind]) -> Iterator[tuple[Trial, Operator, list[Kind]]]:
    """Models, and what they are trials of."""
    by_kernel: dict[str, list[Kind]] = {}
    for kind in every:
        by_kernel.setdefault(kind.kernel, []).append(kind)
    for model, inputs in _models():
        try:
            module = read(model)
        except InvalidModelError:
            continue
        op = quantized_op(module)
        if op is None or is_hybrid(op) or len(module.main.ops) > 1 or not all(v.type.is_static for v in op.tensors):
            continue
        kept = fitting(op, by_kernel)
        for arrays in inputs if kept else ():
            yield Trial("", op.short_name, "", "NONE", model, tuple(arrays)), op, kept


def _models() -> Iterator[tuple[bytes, Sequence[Sequence[np.ndarray]]]]:
    for unit in units():
        for trial in kernel_trials(unit, COUNT):
            yield trial.model, trial.batches[:BATCHES]
    for dense in _dense():
        yield dense.model, [dense.inputs]


def kept_of(op: Operator) -> frozenset[str]:
    """Which of the other constraints an op keeps."""
    return frozenset(name for name in EXTRA if _keeps(op, name))


def _keeps(op: Operator, clause: str) -> bool:
    misfit = CONSTRAINTS[clause.split()[0]].misfit(op.operand_slots)
    return misfit is None and parse_signature(f"...; {clause}").broken(op) is None


# The table.


def kernel_lines(every: Sequence[Kind], exact: str) -> tuple[list[str], list[str]]:
    """Lines of [kernels], and of each line that is left out, or not wholly there, why: not how far results are apart,
    which may be what memory held."""
    listed: dict[str, list[str]] = {}
    wrong: list[str] = []
    by_line: dict[tuple[str, str], list[Kind]] = {}
    for kind in every:
        by_line.setdefault((kind.kernel, kind.line), []).append(kind)
    for (kernel, line), of in by_line.items():
        groups: dict[tuple[str, ...], list[Kind]] = {}
        for kind in _least_bound(of, exact):
            if (found := _constraints(kind, exact)) is not None:
                groups.setdefault(found, []).append(kind)
        for constraints, alike in groups.items():
            listed.setdefault(kernel, []).extend(_merged(line, of, alike, constraints))
        verdicts = [verdict for kind in of for _, verdict in kind.outcomes if verdict != exact]
        if verdicts:
            refused = next((verdict for verdict in verdicts if verdict.startswith("refused")), "other numbers")
            wrong.append(f"{kernel}: {line}: {refused}")
    return [_entry(kernel, lines) for kernel, lines in sorted(listed.items())], wrong


def _least_bound(of: Sequence[Kind], exact: str) -> Iterator[Kind]:
    """Of kinds that differ in how many operands there may be at most, the one that takes more, if it is exact."""
    by_choice: dict[tuple[str, ...], list[Kind]] = {}
    for kind in of:
        by_choice.setdefault(kind.chosen, []).append(kind)
    for some in by_choice.values():
        yield next((kind for kind in reversed(some) if _constraints(kind, exact) is not None), some[0])


def _constraints(kind: Kind, exact: str) -> tuple[str, ...] | None:
    """The fewest other constraints that leave only exact models, and enough of them: those that leave the most."""
    for size in range(3):
        best: tuple[int, tuple[str, ...]] | None = None
        for chosen in combinations(EXTRA, size):
            held = [verdict for kept, verdict in kind.outcomes if kept.issuperset(chosen)]
            if len(held) >= ENOUGH and all(verdict == exact for verdict in held):
                best = max(best or (0, chosen), (len(held), chosen), key=lambda pair: pair[0])
        if best is not None:
            return best[1]
    return None


def _merged(line: str, of: Sequence[Kind], alike: Sequence[Kind], constraints: tuple[str, ...]) -> list[str]:
    """The text of kinds of one line under the same constraints: the line itself where they are all of it."""
    added = "".join(f"; {name}" for name in constraints)
    if {kind.chosen for kind in alike} == {kind.chosen for kind in of} and not any("*" in kind.line for kind in alike):
        parts = split(line)
        named = "".join(f"; {name} = {' '.join(ports)}" for name, ports in parts.named)
        head = f"{' '.join(parts.operands)} -> {' '.join(parts.results or [])}"
        return ["; ".join([head, *parts.clauses]) + added + named]
    return [kind.signature.text + added for kind in alike]


def _entry(kernel: str, lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return f'{kernel} = "{lines[0]}"'
    return "\n".join([f"{kernel} = [", *(f'    "{line}",' for line in lines), "]"])


# Models whose results are many: all pairs of 8 bits, all numbers, sums of many sizes.


_SQUARE: Final = (1, 256, 256, 1)
_LINE: Final = (1, 1, 1, 256)
_DRAWS: Final = 12
_ALL: Final = 36  # the rest of the draws has parameters of any size


def _dense() -> Iterator[Trial]:
    yield from _pairs()
    yield from _numbers()
    yield from _windows()
    yield from _joined()


def _type(rng: np.random.Generator, shape: Sequence[int], *, far: bool = False) -> TensorType:
    """int8 with some parameters; `far`: of any size."""
    zero, exponent = int(rng.integers(-128, 128)), rng.uniform(-30, 30) if far else rng.uniform(-9, 1)
    return TensorType(tuple(shape), UniformQuantizedType.of(i8, float(np.float32(np.exp2(exponent))), zero))


def _trial(name: str, kind: type[Operator], types: Sequence[TensorType], result: TensorType, **options: Any) -> Trial:
    return made("", name, lambda k, *xs: k.emit(kind, xs, result, **options), *types)


def _pairs() -> Iterator[Trial]:
    fused: dict[str, Any] = {"fused_activation_function": "NONE"}
    numbers = {arithmetic.Add: fused, arithmetic.Sub: fused, arithmetic.Mul: fused}
    others: dict[type[Operator], dict[str, Any]] = {arithmetic.Maximum: {}, arithmetic.Minimum: {}}
    others |= {arithmetic.SquaredDifference: {}, activation.Prelu: {}}
    x, y = (np.ascontiguousarray(v.reshape(_SQUARE)) for v in np.meshgrid(*[np.arange(-128, 128, dtype=np.int8)] * 2))
    for kind, options in (numbers | others).items():
        rng = np.random.default_rng(len(kind.op_name))
        for draw in range(_ALL):
            types = [_type(rng, _SQUARE, far=draw >= _DRAWS) for _ in range(3)]
            if kind in (arithmetic.Maximum, arithmetic.Minimum):
                types = types[:1] * 3
            trial = _trial(f"{kind.op_name} pairs {draw}", kind, types[:2], types[2], **options)
            yield replace(trial, inputs=(x, y))


def _numbers() -> Iterator[Trial]:
    """All numbers, through functions of one; rows of random ones, through SOFTMAX and its kind."""
    fixed = {"logistic": (2.0**-8, -128), "tanh": (2.0**-7, 0)}
    alphas: dict[str, dict[str, Any]] = {"leaky_relu": {"alpha": 0.3}}
    for kind in (
        *(activation.Relu, activation.Relu6, activation.ReluN1To1, activation.Logistic, activation.Tanh),
        *(activation.HardSwish, activation.LeakyRelu),
    ):
        name = kind.op_name.removeprefix("tfl.")
        rng = np.random.default_rng(len(name))
        values = np.arange(-128, 128).astype(np.int8).reshape(_LINE)
        for draw in range(_ALL):
            source, result = (_type(rng, _LINE, far=draw >= _DRAWS) for _ in range(2))
            if name in fixed:
                result = TensorType(_LINE, UniformQuantizedType.of(i8, *fixed[name]))
            trial = _trial(f"{name} {draw}", kind, [source], result, **alphas.get(name, {}))
            yield replace(trial, inputs=(values,))
    for draw in range(_ALL):
        source = _type(np.random.default_rng(draw), (64, 40), far=draw >= _DRAWS)
        rows: Sequence[tuple[type[Operator], float, int, dict[str, Any]]] = (
            (activation.Softmax, 2.0**-8, -128, {"beta": 1.0}),
            (activation.LogSoftmax, 2.0**-4, 127, {}),
            (activation.L2Normalization, 2.0**-7, 0, {"fused_activation_function": "NONE"}),
        )
        for of_rows, scale, zero, options in rows:
            result = TensorType((64, 40), UniformQuantizedType.of(i8, scale, zero))
            yield _trial(f"{of_rows.op_name} {draw}", of_rows, [source], result, **options)


_SUMMED: Final[dict[type[Operator], tuple[Sequence[int], int]]] = {
    convolution.Conv2D: ((24, 3, 3, 32), 0),
    convolution.DepthwiseConv2D: ((1, 3, 3, 32), 3),
    convolution.FullyConnected: ((24, 32), 0),
}
"""The shape of the weights, and the axis of their channels."""


def _windows() -> Iterator[Trial]:
    """Sums of products, with weights of 8 and of 4 bits, and averages."""
    none: dict[str, Any] = {"fused_activation_function": "NONE"}
    options = {"padding": "SAME", **none} | PLAIN
    depthwise, rows = options | {"depth_multiplier": 1}, none | {"keep_num_dims": True}
    own = {convolution.DepthwiseConv2D: depthwise, convolution.FullyConnected: rows}
    for draw in range(_ALL):
        rng, far = np.random.default_rng(draw), draw >= _DRAWS
        x = _type(rng, (1, 12, 11, 32), far=far)
        for kind, (shape, axis) in _SUMMED.items():
            for storage in (i8, i4):
                yield _product(rng, kind, x, shape, axis, storage, own.get(kind, options), draw)
        pool = none | {"padding": "VALID", "stride_w": 1, "stride_h": 1, "filter_width": 7, "filter_height": 5}
        type = TensorType((1, 8, 5, 32), x.element)
        yield _trial(f"average_pool_2d {draw}", pooling.AveragePool2D, [x], type, **pool)
        whole = _type(rng, (1, 32), far=far)
        yield made("", f"mean {draw}", lambda k, v, r=whole: _mean(k, v, r), x)
        other, shape = _type(rng, (1, 12, 32, 11), far=far), (1, 12, 11, 11)
        result = _type(rng, shape, far=True) if far else _summed(rng, shape, 0.3 * _scale(x) * 32**0.5)
        plain = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
        yield _trial(f"batch_matmul {draw}", convolution.BatchMatMul, [x, other], result, **plain)


def _product(
    rng: np.random.Generator,
    kind: type[Operator],
    x: TensorType,
    shape: Sequence[int],
    axis: int,
    storage: ScalarType,
    options: dict[str, Any],
    draw: int,
) -> Trial:
    """A model of sums of products; every other one has weights of one scale, every third no bias where it may."""
    channels = shape[axis]
    scales = (0.01 * np.exp2(rng.uniform(-2, 2, channels))).astype(np.float32)
    array = rng.integers(storage.minimum + 1, storage.maximum + 1, shape).astype(np.int8)
    bias = rng.integers(-3000, 3000, channels).astype(np.int32)
    types: list[ElementType] = [
        UniformQuantizedPerAxisType.of(storage, axis, scales, 0),
        UniformQuantizedPerAxisType.of(i32, 0, scales * np.float32(_scale(x)), 0),
    ]
    if draw % 2:
        scale = float(scales[0])
        types = [UniformQuantizedType.of(storage, scale, 0), UniformQuantizedType.of(i32, scale * _scale(x), 0)]
    constants = [
        Value(TensorType(tuple(shape), types[0]), buffer=Buffer.of(array, storage)),
        Value(TensorType(bias.shape, types[1]), buffer=Buffer.of(bias)),
    ]
    if draw % 3 == 2 and kind is not convolution.Conv2D:
        constants.pop()
    size = np.sqrt(array.size / channels) * storage.maximum * float(scales.mean())
    whole = (*(d or 0 for d in (x.shape or ())[:3]), channels)
    result = _summed(rng, whole, _scale(x) * size / 2) if draw < _DRAWS else _type(rng, whole, far=True)
    name = f"{kind.op_name} {storage} {draw}"
    return made("", name, lambda k, v: k.emit(kind, [v, *constants], result, **options), x)


def _scale(x: TensorType) -> float:
    assert isinstance(x.element, UniformQuantizedType)
    return x.element.scale


def _summed(rng: np.random.Generator, shape: Sequence[int], scale: float) -> TensorType:
    return TensorType(tuple(shape), UniformQuantizedType.of(i8, float(scale), int(rng.integers(-128, 128))))


def _mean(k: KernelBuilder, x: Value, result: TensorType) -> Value:
    return k.emit(pooling.Mean, [x, k.constant([1, 2])], result, keep_dims=False)


def _joined() -> Iterator[Trial]:
    """As many operands as are tried, and one more."""
    for count in (MOST, MOST + 1):
        type = TensorType((2, 3), UniformQuantizedType.of(i8, 0.5, 3))
        for axis in range(2):
            shape = tuple(d * count if i == axis else d for i, d in enumerate((2, 3)))
            options = {"axis": axis, "fused_activation_function": "NONE"}
            whole = TensorType(shape, type.element)
            for draw in range(2):
                name = f"concatenation of {count} on {axis}, {draw}"
                yield _trial(name, movement.Concatenation, [type] * count, whole, **options)
                stack = TensorType((count, 2, 3) if not axis else (2, count, 3), type.element)
                yield _trial(f"pack {name}", movement.Pack, [type] * count, stack, axis=axis, values_count=count)
