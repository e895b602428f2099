"""Rebuild `rules/kernels.toml`: which quantized kernels the interpreter gets right, measured.

    python scripts/make_kernels.py [--count 80] [--operator NAME]

The random one-operator models of tests/matrix run in the interpreter, in a child process that may die, with the
reference kernels and with the optimized ones. A signature (builtin, element types) is listed if every model of it that
keeps some constraint runs, and its results are those of the operator in float between DEQUANTIZE and QUANTIZE, but for
rounding inside the kernel. It needs a constraint if the models that break it are
wrong and the others right.

`unsigned` and `uniform`: the kernels whose uint8 and per-axis models (with equal scales) give the same results after
the exact rescale to int8 and per-layer, in every model.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from harness import edge_inputs, interpret  # noqa: E402
from matrix import GENERATORS  # noqa: E402
from matrix.draw import Case  # noqa: E402
from matrix.run import case_of  # noqa: E402

import tflq  # noqa: E402
from tflq.coverage import samples as coverage_samples  # noqa: E402
from tflq.flatbuffer.writer import write  # noqa: E402
from tflq.ir.core import Module, Op, Value  # noqa: E402
from tflq.ir.dialects import Signature, Slot, declaration, op_names  # noqa: E402
from tflq.ir.forms import KEPT  # noqa: E402
from tflq.ir.parameters import parameters  # noqa: E402
from tflq.ir.types import (  # noqa: E402
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    ui8,
)
from tflq.legalize import fallback  # noqa: E402
from tflq.legalize.rule import RULES  # noqa: E402
from tflq.pipelines import to_tflite  # noqa: E402
from tflq.targets import INTEGER, Target, Verdict  # noqa: E402
from tflq.targets.constraints import CONSTRAINTS  # noqa: E402

RIGHT = 0.8
"""The share of models that must agree with the float operator: some draw scales at which a kernel's own multiplier is
coarse."""
ENOUGH = 4
"""Fewer models say nothing of a signature."""
COUNTS = {8: 2, 16: 40, 32: 1 << 16}
"""How far rounding inside a kernel may lead, by bits of the result."""
WEIGHTS = ("filter", "weights")
CANDIDATES: tuple[tuple[str, ...], ...] = (("operand_scale_below", "1"), ("same_scale",), ("same_operand_scale",))
"""Tried in turn on the models that keep those chosen before."""
HEAD = """# The target "kernels": quantized kernels of the interpreter that compute what their parameters say. Measured
# by scripts/make_kernels.py: do not edit. The language is that of tflq/targets.
"""


@dataclass
class Sample:
    """One model: whether it runs and agrees with the operator in float, and whether the optimized kernels run it, too
    (XNNPACK dies of some depthwise convolutions without a bias)."""

    op: Op
    right: bool
    everywhere: bool = False


class _Probe(Target):
    """A target that has every kernel, but on int8 and per layer only, with weights of zero point 0."""

    def judge(self, op: Op) -> Verdict:
        bad = any(
            v.type.quantized and (v.type.storage == ui8 or isinstance(v.type.element, UniformQuantizedPerAxisType))
            for v in op.values
        )
        return Verdict(not bad and not any(parameters(w.type)[1].any() for w in _weights(op)), "")


def _weights(op: Op) -> list[Value]:
    """The quantized weights of an op."""
    slots = zip(_slots(op).operands, op.operands, strict=False)
    return [v for slot, v in slots if v is not None and v.type.quantized and slot.name in WEIGHTS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=80, help="models of each generator")
    parser.add_argument("--operator", default="", help="only generators whose name contains this, and print the table")
    parser.add_argument("--partial", type=Path, help="write the table here after each generator")
    a = parser.parse_args()
    samples: dict[str, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    shifts: dict[str, dict[str, list[bool]]] = {"unsigned": defaultdict(list), "uniform": defaultdict(list)}
    for name in (n for n in GENERATORS if a.operator in n):
        for number in range(a.count):
            _sample(case_of(name, number), samples, shifts)
        print(name, file=sys.stderr, flush=True)
        if (checkpoint := a.partial) is not None:
            checkpoint.write_text(_table(samples, shifts))
    for key, model in coverage_samples():
        if a.operator in key:
            _sample(Case(model, edge_inputs(tflq.read(model).main.inputs), key), samples, shifts)
    text = _table(samples, shifts)
    if a.operator:
        print(text)
    else:
        (ROOT / "rules" / "kernels.toml").write_text(text)
    return 0


def _sample(case: Case, samples: dict[str, dict[str, list[Sample]]], shifts: dict[str, dict[str, list[bool]]]) -> None:
    try:
        module = tflq.read(case.model)
    except tflq.InvalidModelError:  # some generators draw what no file may hold
        return
    ops = [op for op in module.ops() if any(v.type.quantized for v in op.values)]
    if not module.main.inputs or len(ops) != 1 or len(module.functions) != 1 or ops[0].name in KEPT:
        return
    (op,) = ops
    name = op.name.removeprefix("tfl.")
    try:
        found = interpret(case.model, case.batches)
    except RuntimeError:
        samples[name][_signature(op)].append(Sample(op, False))
        return
    try:
        interpret(case.model, case.batches, "AUTO")
        everywhere = True
    except RuntimeError:
        everywhere = False
    samples[name][_signature(op)].append(Sample(op, _agrees(op, found, _in_float(case), module), everywhere))
    answers = {}
    if any(v.type.quantized and v.type.storage == ui8 for v in op.values):
        answers["unsigned"] = _survives(_symmetric(case.model), case, _probe("unsigned", name))
    if any(isinstance(v.type.element, UniformQuantizedPerAxisType) for v in op.values):
        answers["uniform"] = _survives(_equal_scales(case.model), case, _probe("uniform", name))
    for kind, answer in answers.items():
        if answer is not None:
            shifts[kind][name].append(answer)


def _probe(kind: str, name: str) -> Target:
    """A target on which a kernel takes other storage by a rescale."""
    chosen = {kind: frozenset({name})}
    none: frozenset[str] = frozenset()
    return _Probe("probe", {name: ()}, unsigned=chosen.get("unsigned", none), uniform=chosen.get("uniform", none))


def _survives(model: bytes, case: Case, target: Target) -> bool | None:
    """Whether the model gives the same on int8 or per-layer kernels; None if it does not come to them."""
    try:
        want = interpret(model, case.batches)
        module, report = to_tflite(tflq.read(model), mac="integer", fallback=True, real_semantics=False, kernels=target)
        if report.counts["kept"] != len(report.rows):
            return None
        got = interpret(bytes(write(module)), case.batches)
    except (RuntimeError, tflq.TflqError):
        return False
    return all(np.array_equal(w, g) for ws, gs in zip(want, got, strict=True) for w, g in zip(ws, gs, strict=True))


def _symmetric(model: bytes) -> bytes:
    """The model with uint8 weights of zero point 128."""
    module = tflq.read(model)
    for weights in (w for op in module.ops() for w in _weights(op)):
        element = weights.type.element
        if isinstance(element, UniformQuantizedType) and element.storage == ui8:
            weights.type = weights.type.with_element(replace(element, zero_point=128))
    return bytes(write(module))


def _equal_scales(model: bytes) -> bytes:
    """The model with the first scale and zero point of each per-axis tensor for all of its indices."""
    module = tflq.read(model)
    for function in module.functions:
        for value in function.values():
            element = value.type.element
            if isinstance(element, UniformQuantizedPerAxisType):
                scales = np.full_like(element.scales, element.scales[0])
                zero = int(element.zero_points[0])
                of = UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, zero)
                value.type = value.type.with_element(of)
    return bytes(write(module))


def _in_float(case: Case) -> list[list[np.ndarray]] | None:
    """Results of the operator in float, between casts."""
    rules, named = dict(RULES), fallback._NOT_FINITE
    RULES.clear()
    fallback._NOT_FINITE = frozenset(op_names("tfl"))  # QUANTIZE wraps what is far out of range
    try:
        module, _ = to_tflite(
            tflq.read(case.model), mac="integer", fallback=True, real_semantics=False, kernels=INTEGER
        )
        return interpret(bytes(write(module)), case.batches)
    except (RuntimeError, tflq.TflqError):
        return None
    finally:
        RULES.update(rules)
        fallback._NOT_FINITE = named


def _agrees(op: Op, found: list[list[np.ndarray]], ideal: list[list[np.ndarray]] | None, module: Module) -> bool:
    """Whether nearly all elements are as near to the float operator's as rounding inside the kernel explains."""
    if op.name in ("tfl.quantize", "tfl.dequantize"):
        return True  # which the operator in float has around it
    if ideal is None:
        return False
    for ws, gs in zip(ideal, found, strict=True):
        for value, w, g in zip(module.main.outputs, ws, gs, strict=True):
            if w.shape != g.shape:
                return False
            if w.dtype.kind not in "iu" or not value.type.quantized:
                if not np.allclose(w.astype(np.float64), g.astype(np.float64), rtol=1e-3, atol=1e-3):
                    return False
                continue
            storage = value.type.storage
            far = np.abs(w.astype(np.int64) - g.astype(np.int64)) > COUNTS.get(storage.bits, 2)
            if far.size and far.mean() > 0.02:
                return False
    return True


