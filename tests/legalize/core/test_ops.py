"""Ops of the core dialects in the interpreter: what the evaluator computes, bit for bit, or a refusal by name."""

from __future__ import annotations

import numpy as np
import pytest
from support.core_ops import of_text
from support.harness import interpret
from support.random_core import random_function, random_inputs

import tflq
from tflq.errors import UnsupportedError

N = 4096
DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32}

WRAPPING = ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"]
DIVIDING = ["divsi", "divui", "ceildivsi", "ceildivui", "floordivsi", "remsi", "remui"]
SHIFTING = ["shli", "shrsi", "shrui"]
INTEGER_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
FLOAT_PREDICATES = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


def function(lines: list[tuple[str, str]], takes: list[str]) -> str:
    """Each line computes one result, of the element type given beside it, of %a, %b ..."""
    arguments = ", ".join(f"%{name}: tensor<{N}x{kind}>" for name, kind in zip("abc", takes, strict=False))
    types = ", ".join(f"tensor<{N}x{kind}>" for _, kind in lines)
    body = "\n".join(f"  %r{i} = {line}" for i, (line, _) in enumerate(lines))
    names = ", ".join(f"%r{i}" for i in range(len(lines)))
    return f"func.func @f({arguments}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}"


def binary(name: str, kind: str) -> tuple[str, str]:
    return f"{name} %a, %b : tensor<{N}x{kind}>", kind


def some(kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "i1":
        return rng.integers(0, 2, N).astype(np.bool_)
    if kind == "f32":
        special = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 8388609.0, 0.49999997]
        wide = rng.normal(size=N) * 2.0 ** rng.integers(-8, 12, N)
        return np.where(rng.random(N) < 0.4, rng.choice(special, N), wide).astype(np.float32)
    info = np.iinfo(np.dtype(DTYPES[kind]).name)
    wide_ints = rng.integers(info.min, info.max, N, endpoint=True)
    ends = rng.choice([info.min, info.min + 1, -2, -1, 0, 1, 2, info.max - 1, info.max], N)
    return np.where(rng.random(N) < 0.3, ends, wide_ints).astype(DTYPES[kind])


def compare(text: str, *arrays: np.ndarray, resolver: str = "BUILTIN_REF") -> None:
    (found,) = interpret(tflq.convert(text.encode()).data, [list(arrays)], resolver)
    for number, (made, wanted) in enumerate(zip(found, of_text(text, *arrays), strict=True)):
        if wanted.dtype.kind == "f":
            same = (made.view(np.int32) == wanted.view(np.int32)) | (np.isnan(made) & np.isnan(wanted))
        else:
            same = made == wanted
        assert same.all(), f"{text}\nresult {number}: {made[~same][:3]}, not {wanted[~same][:3]}"


@pytest.mark.parametrize("kind", ["i1", "i8", "i16", "i32"])
def test_integers_wrap(kind: str) -> None:
    text = function([binary(f"arith.{name}", kind) for name in WRAPPING], [kind, kind])
    compare(text, some(kind, 0), some(kind, 1))


def test_integers_of_64_bits_as_far_as_there_are_builtins() -> None:
    names = ["addi", "subi", "muli", "maxsi", "minsi"]
    compare(function([binary(f"arith.{name}", "i64") for name in names], ["i64"] * 2), some("i64", 0), some("i64", 1))


@pytest.mark.parametrize("kind", ["i8", "i16", "i32"])
def test_quotients(kind: str) -> None:
    names = [name for name in DIVIDING if kind != "i32" or not name.endswith("ui")]
    a, b = some(kind, 0), some(kind, 1)
    b = np.where((b == 0) | ((b == -1) & (a == np.iinfo(kind.replace("i", "int")).min)), 3, b).astype(a.dtype)
    compare(function([binary(f"arith.{name}", kind) for name in names], [kind, kind]), a, b)


@pytest.mark.parametrize("kind", ["i8", "i16", "i32"])
def test_shifts(kind: str) -> None:
    by = np.random.default_rng(3).integers(0, int(kind[1:]), N).astype(DTYPES[kind])
    compare(function([binary(f"arith.{name}", kind) for name in SHIFTING], [kind, kind]), some(kind, 0), by)


@pytest.mark.parametrize("kind", ["i8", "i16", "i32"])
def test_functions_of_one_integer(kind: str) -> None:
    lines = [(f"math.{name} %a : tensor<{N}x{kind}>", kind) for name in ("absi", "ctlz")]
    compare(function(lines, [kind]), some(kind, 0))


@pytest.mark.parametrize("kind", ["i1", "i8", "i16", "i32", "i64"])
def test_comparisons_and_choice_of_integers(kind: str) -> None:
    lines = [(f"arith.cmpi {word}, %a, %b : tensor<{N}x{kind}>", "i1") for word in INTEGER_PREDICATES]
    lines.append((f"arith.select %r2, %a, %b : tensor<{N}xi1>, tensor<{N}x{kind}>", kind))
    a, b = some(kind, 0), some(kind, 1)
    compare(function(lines, [kind, kind]), a, np.where(np.arange(N) % 3 == 0, a, b))


