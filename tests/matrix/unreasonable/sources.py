"""A draw of an operator: a model from the generators of the matrix or from the coverage table, made unreasonable."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from support.harness import edge_inputs

import tflq
from matrix.draw import GENERATORS, Case, Draw, describe
from matrix.unreasonable.twist import twisted
from tflq.ir.module import Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, bf16
from tflq.tools.coverage.table import operators, samples_of

T = TypeVar("T")

_CALLING = frozenset(
    "call call_once custom delegate if while stablehlo_case stablehlo_composite stablehlo_while".split()
)
"""What they compute, the operators of other functions do."""
_ATTEMPTS = 40


_TRIALS = 12
"""Draws that show which operators a generator has."""


class _Listening(Draw):
    """Notes the names among which a generator chooses."""

    def __init__(self, seed: Sequence[int]) -> None:
        super().__init__(seed)
        self.names: set[str] = set()

    def one(self, *options: T) -> T:
        self.names |= {option for option in options if isinstance(option, str)}
        return super().one(*options)


@cache
def _generators() -> Mapping[str, Sequence[str]]:
    """By operator, the generators that draw models of it alone, for which there is a kernel."""
    result: dict[str, list[str]] = {}
    for name, generate in GENERATORS.items():
        for operator in sorted(set().union(*(_alone(generate, trial) for trial in range(_TRIALS)))):
            result.setdefault(operator, []).append(name)
    return result


def _alone(generate: Callable[[Draw], Case], trial: int) -> set[str]:
    """The operators of a draw: its only one, and those in whose place it was chosen."""
    draw = _Listening([trial])
    try:
        with np.errstate(all="ignore"):
            case = generate(draw)
        ops = [op.name.removeprefix("tfl.") for op in tflq.read(case.model).ops()]
    except (ArithmeticError, IndexError, ValueError, tflq.TflqError):
        return set()
    has_kernel = case.twin is None and case.exact is None
    return {*ops, *draw.names.intersection(OPERATORS)} if len(ops) == 1 and has_kernel else set()


@cache
def _samples(name: str) -> tuple[bytes, ...]:
    return tuple(model for _, model in samples_of(name))


OPERATORS = tuple(name for name in operators() if name not in _CALLING and next(iter(samples_of(name)), None))
"""Those that have a quantized signature, by name."""


_MORE = 6
"""Sets of inputs beside those of the other tests."""


@dataclass(frozen=True)
class Subject:
    """A model, what to run it on, and what it is in words."""

    model: bytes
    batches: list[list[np.ndarray]]
    text: str


class _Odd(Draw):
    """Draws one operator where a generator has several; shapes with dims of 0 and 1, any fused activation."""

    def __init__(self, seed: Sequence[int], operator: str) -> None:
        super().__init__(seed)
        self.operator = operator

    def one(self, *options: T) -> T:
        wanted = [option for option in options if isinstance(option, str) and option == self.operator]
        return wanted[0] if wanted else super().one(*options)

    def dims(self, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
        kind = self.rng.random()
        if kind < 0.15:
            return tuple(1 if self.chance(0.6) else self.whole(low, high) for _ in range(rank))
        dims = super().dims(rank, low, high)
        if kind > 0.97 and rank:
            at = self.whole(0, rank - 1)
            return (*dims[:at], 0, *dims[at + 1 :])
        return dims

    def activation(self) -> str:
        return self.one("NONE", "RELU", "RELU6", "RELU_N1_TO_1", "NONE", "RELU", "TANH", "SIGN_BIT")


def subject(operator: str, number: int, seed: int = 0) -> Subject:
    """Draw `number` of an operator; the same in every run."""
    for attempt in range(_ATTEMPTS):
        draw = _Odd([seed, *operator.encode(), number, attempt], operator)
        try:
            found = _drawn(draw, operator)
        except (ArithmeticError, IndexError, ValueError, tflq.TflqError):
            continue  # a generator that its parameters take out of what numpy or the format holds
        if found is not None:
            return found
    raise RuntimeError(f"{operator} {number}: no model drawn")


def _drawn(draw: _Odd, operator: str) -> Subject | None:
    generators = _generators().get(operator, ())
    if generators and draw.chance(0.65):
        with np.errstate(all="ignore"):
            case = GENERATORS[draw.one(*generators)](draw)
        model, batches = case.model, draw.one(case.batches, *case.more)
    else:
        model, batches = draw.one(*_samples(operator)), None
    module = tflq.read(model)
    op = _operator(module, operator)
    if op is None or any(v.type.storage == bf16 for v in (*module.main.inputs, *module.main.outputs)):
        return None
    made, shapes = twisted(draw, module, op, None if batches is None else [a.shape for a in batches[0]])
    again = tflq.read(made)
    if batches is None or shapes is not None:
        batches = _inputs(again, shapes, draw.whole(0, 1 << 30))
    if len(batches[0]) != len(again.main.inputs):
        return None
    batches += _more(again, batches, draw.whole(0, 1 << 30))
    return Subject(made, batches, "; ".join(map(_words, again.ops())) + f" crc {zlib.crc32(made):08x}")


def _operator(module: Module, name: str) -> Op | None:
    return next((op for op in module.main.ops if op.name == f"tfl.{name}"), None)


def _inputs(module: Module, shapes: Sequence[Sequence[int]] | None, seed: int) -> list[list[np.ndarray]]:
    from support.harness import argument

    values = list(module.main.inputs)
    if shapes is not None:
        values = [argument(shape, v.type.element) for shape, v in zip(shapes, values, strict=True)]
    return edge_inputs(values, seed)


def _more(module: Module, batches: list[list[np.ndarray]], seed: int) -> list[list[np.ndarray]]:
    """Other values of quantized and float inputs, some near zero, so that few tensors of few elements are equal by
    chance."""
    rng, made = np.random.default_rng(seed), []
    for number in range(_MORE):
        arrays = []
        for value, array in zip(module.main.inputs, batches[number % 2], strict=True):
            element, storage = value.type.element, value.type.storage
            if storage.is_float:
                arrays.append((rng.normal(0, 4, array.shape) * 10.0 ** rng.integers(-6, 2)).astype(array.dtype))
            elif not value.type.quantized:
                arrays.append(array)
            elif number % 2:
                zero = element.zero_point if isinstance(element, UniformQuantizedType) else 0
                near = zero + rng.integers(-4, 5, array.shape)
                arrays.append(np.clip(near, storage.minimum, storage.maximum).astype(array.dtype))
            else:
                arrays.append(
                    rng.integers(storage.minimum, storage.maximum, array.shape, np.int64, endpoint=True).astype(
                        array.dtype
                    )
                )
        made.append(arrays)
    return made


def _words(op: Op) -> str:
    def types(values: Sequence[object]) -> Iterator[str]:
        return (describe(v) for v in values)  # type: ignore[arg-type]

    attributes = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in op.attributes.items()}
    return f"{op.name[4:]}({', '.join(types(op.operands))}) -> {', '.join(types(op.results))} {attributes}"
