"""Modules in the tosa form as TFLite files: the interpreter against the evaluator and the TOSA reference model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from support.harness import argument, interpret
from support.running import reference
from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.conversion.convert import lower
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, i64

RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")


def one_op(
    name: str,
    inputs: Sequence[np.ndarray | Value],
    result: tuple[Sequence[int], ScalarType],
    attributes: Mapping[str, Any] | None = None,
    elements: Sequence[ScalarType | None] = (),
) -> Module:
    """A module of one op; arrays are its inputs, values its constants. `elements`: types that a dtype does not say."""
    given = [*elements, *([None] * len(inputs))]
    values = [
        x if isinstance(x, Value) else argument(x.shape, element or constant(x).type.storage, f"x{i}")
        for i, (x, element) in enumerate(zip(inputs, given, strict=False))
    ]
    output = Value(TensorType(tuple(result[0]), result[1]), "y")
    location = Location("", 0, 0, name, "y")
    op = Op(f"tosa.{name}", list(values), [output], dict(attributes or {}), location)
    arguments = [v for v in values if not v.is_constant]
    return Module([Function("main", arguments, list(op.results), [op])])


def outputs_of(module: Module, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The evaluator's outputs."""
    main = module.main
    env = evaluate_function(main, dict(zip(main.inputs, arrays, strict=True)), Run(module))
    return [v.array if v.is_constant else env[v] for v in main.outputs]


def assert_same(module: Module, arrays: Sequence[np.ndarray], *, ulps: int = 0) -> list[str]:
    """Asserts that the evaluator, the reference model and the interpreter agree; the builtins used.

    `ulps` is for floats: units in the last place of the greatest result.
    """
    want = outputs_of(module, arrays)
    if not any(
        v.type.storage == i64 for v in (*module.main.inputs, *module.main.outputs)
    ):  # the reference model's files have no 48 bits
        _compare(reference(module, arrays), want, ulps, "reference model")
    converted, _ = lower(module, Options())
    model = bytes(write(converted))
    for resolver in RESOLVERS:
        _compare(interpret(model, [list(arrays)], resolver)[0], want, ulps, resolver)
    return [op.name.removeprefix("tfl.") for op in converted.ops()]


def _compare(got: Sequence[np.ndarray], want: Sequence[np.ndarray], ulps: int, message: str) -> None:
    for g, w in zip(got, want, strict=True):
        g = g.reshape(w.shape)
        if ulps and w.dtype.kind == "f":
            unit = float(np.spacing(np.abs(w).max().astype(w.dtype)))
            np.testing.assert_allclose(g, w, rtol=0, atol=ulps * unit, err_msg=message)
        else:
            np.testing.assert_array_equal(g, w, err_msg=message)
