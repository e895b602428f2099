"""The costs of running the result of a conversion: size, memory, and whether an interpreter runs it more slowly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tflq.analysis.arena import Arena, arena_of
from tflq.conversion.report import Row
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.formats.options import Options
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, ui8
from tflq.transforms.pass_manager import Decisions, SourceFunctions

_PRODUCTS: Final = (Conv2D, DepthwiseConv2D, FullyConnected)
"""The operators that `mac` is about. Every interpreter has 8-bit kernels for them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of running the result of a conversion: `Conversion.cost`.

    Attributes:
        bytes_in: Size of the source.
        bytes_out: Size of the result's files together.
        arena_in: Memory for activations of the part of the source that was converted, at the shapes it was converted
            for. None for TOSA. Its `bytes` are None if only a run can tell.
        arena: The same for the result: `Conversion.arena`.
        slower: A sentence that says why a TFLite interpreter is expected to run the result more slowly than the
            original, because plain operators replace 8-bit kernels. Empty otherwise. (16-bit kernels are slow
            themselves.)
        instead: A sentence that says what to use in that case.

    Example:
        ```python
        cost = tflq.convert("in.tflite").cost
        print(cost.arena_ratio, cost.slower, cost.instead)
        ```
    """

    bytes_in: int
    bytes_out: int
    arena_in: Arena | None = None
    arena: Arena | None = None
    slower: str = ""
    instead: str = ""

    @property
    def file_ratio(self) -> float | None:
        """Size of the files divided by that of the source. None if the source has no bytes."""
        return self.bytes_out / self.bytes_in if self.bytes_in else None

    @property
    def arenas(self) -> tuple[int, int] | None:
        """Bytes of the arena before and after. None if one of the two is unknown or missing."""
        before, after = (None if arena is None else arena.bytes for arena in (self.arena_in, self.arena))
        return None if before is None or after is None else (before, after)

    @property
    def arena_ratio(self) -> float | None:
        """Arena of the result divided by that of the source. None if one of the two is unknown, or if the source needs
        no arena.
        """
        before, after = self.arenas or (0, 0)
        return after / before if before else None

    def to_json(self) -> dict[str, Any]:
        """The cost as in `tflq convert --json`: docs/json.md."""
        return {
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "arena_in": None if self.arena_in is None else self.arena_in.to_json(),
            "arena": None if self.arena is None else self.arena.to_json(),
            "slower": self.slower,
            "instead": self.instead,
        }


def source_arena(module: Module) -> Arena | None:
    """The arena that the source of a converted module needs; None for a TOSA file."""
    source = module.record.find(SourceFunctions)
    return None if source is None else arena_of(Module(list(source.functions)))


def total(costs: Sequence[Cost]) -> Cost:
    """Sum of the costs of several conversions. Arenas count for models of which both are known."""
    known = [(cost.arena_in, cost.arena) for cost in costs if cost.arenas is not None]
    before, after = (tuple(filter(None, side)) for side in zip(*known, strict=True)) if known else ((), ())
    slow = [cost.instead for cost in costs if cost.slower]
    which = f"{len(slow)} of {len(costs)} results" if len(costs) > 1 else "the result"
    return Cost(
        sum(cost.bytes_in for cost in costs),
        sum(cost.bytes_out for cost in costs),
        _sum(before),
        _sum(after),
        _slower(which, "operators") if slow else "",
        max(slow, key=len, default=""),
    )


def _sum(arenas: Sequence[Arena]) -> Arena | None:
    beside = tuple(dict.fromkeys(name for arena in arenas for name in arena.beside))
    shared = sum(arena.shared or 0 for arena in arenas)
    return Arena(shared, sum(arena.kept for arena in arenas), "", beside) if arenas else None


def slower_than_source(module: Module, rows: Sequence[Row], options: Options) -> tuple[str, str]:
    """`Cost.slower` and `Cost.instead` of a converted module, from its report and the options of its conversion."""
    decided = zip(Decisions.of(module), rows, strict=True)
    spread = [decision.op for decision, row in decided if row.path != "kept" and row.emitted > 1]
    if not options.backend.interpreted or not _had_kernels(spread, options):
        return "", ""
    which = f"{len(spread)} of {len(rows)} operators" if len(rows) > 1 else "its one operator"
    faster = options.mac == "integer" and any(isinstance(op, _PRODUCTS) for op in spread)
    also = "; --mac float32 is the faster of the plain forms" if faster else ""
    return _slower("this", which), f"For a TFLite interpreter take --target kernels{also}."


def _slower(what: str, which: str) -> str:
    return f"Expect an interpreter to run {what} slower than the original, since {which} became several plain ones."


def _had_kernels(lowered: Iterable[Op], options: Options) -> bool:
    """Whether an interpreter has fast and correct kernels, those on 8 bits, for some of these operators. The table of
    its kernels takes a while to read, so it is not asked about the products that every network has."""
    ops = [op for op in lowered if any(_is_of_8_bits(value) for value in op.tensors)]
    if not options.kernels.kernels and any(isinstance(op, _PRODUCTS) and _is_usual(op) for op in ops):
        return True
    if not ops:
        return False
    from tflq.targets.load import measured_kernels

    kernels = measured_kernels(frozenset(op.short_name for op in ops))
    return any(kernels.judge(op).runs for op in ops)


def _is_of_8_bits(value: Value) -> bool:
    """Whether a tensor holds quantized activations of 8 bits."""
    return value.type.quantized and not value.is_constant and value.type.storage in (i8, ui8)


def _is_usual(op: Op) -> bool:
    """Whether the operands of a product and its result have one quantized 8-bit type: uint8 with one scale, or int8
    with weights whose zero point is 0."""
    types = [value.type for value in (*op.present_operands[:2], op.result)]
    if not all(type.quantized for type in types):
        return False
    weights, storages = types[1].element, {type.storage for type in types}
    if storages == {ui8}:
        return isinstance(weights, UniformQuantizedType)
    if not isinstance(weights, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        return False
    return storages == {i8} and not weights.has_zero_point
