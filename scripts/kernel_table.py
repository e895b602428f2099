"""The table of kernels from the models that were tried: signatures, their constraints, and their text.

Only weights, biases and operands of casts are listed per axis: whether a kernel that moves or compares stored
integers is right depends on the axes, which a signature does not say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from scripts.kernel_trials import WEIGHTS
from tflq.dialects.declare import Operator, Slot
from tflq.dialects.parameters import FixedScale
from tflq.dialects.tfl import UNIT
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, parameters
from tflq.targets.signature import parse_signature

__all__ = ["Key", "Sample", "holds", "lines_of", "rescaled", "signature_of", "table", "text_of"]

RIGHT = 0.8
"""The share of models that must agree with the float operator: some draw scales at which a kernel's own multiplier is
coarse."""
ENOUGH = 4
"""Fewer models say nothing of a signature."""
FEW = 3
"""Nor do fewer of a bias or of integers, where those of others are enough."""
CASTS = ("dequantize", "quantize")
CANDIDATES = (
    *("no_activation", "operand_scale_below 1", "multiplier_scale 1", "multiplier_scale 65536"),
    *("same_scale", "same_operand_scale"),
)
HEAD = """# The target "kernels": quantized kernels of the interpreter that compute what their parameters say. Measured
# by scripts/make_data.py kernels: do not edit. The language is that of tflq/targets.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One model: whether it runs and agrees with the operator in float, whether the optimized kernels run it, too
    (XNNPACK dies of some depthwise convolutions without a bias), and which constraints it keeps."""

    right: bool
    everywhere: bool
    kept: Mapping[str, bool]


Key = tuple[str, str, str]
"""A signature, with B for the bias and I for the plain integers among the operands, and what these are."""


def table(samples: dict[str, dict[Key, list[Sample]]], shifts: dict[str, dict[str, list[bool]]]) -> str:
    """The text of the table, without limits of zero points and scales (`kernel_limits.narrowed`)."""
    return text_of(lines_of(samples), rescaled(shifts))


def lines_of(samples: dict[str, dict[Key, list[Sample]]]) -> dict[str, list[str]]:
    """The lines of each kernel that has some."""
    listed: dict[str, list[str]] = {}
    for name in sorted(samples):
        kinds: dict[str, dict[Key, list[Sample]]] = defaultdict(dict)
        for key, tried in samples[name].items():
            if "/axis " not in f"{key[0]} " or name in CASTS:
                kinds[_family(key)][key] = tried
        found = {key: text for of in kinds.values() for key, text in _kept(of)}
        if texts := sorted(_merged(found)):
            listed[name] = texts
    return listed


def rescaled(shifts: dict[str, dict[str, list[bool]]]) -> dict[str, list[str]]:
    """The kernels that take other storage by an exact rescale, by kind."""
    return {
        kind: [name for name in sorted(names) if len(names[name]) >= ENOUGH and all(names[name])]
        for kind, names in shifts.items()
    }


def text_of(kernels: Mapping[str, Sequence[str]], rescale: Mapping[str, Sequence[str]]) -> str:
    """The text of the table."""
    lines = [HEAD + '[target]\nname = "kernels"\n\n[kernels]']
    for name, texts in kernels.items():
        if len(texts) == 1:
            lines.append(f'{name} = "{texts[0]}"')
        else:
            lines.append(f"{name} = [\n" + "".join(f'    "{line}",\n' for line in texts) + "]")
    lines.append("\n[rescale]")
    lines += [f"{kind} = [" + ", ".join(f'"{name}"' for name in names) + "]" for kind, names in rescale.items()]
    return "\n".join(lines) + "\n"


def holds(op: Operator) -> dict[str, bool]:
    """Which of the constraints that may be needed an op keeps."""
    fixed = _fixed(op)
    candidates = [*CANDIDATES, *([] if fixed is None else [f"fixed_scale {fixed[0]!r} {fixed[1]}"])]
    return {name: parse_signature(f"...; {name}").broken(op) is None for name in candidates}


def _family(key: Key) -> str:
    """What signatures that differ in bias and integers alone have in common."""
    return re.sub(r"\bi(16|32|64)\b", "I", key[0])


def _kept(kinds: dict[Key, list[Sample]]) -> Iterator[tuple[Key, str]]:
    """Among signatures that differ only in bias and integers, those that are right under the constraints of all.

    The constraints are those under which most is gained. A wrong model that they let through weighs as much as the
    right ones that go with it where the share is as low as may be, and each must gain more than a few models.
    """
    if not any(s.right and s.everywhere for tried in kinds.values() for s in tried):
        return
    names = next(iter(kinds.values()))[0].kept
    best: tuple[float, int, str] | None = None
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            worths = [_worth(tried, chosen) for tried in kinds.values()]
            gained = sum(right for right, worth in worths if worth is not None)
            if gained >= ENOUGH:
                found = (round(sum(worth or 0 for _, worth in worths) - FEW * size, 6), -size, "; ".join(chosen))
                best = found if best is None else max(best, found)
    if best is not None:
        chosen = tuple(best[2].split("; ")) if best[2] else ()
        yield from ((key, best[2]) for key, tried in kinds.items() if _worth(tried, chosen)[1] is not None)


def _worth(tried: Sequence[Sample], names: Sequence[str]) -> tuple[int, float | None]:
    """How many models of a signature are right under constraints, and what it is worth to list it; None: it is not."""
    held = [s.right for s in tried if all(s.kept[name] for name in names)]
    right = sum(held)
    if len(held) < FEW or right < RIGHT * len(held):
        return right, None
    return right, right - RIGHT / (1 - RIGHT) * (len(held) - right)


def _merged(listed: dict[Key, str]) -> Iterator[str]:
    """The lines of signatures: those that differ in the bias alone, or else in the integers, are one."""
    biases: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (text, bias, integers), constraint in listed.items():
        biases[text, integers, constraint].add(bias)
    integral: dict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for (text, integers, constraint), of in biases.items():
        integral[text, constraint, tuple(sorted(of))].add(integers)
    for (text, constraint, kinds), widths in integral.items():
        line, clauses = text, [constraint] * bool(constraint)
        for letter, choices in (("B", kinds), ("I", sorted(widths))):
            given = [choice for choice in choices if choice]
            stands = given[0] if len(given) == 1 else letter
            word = (stands + "?" * ("" in choices)) if given else ""
            line = " ".join(filter(None, (word if found == letter else found for found in line.split())))
            clauses += [f"{letter} = {' '.join(given)}"] * (len(given) > 1)
        yield "; ".join([line, *clauses])


def _fixed(op: Operator) -> tuple[float, int] | None:
    """The scale and zero point that a kernel's result has, as the schema knows them; of a wider result from 0 to 1,
    those of its whole range."""
    fixed = op.trait(FixedScale)
    if fixed is None or not op.result.type.quantized:
        return None
    storage = op.result.type.storage
    if fixed.parameters is UNIT and op.operand(0).type.storage.bits < storage.bits:
        return 2.0**-storage.bits, int(storage.minimum)
    return fixed.parameters.get(storage.name)


def signature_of(op: Operator) -> Key:
    """The element types of an op; other operands that may be left out are of any."""
    bias = next(
        (
            _port(v, symmetric=True, axes=False)
            for s, v in zip(op.operand_slots, op.operands, strict=False)
            if s.name == "bias" and v
        ),
        "",
    )
    required = [v for s, v in zip(op.operand_slots, op.operands, strict=False) if not s.optional and v is not None]
    integers = {_port(v) for v in required if not v.type.quantized and v.type.storage.is_integer}
    one = next(iter(integers)) if len(integers) == 1 else ""
    text = f"{_side(op.operands, op.operand_slots, one)} -> {_side(op.results, op.result_slots, '')}"
    return text, bias, one


def _side(values: Sequence[Value | None], of: Sequence[Slot], integer: str) -> str:
    ports = []
    for i, slot in enumerate(of):
        value = values[i] if i < len(values) else None
        if slot.name == "bias":
            ports.append("B")
        elif slot.optional:
            ports.append("any?")
        elif slot.variadic:
            found = list(dict.fromkeys(_port(v) for v in values[i:] if v is not None))
            ports += (
                [f"{found[0]}*"] if len(found) == 1 else [_port(v) for v in values[i:] if v is not None] or ["any*"]
            )
        elif value is not None:
            port = _port(value, symmetric=slot.name in WEIGHTS)
            ports.append("I" if port == integer else port)
    return " ".join(ports)


def _port(value: Value, *, symmetric: bool = False, axes: bool = True) -> str:
    """symmetric: say so of signed integers, if they are, and (axes) along which axis their scales are."""
    element = value.type.element
    storage = value.type.storage.name
    if not value.type.quantized:
        return storage
    zero = ":0" if symmetric and value.type.storage.signed and not parameters(value.type)[1].any() else ""
    if isinstance(element, UniformQuantizedPerAxisType):
        axis = element.axis if symmetric and axes else ""
        return f"q{storage}/axis{axis}{zero}"
    return f"q{storage}/blocks{zero}" if isinstance(element, UniformQuantizedSubChannelType) else f"q{storage}{zero}"