def _table(samples: dict[str, dict[str, list[Sample]]], shifts: dict[str, dict[str, list[bool]]]) -> str:
    lines = [HEAD + '[target]\nname = "kernels"\n\n[kernels]']
    for name in sorted(samples):
        found = []
        for signature in sorted(samples[name]):
            constraint = _constraint(samples[name][signature])
            if constraint is not None:
                found.append(signature + (constraint and f"; {constraint}"))
        if len(found) == 1:
            lines.append(f'{name} = "{found[0]}"')
        elif found:
            lines.append(f"{name} = [\n" + "".join(f'    "{line}",\n' for line in found) + "]")
    lines.append("\n[rescale]")
    for key, names in shifts.items():
        lines.append(
            f"{key} = [" + ", ".join(f'"{n}"' for n in sorted(names) if len(names[n]) >= ENOUGH and all(names[n])) + "]"
        )
    return "\n".join(lines) + "\n"


def _constraint(samples: list[Sample]) -> str | None:
    """The constraints without which models are wrong, "" if they are right without; None if they are wrong anyway."""
    if len(samples) < ENOUGH or not any(s.right and s.everywhere for s in samples):
        return None
    chosen = []
    for name, *words in CANDIDATES:
        entry = CONSTRAINTS[name]
        kept = [entry.function(s.op, *entry.parse(words)) is None for s in samples]
        held = [s for s, k in zip(samples, kept, strict=True) if k]
        broken = [s.right for s, k in zip(samples, kept, strict=True) if not k]
        if held and broken and np.mean([s.right for s in held]) >= RIGHT > np.mean(broken):
            chosen.append(" ".join((name, *words)))
            samples = held
    return "; ".join(chosen) if np.mean([s.right for s in samples]) >= RIGHT else None


