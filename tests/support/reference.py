"""The integer form of a model, computed by the numpy evaluator, against the interpreter's reference kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.harness import argument, interpret
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.formats.tflite.reader import read
from tflq.ir.module import Module
from tflq.ir.ops import Op
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedType
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.legalize.rule import NotApplicable, RuleBuilder, rules_of

NO_REFERENCE_KERNEL = frozenset(("ceil", "elu", "round", "segment_sum"))
"""Operators that the reference resolver lacks."""


def resolver_of(name: str) -> str:
    """The resolver whose kernel of an operator is the one to equal."""
    return "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if name in NO_REFERENCE_KERNEL else "BUILTIN_REF"


def integer_form(model: bytes) -> Module:
    """The model legalized by integer rules alone. UnsupportedError if there is none."""
    return legalize(read(model), Policy(fallback=False))[0]


def refusal(name: str, elements: Sequence[ElementType], **attributes: Any) -> str:
    """Why the first rule of an operator does not cover operands and a result of these types, the last one."""
    values = [argument((1, 4), element, f"t{i}") for i, element in enumerate(elements)]
    op = Op(name, list(values[:-1]), values[-1:], attributes)
    with pytest.raises(NotApplicable) as raised:
        next(rules_of(type(op)))(op, RuleBuilder([], {}))
    return raised.value.reason.what


def evaluated(module: Module, batches: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """The evaluator's outputs for each list of inputs."""
    main = module.main
    results = []
    for arrays in batches:
        env = evaluate_function(main, dict(zip(main.inputs, arrays, strict=True)))
        results.append([v.array if v.is_constant else env[v] for v in main.outputs])
    return results


def assert_equals_kernel(model: bytes, batches: list[list[np.ndarray]], resolver: str = "BUILTIN_REF") -> None:
    """The integer form gives the kernels' outputs, bit for bit."""
    for want, got in zip(interpret(model, batches, resolver), evaluated(integer_form(model), batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)


def every_value(dtype: np.dtype | str) -> np.ndarray:
    """Every value of an integer type, smallest first: [1, 256] or [1, 65536]."""
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1).astype(dtype)[None]


def quantized(storage: ScalarType, scale: float = 0.05, zero_point: int = 3) -> UniformQuantizedType:
    """A type with one scale; wider types than 8 bits have the zero point 0."""
    return UniformQuantizedType.of(storage, scale, zero_point if storage.bits == 8 else 0)
