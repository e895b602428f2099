"""Random functions of arith, math, tensor and linalg on ranked tensors, whose values stay within what is defined:
divisors are not 0, shifts below the width, floats within the integers that they become."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
INTEGERS, FLOATS = ["i8", "i16", "i32", "i64"], ["f32", "f64"]
Typed = tuple[str, tuple[int, ...], str]
"""A value's name, shape and element type."""

WRAPPING = ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui"]
ROUNDINGS = ["absf", "ceil", "floor", "roundeven", "round", "trunc"]
COMPARED = ["oeq", "ogt", "oge", "olt", "ole", "one", "une", "ult", "uge"]
COMPARED_INTEGERS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


class Writer:
    """The body of a function while it is written."""

    def __init__(self, r: random.Random, *, of_tflite: bool) -> None:
        self.r = r
        self.of_tflite = of_tflite
        self.integers = ["i8", "i16", "i32"] if of_tflite else INTEGERS
        self.floats = ["f32"] if of_tflite else FLOATS
        self.lines: list[str] = []
        self.values: list[Typed] = []
        self.count = 0

    def emit(self, text: str, shape: tuple[int, ...], kind: str) -> str:
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"    {name} = {text}")
        self.values.append((name, shape, kind))
        return name

    def constant(self, value: float, shape: tuple[int, ...], kind: str) -> str:
        shown = f"{float(value)!r}" if kind in FLOATS else str(int(value))
        name = f"%c{self.count}"
        self.count += 1
        self.lines.append(f"    {name} = arith.constant dense<{shown}> : {tensor(shape, kind)}")
        return name

    def picked(self, *kinds: str) -> Typed | None:
        found = [v for v in self.values if v[2] in kinds]
        return self.r.choice(found) if found else None

    def like(self, given: Typed) -> str:
        """A value of the same type."""
        return self.r.choice([name for name, shape, kind in self.values if (shape, kind) == given[1:]])


def _wrapping(w: Writer) -> None:
    if x := w.picked(*w.integers):
        w.emit(f"arith.{w.r.choice(WRAPPING)} {x[0]}, {w.like(x)} : {tensor(*x[1:])}", *x[1:])


def _divided(w: Writer) -> None:
    if x := w.picked(*w.integers):
        t = tensor(*x[1:])
        one = w.constant(1, *x[1:])
        by = w.emit(f"arith.ori {w.like(x)}, {one} : {t}", *x[1:])
        half = w.emit(f"arith.shrsi {x[0]}, {one} : {t}", *x[1:])
        unsigned = [] if w.of_tflite and x[2] == "i32" else ["divui", "remui", "ceildivui"]
        name = w.r.choice(["divsi", "remsi", "floordivsi", "ceildivsi", *unsigned])
        w.emit(f"arith.{name} {half}, {by} : {t}", *x[1:])


def _shifted(w: Writer) -> None:
    if x := w.picked(*w.integers):
        t, mask = tensor(*x[1:]), w.constant(int(x[2][1:]) - 1, *x[1:])
        by = w.emit(f"arith.andi {w.like(x)}, {mask} : {t}", *x[1:])
        w.emit(f"arith.{w.r.choice(['shli', 'shrsi', 'shrui'])} {x[0]}, {by} : {t}", *x[1:])


def _of_one_integer(w: Writer) -> None:
    if x := w.picked(*w.integers):
        name = w.r.choice(["absi", "ctlz", *([] if w.of_tflite else ["ctpop", "cttz"])])
        w.emit(f"math.{name} {x[0]} : {tensor(*x[1:])}", *x[1:])


def _resized(w: Writer) -> None:
    if x := w.picked(*w.integers):
        to = w.r.choice([k for k in w.integers if k != x[2]])
        wider = int(to[1:]) > int(x[2][1:])
        name = w.r.choice(["extsi", "extui"]) if wider else "trunci"
        w.emit(f"arith.{name} {x[0]} : {tensor(*x[1:])} to {tensor(x[1], to)}", x[1], to)


def _to_float(w: Writer) -> None:
    if x := w.picked(*w.integers):
        to = w.r.choice(w.floats)
        w.emit(f"arith.{w.r.choice(['sitofp', 'uitofp'])} {x[0]} : {tensor(*x[1:])} to {tensor(x[1], to)}", x[1], to)


