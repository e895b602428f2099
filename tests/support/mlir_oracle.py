"""MLIR itself, where it is at hand: the environment variable TFLQ_MLIR names a Python that has torch-mlir.

`run` gives what MLIR's passes make of texts, parsed back, or its error; `random_casts` and `random_calls` make texts.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Sequence

import pytest

PYTHON = os.environ.get("TFLQ_MLIR", "")
needs_mlir = pytest.mark.skipif(not PYTHON, reason="TFLQ_MLIR names no Python with torch-mlir")

_SCRIPT = """
import json, os, sys
from torch_mlir import ir, passmanager
from torch_mlir._mlir_libs import _stablehlo
texts, pipeline, generic, unregistered = json.load(sys.stdin)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
out = []
for text in texts:
    try:
        with ir.Context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = unregistered
            _stablehlo.register_dialect(context)
            module = ir.Module.parse(text)
            if pipeline:
                passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
            out.append(module.operation.get_asm(print_generic_op_form=generic))
    except Exception as error:
        out.append("ERROR " + str(error))
json.dump(out, sys.stdout)
"""


def run(
    texts: Sequence[str], pipeline: str = "", *, generic: bool = False, allow_unregistered: bool = True
) -> list[str]:
    """The text of each module after a pipeline, or a text that begins with ERROR; with CRASH where MLIR itself does.
    `allow_unregistered`: ops of dialects that MLIR does not have are let through."""
    given = json.dumps([list(texts), pipeline, generic, allow_unregistered])
    done = subprocess.run([PYTHON, "-c", _SCRIPT], input=given, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        made: list[str] = json.loads(done.stdout)
        return made
    if len(texts) == 1:
        return ["CRASH"]
    half = len(texts) // 2
    return [
        made
        for part in (texts[:half], texts[half:])
        for made in run(part, pipeline, generic=generic, allow_unregistered=allow_unregistered)
    ]


def random_casts(count: int, seed: int) -> list[str]:
    """Functions of one quant.qcast or quant.dcast each, on random types and shapes."""
    r = random.Random(seed)
    return [_cast(r) for _ in range(count)]


def random_calls(count: int, seed: int) -> list[str]:
    """Declarations, and functions that call them, of random types."""
    r = random.Random(seed)
    return [_call(r) for _ in range(count)]


def random_chains(count: int, seed: int) -> list[str]:
    """Functions of chains of casts, which undo each other here and there."""
    r = random.Random(seed)
    return [_chain(r) for _ in range(count)]


def random_judged(count: int, seed: int) -> list[str]:
    """Functions of one cast each, about half of which are not valid."""
    r = random.Random(seed)
    return [_judged(r) for _ in range(count)]


Shape = tuple[int | None, ...] | None | str


def random_shape(r: random.Random) -> Shape:
    ranked = tuple(r.choice([None, 1, 2, 3, 4, 6]) for _ in range(r.randint(0, 4)))
    return r.choice(["scalar", None, ranked, ranked])


def quantized(r: random.Random, shape: Shape, expressed: str) -> str:
    width, signed = r.choice([2, 3, 4, 5, 7, 8, 8, 8, 10, 12, 16, 32]), r.random() < 0.5
    kind = r.random()
    blocks = isinstance(shape, tuple) and shape != () and None not in shape and kind > 0.85
    signed = signed or blocks  # MLIR prints unsigned zero points of blocks as signed
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    bounds = ""
    if r.random() < 0.4:
        low = r.randint(low, high - 1)
        high = r.randint(low + 1, high)
        bounds = f"<{low}:{high}>"

    def pair() -> str:
        zero = r.choice([0, 0, low, high, r.randint(low, high)])
        scale = r.choice(["0.5", "2.0", "3.0e-1", "0.1", "1.25", "0.0078125", "100.0", "0.1234567"])
        return f"{scale}:{zero}" if zero else scale

    head = f"!quant.uniform<{'i' if signed else 'u'}{width}{bounds}:{expressed}"
    if kind < 0.4 or isinstance(shape, str) or shape == ():
        return f"{head}, {pair()}>"
    if blocks:
        assert isinstance(shape, tuple)
        axes = sorted(r.sample(range(len(shape)), r.randint(1, len(shape))))
        dims = [dim or 1 for dim in shape]
        sizes = {a: r.choice([n for n in range(1, dims[a] + 1) if dims[a] % n == 0]) for a in axes}
        counts = [dim // sizes[i] if i in sizes else 1 for i, dim in enumerate(dims)]

        def nested(counts: list[int]) -> str:
            return "{" + ", ".join(nested(counts[1:]) for _ in range(counts[0])) + "}" if counts else pair()

        return f"{head}:{{{', '.join(f'{a}:{n}' for a, n in sizes.items())}}}, {nested(counts)}>"
    axis = r.randrange(len(shape)) if shape is not None else r.randint(0, 3)
    stated = shape[axis] if shape is not None else None
    scales = ", ".join(pair() for _ in range(r.randint(1, 4) if stated is None else int(stated)))
    return f"{head}:{axis}, {{{scales}}}>"


def wrapped(shape: Shape, element: str) -> str:
    if isinstance(shape, str):
        return element
    dims = "*x" if shape is None else "".join(f"{'?' if dim is None else dim}x" for dim in shape)
    return f"tensor<{dims}{element}>"


def _cast(r: random.Random) -> str:
    expressed, shape = r.choice(["f32", "f32", "f16", "bf16", "f64"]), random_shape(r)
    sides = [wrapped(shape, expressed), wrapped(shape, quantized(r, shape, expressed))]
    op = r.choice(["qcast", "dcast"])
    a, b = sides if op == "qcast" else reversed(sides)
    return f"func.func @f(%a: {a}) -> {b} {{\n  %0 = quant.{op} %a : {a} to {b}\n  return %0 : {b}\n}}\n"


def _chain(r: random.Random) -> str:
    shape, expressed = random_shape(r), r.choice(["f32", "f16"])
    kinds = [quantized(r, shape, expressed) for _ in range(2)]
    floats = wrapped(shape, expressed)
    values = [("%a", floats)] + [(f"%q{i}", wrapped(shape, kind)) for i, kind in enumerate(kinds)]
    header = ", ".join(f"{name}: {kind}" for name, kind in values)
    lines = []
    for number in range(r.randint(2, 8)):
        name, kind = r.choice(values[-3:])
        if "!quant" not in kind and kind != floats:
            made = r.choice([other for _, other in values[1:3] if _width(other) == _width(kind)])
            op = "scast"
        elif kind == floats:
            op, made = "qcast", wrapped(shape, r.choice(kinds))
        else:
            op = r.choice(["dcast", "scast"])
            made = floats if op == "dcast" else wrapped(shape, f"i{_width(kind)}")
        lines.append(f"  %{number} = quant.{op} {name} : {kind} to {made}")
        values.append((f"%{number}", made))
    name, kind = values[-1]
    return f"func.func @f({header}) -> {kind} {{\n" + "\n".join(lines) + f"\n  return {name} : {kind}\n}}\n"


def _width(kind: str) -> str:
    found = re.search(r"(?:uniform<[iu]|x?i)(\d+)", kind)
    assert found is not None
    return found[1]


def _judged(r: random.Random) -> str:
    op, shape = r.choice(["qcast", "dcast", "scast"]), random_shape(r)
    other = shape if r.random() < 0.7 else random_shape(r)
    plain = r.choice(["f32", "f16", "f64", "bf16"])
    expressed = plain if r.random() < 0.8 else r.choice(["f32", "f16"])
    kind = quantized(r, other if r.random() < 0.7 else random_shape(r), expressed)
    if op == "scast":
        width = re.match(r"!quant\.uniform<[iu](\d+)", kind)
        assert width is not None
        plain = f"i{width[1]}" if r.random() < 0.75 else r.choice(["i8", "ui8", "f32", "i16", "si8"])
    a, b = wrapped(shape, plain), wrapped(other, kind)
    if op == "dcast" or (op == "scast" and r.random() < 0.5):
        a, b = b, a
    a = b if r.random() < 0.05 else a
    return f"func.func @f(%a: {a}) -> {b} {{\n  %0 = quant.{op} %a : {a} to {b}\n  return %0 : {b}\n}}\n"


def _call(r: random.Random) -> str:
    def some() -> list[str]:
        return [_type(r) for _ in range(r.randint(0, 3))]

    takes, gives = some(), some()
    names = [f"%r#{i}" for i in range(len(gives))] if len(gives) > 1 else ["%r"][: len(gives)]
    head = {0: "", 1: "%r = "}.get(len(gives), f"%r:{len(gives)} = ")
    arguments = ", ".join(f"%a{i}" for i in range(len(takes)))
    arrow = f" -> ({', '.join(gives)})" if gives else ""
    returned = f" {', '.join(names)} : {', '.join(gives)}" if gives else ""
    return (
        f"func.func private @g({', '.join(takes)}){arrow}\n"
        f"func.func @f({', '.join(f'%a{i}: {t}' for i, t in enumerate(takes))}){arrow} {{\n"
        f"  {head}func.call @g({arguments}) : ({', '.join(takes)}) -> ({', '.join(gives)})\n  return{returned}\n}}\n"
    )


def _type(r: random.Random) -> str:
    shape = random_shape(r)
    plain = r.random() < 0.35
    return wrapped(shape, r.choice(["f32", "i8", "i32", "f16"]) if plain else quantized(r, shape, "f32"))


_EVALUATE = """
import json, os, sys
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo
texts = json.load(sys.stdin)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
out = []
for text in texts:
    with ir.Context() as context, ir.Location.unknown():
        _stablehlo.register_dialect(context)
        made = _stablehlo.eval_module(ir.Module.parse(text), [])[0]
        out.append([made[0]] * len(made) if made.is_splat else list(made))
json.dump(out, sys.stdout)
"""


def evaluated(texts: Sequence[str]) -> list[list[float]]:
    """What StableHLO's interpreter makes of functions `main` of constants: the elements of the one result."""
    done = subprocess.run(
        [PYTHON, "-c", _EVALUATE], input=json.dumps(list(texts)), capture_output=True, text=True, check=True
    )
    made: list[list[float]] = json.loads(done.stdout)
    return made
