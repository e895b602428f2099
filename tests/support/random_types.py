"""Quantized types as text with a fault, beside the valid ones they are made of."""

from __future__ import annotations

import random
import re

from support.mlir_oracle import quantized, random_shape, wrapped

_TOKEN = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+|[<>{}:,]|\w+|!")
_STORAGE = ("i1", "u1", "i0", "i33", "i64", "u32", "u33", "i32", "u8", "i8", "si8", "ui8", "f32", "index", "i24")
_EXPRESSED = ("f32", "f64", "f16", "bf16", "f80", "f128", "tf32", "f8E5M2", "i32", "f8E4M3FN", "index")
_REALS = ("0.0", "-1.0", "1", "1.0e+39", "1.0e-46", "-0.0", "1.0e400", "0x3F800000", "1.e-3", ".5", "65536.0", "inf")
_WHOLE = (
    "-1",
    "0",
    "1",
    "7",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "65536",
    "2147483647",
    "0x7F",
    "1.0",
)
_KINDS = (
    (re.compile(r"[iu]\d+"), _STORAGE),
    (re.compile(r"b?f\d+"), _EXPRESSED),
    (re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?"), _REALS),
    (re.compile(r"-?\d+"), _WHOLE),
    (re.compile(r".*"), tuple("<>{}:,*?")),
)


def random_types(count: int, seed: int) -> list[tuple[str, str]]:
    """Declarations of a function of a valid type, and of the same with a token or two changed."""
    r = random.Random(seed)
    return [_pair(r) for _ in range(count)]


def _pair(r: random.Random) -> tuple[str, str]:
    shape = random_shape(r)
    kind = quantized(r, shape, r.choice(["f32", "f32", "f16", "bf16", "f64"]))
    changed = kind
    for _ in range(r.choice([1, 1, 1, 2])):
        changed = _changed(r, changed)
    valid, other = (f"func.func private @f({wrapped(shape, text)})\n" for text in (kind, changed))
    return valid, other


def _changed(r: random.Random, text: str) -> str:
    tokens = _TOKEN.findall(text.removeprefix("!quant.uniform"))
    place, how = r.randrange(len(tokens)), r.random()
    token = tokens[place]
    if how < 0.2 and len(tokens) > 1:
        tokens.pop(place)
    elif how < 0.3:
        tokens.insert(place, token)
    elif how < 0.4:
        tokens[place : place + 2] = tokens[place : place + 2][::-1]
    else:
        tokens[place] = r.choice(next(others for pattern, others in _KINDS if pattern.fullmatch(token)))
    return "!quant.uniform" + "".join(tokens).replace(",", ", ")