def _to_integer(w: Writer) -> None:
    if x := w.picked(*w.floats):
        t, to = tensor(*x[1:]), w.r.choice(w.integers)
        signed = w.r.random() < 0.6
        high = min(2 ** (int(to[1:]) - signed) - 1, 2**24)
        low, top = w.constant(-high if signed else 0, *x[1:]), w.constant(high, *x[1:])
        y = w.emit(f"arith.maximumf {x[0]}, {low} : {t}", *x[1:])
        y = w.emit(f"arith.minimumf {y}, {top} : {t}", *x[1:])
        w.emit(f"arith.fpto{'s' if signed else 'u'}i {y} : {t} to {tensor(x[1], to)}", x[1], to)


def _float_arithmetic(w: Writer) -> None:
    if x := w.picked(*w.floats):
        w.emit(
            f"arith.{w.r.choice(['addf', 'subf', 'maximumf', 'minimumf'])} {x[0]}, {w.like(x)} : {tensor(*x[1:])}",
            *x[1:],
        )


def _remainder(x: Typed) -> str:
    """IREE links no fmod of doubles."""
    return "remf" if x[2] == "f32" else "divf"


def _scaled(w: Writer) -> None:
    if x := w.picked(*w.floats):
        t = tensor(*x[1:])
        by = w.constant(w.r.choice([0.1, -0.7, 1.5, 3.0]), *x[1:])
        w.emit(f"arith.{w.r.choice(['mulf', 'divf', _remainder(x)])} {x[0]}, {by} : {t}", *x[1:])


def _float_quotient(w: Writer) -> None:
    if x := w.picked(*w.floats):
        t = tensor(*x[1:])
        size = w.emit(f"math.absf {w.like(x)} : {t}", *x[1:])
        by = w.emit(f"arith.addf {size}, {w.constant(0.5, *x[1:])} : {t}", *x[1:])
        w.emit(f"arith.{w.r.choice(['divf', _remainder(x)])} {x[0]}, {by} : {t}", *x[1:])


def _rounded(w: Writer) -> None:
    if x := w.picked(*w.floats):
        name = w.r.choice([f"math.{n}" for n in ROUNDINGS] + ["arith.negf"])
        w.emit(f"{name} {x[0]} : {tensor(*x[1:])}", *x[1:])


def _refloated(w: Writer) -> None:
    if x := w.picked(*w.floats):
        to = "f64" if x[2] == "f32" else "f32"
        w.emit(f"arith.{'extf' if to == 'f64' else 'truncf'} {x[0]} : {tensor(*x[1:])} to {tensor(x[1], to)}", x[1], to)


def _halved(w: Writer) -> None:
    """Results of f16, in which nothing computes on: IREE leaves out a rounding to a narrower type between two ops."""
    if x := w.picked("f32"):
        w.emit(f"arith.truncf {x[0]} : {tensor(*x[1:])} to {tensor(x[1], 'f16')}", x[1], "f16")
    if x := w.picked("f16"):
        name = w.r.choice(["addf", "subf", "mulf"])
        w.emit(f"arith.{name} {x[0]}, {w.like(x)} : {tensor(*x[1:])}", x[1], "f16")


def _chosen(w: Writer) -> None:
    if x := w.picked(*w.integers, *w.floats):
        t, a, b = tensor(*x[1:]), x[0], w.like(x)
        word = f"cmpf {w.r.choice(COMPARED)}" if x[2] in FLOATS else f"cmpi {w.r.choice(COMPARED_INTEGERS)}"
        flag = f"%b{w.count}"
        w.lines.append(f"    {flag} = arith.{word}, {a}, {b} : {t}")
        w.emit(f"arith.select {flag}, {a}, {b} : {tensor(x[1], 'i1')}, {t}", *x[1:])