def _signature(op: Op) -> str:
    """The element types of an op; indices and operands that may be left out are of any."""
    side = _slots(op)
    return f"{_side(op.operands, side.operands)} -> {_side(op.results, side.results)}"


def _slots(op: Op) -> Signature:
    declared = declaration(op.name)
    assert declared is not None
    (side,) = declared.signatures
    return side


def _side(values: Sequence[Value | None], slots: Sequence[Slot]) -> str:
    ports = []
    for i, slot in enumerate(slots):
        value = values[i] if i < len(values) else None
        if slot.name == "bias":
            ports += [_port(value, symmetric=True)] if value is not None else []
        elif slot.optional:
            ports.append("any?")
        elif slot.variadic:
            ports.append(f"{_port(value)}*" if value is not None else "any*")
        elif value is not None:
            plain = not value.type.quantized and value.type.storage.is_integer
            ports.append("plain" if plain else _port(value, symmetric=slot.name in WEIGHTS))
    return " ".join(ports)


def _port(value: Value, *, symmetric: bool = False) -> str:
    """symmetric: say so of signed integers, if they are."""
    element = value.type.element
    storage = value.type.storage.name
    if not value.type.quantized:
        return storage
    zero = ":0" if symmetric and value.type.storage.signed and not parameters(value.type)[1].any() else ""
    if isinstance(element, UniformQuantizedPerAxisType):
        return f"q{storage}/axis{element.axis}{zero}"
    return f"q{storage}/blocks{zero}" if isinstance(element, UniformQuantizedSubChannelType) else f"q{storage}{zero}"


if __name__ == "__main__":
    sys.exit(main())
