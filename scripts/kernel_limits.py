"""What kernels of the table refuse beyond types: zero points and scales, measured line by line.

A model that fits a line is run with another zero point of each operand and result, then with other scales: 0,
infinite, and by powers of two less or more. A port that takes only zero point 0 says so (`qi16:0`). A line whose kernel
refuses scales, or dies of them, gets the constraint that tells these models from the ones that run: `positive_scale`,
`operand_scale_from` for scales that are too small, or a bound of `scale_ratio_below` or `multiplier_scale`, the
greatest power of two that no refused model keeps.

Each model runs in a forked process, which the interpreter may take down.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from support.harness import _run

import tflq
from scripts.kernel_ideal import agrees, run
from scripts.kernel_trials import SAMPLES, WEIGHTS, Trial, bias_of, quantized_op, trials
from tflq.dialects.declare import Operator, Slot
from tflq.formats.tflite.writer import write
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, i16
from tflq.targets.signature import Signature, parse_signature

__all__ = ["narrowed"]

Change: TypeAlias = Callable[[ElementType], ElementType]

_MODELS = 2
"""Models of each line."""
_BATCHES = 2
_ZERO = {8: 7, 4: 1}
"""Another zero point, by bits, if it is not the one there is; else its negative."""
_FAR = 60
"""The powers of two within which bounds of scales are looked for."""
_ODD = 1.1
"""A factor that makes a scale no power of two, which int16 kernels of ADD and SUB treat otherwise."""
_SHIFTS = "pot_scale_int16"
_BOUNDS = ("scale_ratio_below", "multiplier_scale")
_LEAST = "operand_scale_from"


def narrowed(kernels: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The lines of each kernel, with the zero points and scales that it takes."""
    found: dict[str, list[str]] = {}
    for name, lines in kernels.items():
        signatures = [parse_signature(line) for line in lines]
        tried = _models(name, signatures)
        found[name] = [_Line(s, tried[s]).narrowed() for s in signatures]
        print(
            name, *(f"\n    {new}" for old, new in zip(lines, found[name], strict=True) if old != new), file=sys.stderr
        )
    return found


def _models(name: str, signatures: Sequence[Signature]) -> dict[Signature, list[Trial]]:
    """Some models that run, of the operator's samples, by the first signature that they fit."""
    found: dict[Signature, list[Trial]] = {signature: [] for signature in signatures}
    for trial in trials(SAMPLES + name, 1):
        signature = _signature_of(trial.model, signatures)
        if signature is None or len(found[signature]) >= _MODELS:
            continue
        short = replace(trial, batches=trial.batches[:_BATCHES])
        if _survives(short):
            found[signature].append(short)
    return found


def _signature_of(model: bytes, signatures: Sequence[Signature]) -> Signature | None:
    """The signature that keeps the operator of a model, as a target would."""
    try:
        op = quantized_op(tflq.read(model))
    except tflq.InvalidModelError:
        return None
    first = None if op is None else next((s for s in signatures if s.fits(op)), None)
    return first if first is not None and op is not None and first.broken(op) is None else None


