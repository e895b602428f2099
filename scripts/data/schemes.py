"""The targets of quantization schemes, rules/int8.toml, int16x8.toml and uint8.toml, from rules/kernels.toml.

`kernels.toml` says what each kernel computes right, in whichever order. A scheme says what quantization should choose:
one storage of activations, with that of weights and biases, and what TensorFlow Lite's specification of quantization
asks for beyond the kernels: symmetric int16, weights from -127 on, biases at the scale of input times weights, one
scale of a TANH's results. Of a kernel's lines those on the scheme's storage are taken. A kernel without one is left
out, which the file says with its reason, but for those that TensorFlow's converter takes and that do right by a
network: RSQRT and LOG of int8, which stop at a negative value or give nothing of use for it, on parameters that have
none; SUM of int8, of which the interpreter's reference kernel alone is wrong; RESIZE_BILINEAR of int16, whose weights
of neighbours have 10 bits. The last line of CONV_2D and of FULLY_CONNECTED is for operators that ask for weights of 4
bits: these kernels unpack them, and then do as with 8.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path

from tflq.base.files import resource
from tflq.dialects.tfl import op_name
from tflq.ir.ops import op_class
from tflq.targets.slots import split

ROOT = Path(__file__).resolve().parents[2]
_ACCUMULATES = "multiplier_accumulator_scale"
_WEIGHTS = ("filter", "weights")
_NARROW = {"conv_2d": "/axis0:0", "fully_connected": "/axis0:0"}
"""Kernels that take weights of 4 bits, and what their port then has besides the storage."""
_PORT = re.compile(r"q(?P<storage>[a-z]+\d+)(?P<rest>.*)")


@dataclass(frozen=True)
class Scheme:
    """The storage of activations and of weights; for each form of these the ports, the first choice first, and that of
    the bias. `symmetric`: activations have zero point 0. `fixed`: what results have by the specification, by kernel.
    `further`: kernels that compute right only on some parameters, and these."""

    name: str
    what: str
    activations: str
    weight: str
    weights: Mapping[str, tuple[Sequence[str], str]]
    symmetric: bool
    fixed: Mapping[str, str]
    further: Mapping[str, str] = field(default_factory=dict)


def _axes(storage: str, bias: str) -> dict[str, tuple[Sequence[str], str]]:
    """Weights of zero point 0 of one scale per channel, or of one; ports of those that may be -128 stand behind."""
    narrow = f"q{storage}<-127:127>"
    axes = {f"/axis{n}:0": ((f"{narrow}/axis{n}:0", f"q{storage}/axis{n}:0"), f"q{bias}/axis0:0") for n in (0, 3)}
    return {**axes, ":0": ((f"{narrow}:0", f"q{storage}:0"), f"q{bias}:0")}


SCHEMES = (
    Scheme(
        "int8",
        "int8 activations and weights, weights of one scale per channel",
        "i8",
        "i8",
        _axes("i8", "i32"),
        symmetric=False,
        fixed={"tanh": "fixed_scale 0.0078125 0"},
        further={
            "log": "qi8:-128 -> qi8",
            "rsqrt": "qi8:-128 -> qi8",
            "sum": "qi8 i32 -> qi8; positive_scale",
        },
    ),
    Scheme(
        "int16x8",
        "int16 activations of zero point 0, int8 weights of one scale per channel",
        "i16",
        "i8",
        _axes("i8", "i64"),
        symmetric=True,
        fixed={},
        further={"resize_bilinear": "qi16:0 i32 -> qi16:0; same_scale"},
    ),
    Scheme(
        "uint8",
        "uint8 activations and weights of one scale",
        "ui8",
        "ui8",
        {"": (("qui8",), "qi32:0")},
        symmetric=False,
        fixed={"tanh": "fixed_scale 0.0078125 128"},
    ),
)


def page(scheme: Scheme) -> str:
    """The text of a scheme's file."""
    measured = tomllib.loads(Path(resource("rules/kernels.toml")).read_text())["kernels"]
    listed, left_out = {}, {}
    for kernel, said in measured.items():
        texts = [said] if isinstance(said, str) else said
        lines = list(dict.fromkeys(chain.from_iterable(_lines(scheme, kernel, text) for text in texts)))
        if lines:
            lines += _of_4_bits(kernel, lines)
            listed[kernel] = lines
        elif kernel not in scheme.further:
            left_out[kernel] = f"it computes right only on {_storages(texts)}"
    listed |= {kernel: [line] for kernel, line in scheme.further.items()}
    head = [
        f"# The scheme {scheme.name}: {scheme.what}.",
        "# Made of rules/kernels.toml by scripts/make_data.py schemes: do not edit.",
        "#",
        "# Left out:",
        *(f"#   {kernel}: {reason}" for kernel, reason in left_out.items()),
        "[target]",
        f'name = "{scheme.name}"',
        "",
        "[kernels]",
    ]
    return "\n".join([*head, *(_entry(kernel, lines) for kernel, lines in sorted(listed.items()))]) + "\n"


