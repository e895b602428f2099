"""Plants faults into C that `tflq convert` has written, one at a time, and counts how many `tflq verify` finds.

    scripts/c_faults.py MODEL... [--count 500] [--inputs 4] [--cc "gcc -O0"] [--seed 1]

A fault changes a multiplier by 2^16 (one of 16 bits by 1), a shift or a zero point by 1, a bound inwards by 1, or one
weight of int8: the kinds in turn, at a random place. The source without faults is compared with the model, and outputs
of those with one with its outputs: it compiles faster than an interpreter starts. Faults that these do not show are
verified as users do, which compares what is within, too. A fault that nothing shows is listed. None is left out of the
count, though some change no result: LEAKY_RELU makes the same of the two lowest levels, so that a bound is either.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

import tflq

_TERM: Final = r"[^(),]*(?:\([^()]*\))?[^(),]*"
_SCALE: Final = re.compile(rf"scale_\w+\({_TERM}, ([^,()]+), ([^,()]+)\)(?: [+-] (\d+))?")
_OFFSET: Final = re.compile(r"\(int16_t\)\(\w+\[[^]]*\] [+-] (\d+)\)|acc\[j\] \+= \w+\[j\] [+-] (\d+);")
_CLAMP: Final = re.compile(r"clamp32\((?:[^;]*), \(?-?(\d+)\)?, \(?-?(\d+)\)?\)")
_ARRAY: Final = re.compile(r"static const (int8_t|int16_t|int32_t) (\w+)\[\d+\] \w+ = \{([^}]*)\};")
_WEIGHTS: Final = re.compile(r"(?:dot\d+\([^;]*|\(int16_t\)\(|= )(\w+_c\d+)(?: \+|\[)")
KINDS: Final = ("multiplier", "shift", "zero point", "weight", "bound")


class Fault(NamedTuple):
    """A number in a source, and another one in its place."""

    kind: str
    start: int
    end: int
    number: str


def numbers(text: str, arrays: dict[str, tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of the numbers that an argument is: itself, or the elements of an array."""
    argument = text[start:end]
    name, _, index = argument.partition("[")
    if argument.strip().isdigit():
        yield start, end
    elif name in arrays and "n - 1" not in index:  # means of windows of all sizes, of which some occur
        first, last = arrays[name]
        yield from ((first + m.start(), first + m.end()) for m in re.finditer(r"-?\d+", text[first:last]))


def places(text: str) -> dict[str, list[tuple[int, int]]]:
    """The places of numbers, by the kind of fault."""
    known: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
    arrays = {m[2]: m.span(3) for m in _ARRAY.finditer(text)}
    bytes_ = {m[2] for m in _ARRAY.finditer(text) if m[1] == "int8_t"}
    body = text.index("_is_supported")
    scales = [m for m in _SCALE.finditer(text, body) if not m[1].startswith(("int32_t", "int64_t"))]
    for m in scales:
        known["multiplier"] += numbers(text, arrays, *m.span(1))
        known["shift"] += numbers(text, arrays, *m.span(2))
        known["zero point"] += [m.span(3)] if m[3] else []
    known["zero point"] += [m.span(at) for m in _OFFSET.finditer(text, body) for at in (1, 2) if m[at]]
    known["bound"] = [m.span(at) for m in _CLAMP.finditer(text, body) for at in (1, 2)]
    for name in dict.fromkeys(m[1] for m in _WEIGHTS.finditer(text, body)):
        if name in bytes_ and not any(name in m[0] for m in scales):
            known["weight"] += [
                (arrays[name][0] + m.start(), arrays[name][0] + m.end())
                for m in re.finditer(r"-?\d+", text[slice(*arrays[name])])
            ]
    return known


def fault(text: str, kind: str, place: tuple[int, int], rng: random.Random) -> Fault:
    before = int(text[slice(*place)])
    if kind == "multiplier":
        step = 1 if before < 1 << 15 else 1 << 16
        after = before + (step if before < 1 << 30 else -step)
    elif kind == "weight":
        after = rng.choice([n for n in range(-127, 128) if n != before])
    elif kind == "bound":
        after = before - 1 if before > 0 else 1
    else:
        after = before + rng.choice((-1, 1))
    return Fault(kind, *place, str(abs(after) if kind in ("zero point", "bound") else after))


def shows(original: Path, source: Path, options: argparse.Namespace) -> bool:
    """Whether a comparison with the original is not equal."""
    return not tflq.verify(original, source, seeds=options.inputs, interface=False, cc=options.cc)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--inputs", type=int, default=4)
    parser.add_argument("--cc", default="gcc -O0")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311
    planted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    within: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for at, model in enumerate(options.models):
            source = Path(folder, f"m{at}.c")
            tflq.convert(model, source, choices={"data": "inline"})
            Path(folder, f"bad{at}.h").write_text(source.with_suffix(".h").read_text())
            texts[model] = source, source.read_text()
            if shows(model, source, options):
                raise SystemExit(f"{model} differs without a fault")
        kinds = cycle(KINDS)
        for _ in range(options.count):
            model = rng.choice(options.models)
            source, text = texts[model]
            known = places(text)
            kind = next(kind for kind in kinds if known[kind])
            each = fault(text, kind, rng.choice(known[kind]), rng)
            bad = source.with_name(source.name.replace("m", "bad"))
            bad.write_text(text[: each.start] + each.number + text[each.end :])
            planted[kind] += 1
            if shows(source, bad, options):
                seen[kind] += 1
            elif shows(model, bad, options):
                within[kind] += 1
            else:
                line = text[text.rfind("\n", 0, each.start) + 1 : text.find("\n", each.end)]
                print(f"not found: {model.name}: {kind} {text[each.start : each.end]} -> {each.number}: {line[:160]}")
    for kind in KINDS:
        print(f"{kind:12} {planted[kind]:4} planted, {seen[kind]:4} in outputs, {within[kind]:4} within alone")
    total, shown = planted.total(), seen.total()
    every = shown + within.total()
    print(f"{shown} of {total} ({shown / total:.1%}) in outputs, {every} ({every / total:.1%}) by verify")


if __name__ == "__main__":
    main()