def _reshaped(w: Writer) -> None:
    x = w.picked(*w.integers, *w.floats)
    if x and len(x[1]) == 2:
        a, b = x[1]
        w.emit(
            f"tensor.collapse_shape {x[0]} [[0, 1]] : {tensor(*x[1:])} into {tensor((a * b,), x[2])}", (a * b,), x[2]
        )
    elif x and x[1][0] % 2 == 0:
        made = (2, x[1][0] // 2)
        shape = f"output_shape [{made[0]}, {made[1]}] : {tensor(*x[1:])} into {tensor(made, x[2])}"
        w.emit(f"tensor.expand_shape {x[0]} [[0, 1]] {shape}", made, x[2])


def _sliced(w: Writer) -> None:
    x = w.picked(*w.integers, *w.floats)
    if x and len(x[1]) == 2 and min(x[1]) > 1:
        rows, columns = w.r.randint(1, x[1][0]), w.r.randint(1, x[1][1])
        at = w.r.randint(0, x[1][0] - rows), w.r.randint(0, x[1][1] - columns)
        made = tensor((rows, columns), x[2])
        where = f"[{at[0]}, {at[1]}] [{rows}, {columns}] [1, 1]"
        w.emit(f"tensor.extract_slice {x[0]}{where} : {tensor(*x[1:])} to {made}", (rows, columns), x[2])


def _looped(w: Writer) -> None:
    """A loop that transposes, picks a row and computes."""
    x = w.picked(*w.integers, *w.floats)
    if not x or len(x[1]) != 2:
        return
    made = x[1][1], x[1][0]
    op = "arith.addf" if x[2] in FLOATS else w.r.choice(["arith.muli", "arith.addi", "arith.maxsi"])
    row = w.constant(3, (made[0],), x[2])
    empty = f"%e{w.count}"
    w.lines.append(f"    {empty} = tensor.empty() : {tensor(made, x[2])}")
    maps = "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>"
    head = f'{{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}'
    ins = f"ins({x[0]}, {row} : {tensor(*x[1:])}, {tensor((made[0],), x[2])}) outs({empty} : {tensor(made, x[2])})"
    body = f"^bb0(%a: {x[2]}, %b: {x[2]}, %o: {x[2]}):\n      %s = {op} %a, %b : {x[2]}\n      linalg.yield %s : {x[2]}"
    w.emit(f"linalg.generic {head} {ins} {{\n    {body}\n    }} -> {tensor(made, x[2])}", made, x[2])


def _reduced(w: Writer) -> None:
    """A reduction whose order makes no difference."""
    x = w.picked(*w.integers)
    if not x or len(x[1]) != 2:
        return
    made = (x[1][0],)
    op = w.r.choice(["arith.addi", "arith.maxsi", "arith.xori"])
    start = w.constant(1, made, x[2])
    maps = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>"
    head = f'{{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}'
    ins = f"ins({x[0]} : {tensor(*x[1:])}) outs({start} : {tensor(made, x[2])})"
    body = f"^bb0(%a: {x[2]}, %o: {x[2]}):\n      %s = {op} %o, %a : {x[2]}\n      linalg.yield %s : {x[2]}"
    w.emit(f"linalg.generic {head} {ins} {{\n    {body}\n    }} -> {tensor(made, x[2])}", made, x[2])


STEPS: list[Callable[[Writer], None]] = [
    *(_wrapping, _divided, _shifted, _of_one_integer, _resized, _to_float, _to_integer, _float_arithmetic, _scaled),
    *(_float_quotient, _rounded, _refloated, _halved, _chosen, _reshaped, _sliced, _looped, _reduced),
]


def random_function(name: str, seed: int, *, of_tflite: bool = False) -> tuple[str, list[Typed]]:
    """The text of a function of random ops, and its arguments. It returns the last values that it computes.
    `of_tflite`: of what is converted exactly."""
    r = random.Random(seed)
    w = Writer(r, of_tflite=of_tflite)
    steps = [step for step in STEPS if not of_tflite or step not in (_refloated, _halved, _reduced)]
    shape: tuple[int, ...] = (r.choice([2, 3, 4]), r.choice([1, 2, 5, 8]))
    arguments: list[Typed] = [(f"%a{i}", shape, r.choice(w.integers if i % 2 else w.floats)) for i in range(3)]
    w.values += arguments
    while len(w.values) < 14:
        r.choice(steps)(w)
    results = w.values[-4:]
    given = ", ".join(f"{n}: {tensor(s, k)}" for n, s, k in arguments)
    types = ", ".join(tensor(s, k) for _, s, k in results)
    body = "\n".join(w.lines)
    names = ", ".join(n for n, _, _ in results)
    return f"  func.func @{name}({given}) -> ({types}) {{\n{body}\n    return {names} : {types}\n  }}", arguments


def random_inputs(arguments: list[Typed], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = []
    for _, shape, kind in arguments:
        if kind in FLOATS:
            made.append(
                (rng.integers(-64, 64, shape) / 4 + rng.normal(size=shape) * (rng.random() < 0.5)).astype(DTYPES[kind])
            )
        else:
            info = np.iinfo(np.dtype(DTYPES[kind]).name)
            made.append(rng.integers(info.min, info.max, shape, endpoint=True).astype(DTYPES[kind]))
    return made