@pytest.mark.parametrize("source", ["i1", "i8", "i16", "i32", "i64"])
def test_conversions_of_integers(source: str) -> None:
    order = ["i1", "i8", "i16", "i32", "i64"]
    lines = []
    for target in order:
        if order.index(target) > order.index(source):
            lines += [
                (f"arith.{name} %a : tensor<{N}x{source}> to tensor<{N}x{target}>", target)
                for name in ("extsi", "extui")
            ]
        elif target != source:
            lines.append((f"arith.trunci %a : tensor<{N}x{source}> to tensor<{N}x{target}>", target))
    for name in ("sitofp", "uitofp"):
        if (name, source) != ("uitofp", "i64"):
            lines.append((f"arith.{name} %a : tensor<{N}x{source}> to tensor<{N}xf32>", "f32"))
    compare(function(lines, [source]), some(source, 0))


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN"])
def test_conversions_of_floats_saturate(resolver: str) -> None:
    pairs = [(name, kind) for name in ("fptosi", "fptoui") for kind in ("i8", "i16", "i32")]
    lines = [(f"arith.{name} %a : tensor<{N}xf32> to tensor<{N}x{kind}>", kind) for name, kind in pairs]
    compare(function(lines, ["f32"]), some("f32", 0), resolver=resolver)


def test_conversion_to_64_bits_within_them() -> None:
    x = some("f32", 0)
    x = np.where(np.abs(x) < 2.0**62, x, 0).astype(np.float32)
    compare(function([(f"arith.fptosi %a : tensor<{N}xf32> to tensor<{N}xi64>", "i64")], ["f32"]), x)


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN"])
def test_arithmetic_of_floats(resolver: str) -> None:
    names = ["addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf"]
    lines = [binary(f"arith.{name}", "f32") for name in names]
    compare(function(lines, ["f32", "f32"]), some("f32", 0), some("f32", 1), resolver=resolver)


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN"])
def test_roundings_and_functions_that_are_exact(resolver: str) -> None:
    names = ["absf", "ceil", "floor", "round", "roundeven", "trunc"]
    lines = [(f"math.{name} %a : tensor<{N}xf32>", "f32") for name in names]
    lines.append((f"arith.negf %a : tensor<{N}xf32>", "f32"))
    compare(function(lines, ["f32"]), some("f32", 0), resolver=resolver)


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN"])
def test_comparisons_of_floats(resolver: str) -> None:
    lines = [(f"arith.cmpf {word}, %a, %b : tensor<{N}xf32>", "i1") for word in FLOAT_PREDICATES]
    lines += [(f"math.{name} %a : tensor<{N}xf32>", "i1") for name in ("isnan", "isinf", "isfinite")]
    lines.append((f"arith.select %r2, %a, %b : tensor<{N}xi1>, tensor<{N}xf32>", "f32"))
    a, b = some("f32", 0), some("f32", 1)
    compare(function(lines, ["f32", "f32"]), a, np.where(np.arange(N) % 3 == 0, a, b), resolver=resolver)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh", "sqrt", "rsqrt"])
def test_functions_are_the_kernels(name: str) -> None:
    """Within a few last bits of the evaluator's, which rounds once."""
    x = np.abs(np.random.default_rng(0).normal(size=N)).astype(np.float32) + np.float32(0.01)
    text = function([(f"math.{name} %a : tensor<{N}xf32>", "f32")], ["f32"])
    ((found,),) = interpret(tflq.convert(text.encode()).data, [[x]])
    np.testing.assert_allclose(found, of_text(text, x)[0], rtol=2e-6, atol=1e-7)


REFUSED = [
    (binary("arith.divui", "i32"), ["i32", "i32"], "TFLite divides no unsigned integers of 32 bits; use the signed op"),
    (binary("arith.xori", "i64"), ["i64", "i64"], "TFLite has no xori of integers of 64 bits"),
    (binary("arith.addf", "f64"), ["f64", "f64"], "TFLite has no arithmetic on f64; write it in one of i1, i8"),
    (binary("arith.addi", "i5"), ["i5", "i5"], "TFLite has no arithmetic on i5"),
    ((f"math.fma %a, %b, %a : tensor<{N}xf32>", "f32"), ["f32", "f32"], "TFLite rounds the product and the sum"),
    ((f"math.erf %a : tensor<{N}xf32>", "f32"), ["f32"], "TFLite has no builtin that computes it exactly"),
]


@pytest.mark.parametrize(("line", "takes", "reason"), REFUSED)
def test_what_has_no_exact_form_is_refused_by_name(line: tuple[str, str], takes: list[str], reason: str) -> None:
    name = line[0].split()[0]
    with pytest.raises(UnsupportedError, match=f"function 0 'f', {name}, .*{reason}"):
        tflq.convert(function([line], takes).encode())


def test_all_refusals_come_at_once() -> None:
    lines = [binary("arith.divui", "i32"), binary("arith.remui", "i32")]
    with pytest.raises(UnsupportedError, match=r"cannot convert 2 operators"):
        tflq.convert(function(lines, ["i32", "i32"]).encode())


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN"])
def test_random_functions(resolver: str) -> None:
    for seed in range(25):
        text, arguments = random_function("f", seed, of_tflite=True)
        compare(text, *random_inputs(arguments, seed), resolver=resolver)