def _survives(trial: Trial) -> bool:
    """Whether the reference kernels and the optimized ones run a model."""
    child = os.fork()
    if not child:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for resolver in ("BUILTIN_REF", "AUTO"):
                _run(trial.model, trial.batches, resolver)
        except (RuntimeError, ValueError):
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Scales that a kernel refuses: what the constraints bound, there and at the last that it takes."""

    refused: Mapping[str, float]
    taken: Mapping[str, float]


class _Line:
    """One signature and the models that fit it."""

    def __init__(self, signature: Signature, tried: Sequence[Trial]) -> None:
        self.signature = signature
        self.tried = tried

    def narrowed(self) -> str:
        """The signature's text, with what was measured."""
        if not self.tried:
            return self.signature.text
        op = _op(self.tried[0].model)
        text = self.signature.text
        for slots, change in self._refused_zero_points(op):
            text = _symmetric(text, op, slots, change)
        constraints = [c for c in self._constraints(op) if c not in text]
        return "; ".join([text.partition(";")[0].strip(), *constraints, *filter(None, [text.partition("; ")[2]])])

    def _refused_zero_points(self, op: Operator) -> Iterator[tuple[Sequence[Slot], str]]:
        """Ports that take zero point 0 alone: each by itself, or all where parameters must be the same."""
        ports = _ports(op)
        alone = [port for port in ports if self._right([port]) is False]
        if not alone and self._right(ports) is False:
            alone = ports
        if alone:
            yield alone, ":0"

    def _right(self, ports: Sequence[Slot]) -> bool | None:
        """Whether the kernel is right with other zero points of some ports; None if no such model fits the line."""
        answers: list[bool] = []
        for trial in self.tried:
            moved = self._changed(trial, ports, _moved)
            if moved is None:
                continue
            found = run(moved.model, moved.batches) if _survives(moved) else None
            answers.append(found is not None and agrees(found, moved) is not False)
        return any(answers) if answers else None

    def _changed(self, trial: Trial, ports: Sequence[Slot], change: Change) -> Trial | None:
        """A trial with other parameters of some ports; None if the line does not take it."""
        module = tflq.read(trial.model)
        op = quantized_op(module)
        assert op is not None
        before = [value.type.element for value in op.tensors]
        for value in (v for port in ports for v in _quantized(op, port)):
            value.type = value.type.with_element(change(value.type.element))
        if [value.type.element for value in op.tensors] == before:
            return None
        _follow(op)
        model = bytes(write(module))
        return replace(trial, model=model) if _signature_of(model, [self.signature]) else None

    def _constraints(self, op: Operator) -> Iterator[str]:
        """Constraints on scales that keep models from the kernel that it refuses."""
        trial, ports = self.tried[0], [port for port in _ports(op) if port.name != "bias"]
        groups = [*([port] for port in ports), ports]
        ends = [self._changed(trial, group, _scaled(by)) for group in groups for by in (0.0, math.inf)]
        if not all(_survives(end) for end in ends if end is not None):
            yield "positive_scale"
        shifted = _shifted(trial)
        if shifted is not None and not _survives(shifted):
            yield "power_of_two_shifts"
        refusals = [r for group in groups for sign in (-1, 1) if (r := self._bound(trial, group, sign)) is not None]
        less = [r for r in refusals if r.refused[_LEAST] < r.taken[_LEAST]]
        if less:
            yield f"{_LEAST} {2.0 ** math.ceil(math.log2(max(r.taken[_LEAST] for r in less))):.17g}"
        if more := [r for r in refusals if r not in less]:
            yield _explained(more)

    def _bound(self, trial: Trial, ports: Sequence[Slot], sign: int) -> _Refusal | None:
        """Where the kernel begins to refuse scales that become less or more; None if it takes all of them."""
        good, bad = 0, _FAR
        far = self._changed(trial, ports, _scaled(_ODD * 2.0 ** (sign * bad)))
        if far is None or _survives(far):
            return None
        while bad - good > 1:
            middle = (good + bad) // 2
            changed = self._changed(trial, ports, _scaled(_ODD * 2.0 ** (sign * middle)))
            good, bad = (middle, bad) if changed is None or _survives(changed) else (good, middle)
        found = [
            _measures(self._changed(trial, ports, _scaled(_ODD * 2.0 ** (sign * n))) or trial) for n in (bad, good)
        ]
        return _Refusal(*found)


def _follow(op: Operator) -> None:
    """Gives a bias the scale of input times weights."""
    _, bias = bias_of(op)
    if bias is None or not bias.type.quantized:
        return
    named = dict(zip((slot.name for slot in op.operand_slots), op.operands, strict=False))
    weights = next(named[name] for name in WEIGHTS if name in named)
    data = named["input"]
    assert data is not None
    assert weights is not None
    with np.errstate(all="ignore"):
        scales = _scales(data) * _scales(weights)
    element = bias.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        scales = np.resize(scales, element.scales.shape)
        element = UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, element.zero_points)
    elif isinstance(element, UniformQuantizedType):
        element = element.replace(scale=float(np.float32(scales[0])))
    bias.type = bias.type.with_element(element)