def _of_4_bits(kernel: str, lines: Sequence[str]) -> list[str]:
    """The lines of a kernel with weights of 4 bits, from those with weights of 8; none if it does not take them."""
    word = f" qi8{_NARROW.get(kernel)} "
    return [line.replace(word, word.replace("8", "4")) for line in lines if word in line]


def _entry(kernel: str, lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return f'{kernel} = "{lines[0]}"'
    return "\n".join([f"{kernel} = [", *(f'    "{line}",' for line in lines), "]"])


def _storages(texts: Sequence[str]) -> str:
    """The storages of kernels, in words."""
    found = (_PORT.fullmatch(word.rstrip("?*")) for text in texts for word in text.replace(";", " ").split())
    return ", ".join(sorted({each["storage"] for each in found if each}))


def _lines(scheme: Scheme, kernel: str, text: str) -> Iterator[str]:
    """A line of the measured table, as lines of a scheme; none if it is of other storage."""
    parts = split(text)
    named = {name: list(ports) for name, ports in parts.named}
    declared = op_class(op_name(kernel))
    assert declared is not None
    names = [slot.name for slot in declared.operand_slots]
    clauses = list(parts.clauses)
    right = [_activation(scheme, word) for word in parts.results or []]
    if "bias" not in names:
        clauses += [scheme.fixed[kernel]] if kernel in scheme.fixed else []
        left = [
            word if name == "alpha" and _is_weight(scheme, word) else _activation(scheme, word)
            for name, word in zip_longest(names[: len(parts.operands)], parts.operands)
        ]
        if None not in (*left, *right):
            yield _line(left, right, clauses, named)
        return
    bounds = [clause.partition(" ")[2] for clause in clauses if clause.startswith("multiplier_scale")]
    clauses = [clause for clause in clauses if not clause.startswith("multiplier_scale")]
    clauses.append(" ".join([_ACCUMULATES, *bounds]))
    of_weights, of_bias = next(places for name in _WEIGHTS if (places := _places(names, name)))
    ports, bias = _of_weights(scheme, parts.operands[of_weights])
    operands = list(parts.operands)
    if of_bias < len(operands):
        word, many = operands[of_bias].removesuffix("?"), "?" * operands[of_bias].endswith("?")
        if not _has(named.pop(word, [word]), bias):
            return
        operands[of_bias] = bias + many
    for port in ports:
        left = [_activation(scheme, word) for word in operands]
        left[of_weights : of_weights + 1], left[of_bias:] = [port], operands[of_bias:]
        if None not in (*left, *right):
            yield _line(left, right, clauses, named)


def _places(names: Sequence[str], weights: str) -> tuple[int, int] | None:
    return (names.index(weights), names.index("bias")) if weights in names else None


def _is_weight(scheme: Scheme, word: str) -> bool:
    """Whether a port has the storage of a scheme's weights, and one scale."""
    found = _PORT.fullmatch(word)
    return found is not None and not found["rest"] and found["storage"] == scheme.weight


def _of_weights(scheme: Scheme, word: str) -> tuple[Sequence[str], str]:
    """The ports of weights that a scheme has for a measured one, and that of the bias; none if it has no such
    weights."""
    found = _PORT.fullmatch(word)
    if found is None or found["storage"] != scheme.weight:
        return (), ""
    return scheme.weights.get(found["rest"], ((), ""))


def _activation(scheme: Scheme, word: str) -> str | None:
    """A word of a side in a scheme; None if it is a port of other storage."""
    found = _PORT.fullmatch(word.rstrip("?*"))
    if found is None:
        return word
    if found["storage"] != scheme.activations:
        return None
    many = word[len(word.rstrip("?*")) :]
    zero = ":0" if scheme.symmetric and not found["rest"] else ""
    return f"{word.removesuffix(many)}{zero}{many}"


def _has(ports: Sequence[str], bias: str) -> bool:
    """Whether a measured port takes a bias."""
    wide = bias.replace("axis0", "axis")
    return any(port in (bias, wide) for port in ports)


def _line(
    left: Sequence[str | None],
    right: Sequence[str | None],
    clauses: Sequence[str],
    named: Mapping[str, Sequence[str]],
) -> str:
    sides = " -> ".join(" ".join(filter(None, side)) for side in (left, right))
    return "; ".join([sides, *clauses, *(f"{name} = {' '.join(ports)}" for name, ports in named.items())])


def main(_: Sequence[str] = ()) -> None:
    """Writes the file of each scheme."""
    for scheme in SCHEMES:
        (ROOT / "rules" / f"{scheme.name}.toml").write_text(page(scheme), encoding="utf-8")