def _op(model: bytes) -> Operator:
    op = quantized_op(tflq.read(model))
    assert op is not None
    return op


def _ports(op: Operator) -> list[Slot]:
    """The operands and results that are quantized."""
    return [slot for slot in (*op.operand_slots, *op.result_slots) if _quantized(op, slot)]


def _quantized(op: Operator, slot: Slot) -> list[Value]:
    return [v for v in slot.values(op) if v.type.quantized]


def _moved(element: ElementType) -> ElementType:
    """Another zero point."""
    if isinstance(element, UniformQuantizedType):
        zero = _ZERO.get(element.storage.bits, 100)
        return element.replace(zero_point=zero if zero != element.zero_point else -zero % 128)
    if isinstance(element, UniformQuantizedPerAxisType):
        zero = _ZERO.get(element.storage.bits, 100)
        return UniformQuantizedPerAxisType.of(element.storage, element.axis, element.scales, zero)
    return element


def _scaled(factor: float) -> Change:
    """Scales times a factor; 0 and infinity are scales themselves."""

    def change(element: ElementType) -> ElementType:
        with np.errstate(all="ignore"):
            if isinstance(element, UniformQuantizedType):
                return element.replace(scale=float(np.float32(element.scale) * np.float32(factor)))
            if isinstance(element, UniformQuantizedPerAxisType):
                scales = (element.scales * np.float32(factor)).astype(np.float32)
                return UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, element.zero_points)
        return element

    return change


def _shifted(trial: Trial) -> Trial | None:
    """The model of an operator that shifts int16 of power-of-two scales, with a result of twice the operands' scale;
    None of another operator."""
    module = tflq.read(trial.model)
    op = quantized_op(module)
    assert op is not None
    if _SHIFTS not in op.attributes or any(v.type.storage != i16 for v in op.tensors):
        return None
    op.attributes = {**op.attributes, _SHIFTS: True}
    for value in op.tensors:
        assert isinstance(value.type.element, UniformQuantizedType)
        scale = 0.125 if value in op.results else 0.0625
        value.type = value.type.with_element(value.type.element.replace(scale=scale))
    return replace(trial, model=bytes(write(module)))


def _measures(trial: Trial) -> dict[str, float]:
    """What the constraints bound: the greatest operand's scale over the result's, the product of all over it, and the
    least operand's scale."""
    op = _op(trial.model)
    operands, results = (
        [_scales(v) for v in vs if v is not None and v.type.quantized] for vs in (op.operands, op.results)
    )
    least = min((float(s.min()) for s in results), default=1.0)
    return {
        "scale_ratio_below": max((float(s.max()) for s in operands), default=1.0) / least,
        "multiplier_scale": math.prod(float(s.max()) for s in operands) / least,
        _LEAST: min((float(s.min()) for s in operands), default=1.0),
    }


def _scales(value: Value) -> np.ndarray:
    element = value.type.element
    return np.ravel(np.asarray(getattr(element, "scales", getattr(element, "scale", 1.0)), np.float64))


def _explained(refusals: Sequence[_Refusal]) -> str:
    """The bound that best tells refused scales from those that run."""

    def gap(name: str) -> float:
        return min(r.refused[name] for r in refusals) / max(r.taken[name] for r in refusals)

    best = max(_BOUNDS, key=gap)
    return f"{best} {2.0 ** math.floor(math.log2(min(r.refused[best] for r in refusals))):g}"


def _symmetric(text: str, op: Operator, slots: Sequence[Slot], zero: str) -> str:
    """A signature's text whose words for some ports ask for a zero point."""
    types, semicolon, rest = text.partition(";")
    sides = []
    for words, of in zip(types.split("->"), (op.operand_slots, op.result_slots), strict=True):
        ported = zip(words.split(), of, strict=False)
        sides.append(" ".join(_with_zero(word, zero) if slot in slots else word for word, slot in ported))
    return " -> ".join(sides) + semicolon + rest


def _with_zero(word: str, zero: str) -> str:
    bare = word.rstrip("?*")
    return word if not bare.startswith("q") or ":" in bare else bare + zero + word[len(bare) :]
