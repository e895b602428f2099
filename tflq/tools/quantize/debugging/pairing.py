"""Pairs of operators of a float network and of a quantized one that compute the same, by the names of results.

The two files can come from any tool. Inputs and outputs are matched by place, all other values by a name that is
unique in both. Around an operator a quantizer puts casts, which have names of their own: a value stands for the tensor
that it was cast from. Where a quantized operator stands for several float ones, such as a product with an activation
fused into it, both sides go back to the nearest values that have a partner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from tflq.dialects.effects import callees, is_pure
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import copied
from tflq.ir.types import TensorType

Known = TypeVar("Known")
INPUT: Final = "input"
"""The kernel's name in a row that is not about an operator: an input that the network takes as stored integers."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A value of the quantized network, and what stands for it in the float one.

    Attributes:
        kernel: The operator that makes it, as a kernel is called; `INPUT`: none does.
        operator: The operator's place in its function; -1 for an input.
        real: The float network's value.
        stored: The quantized network's value.
        ops: The float operators that compute it, in order; none for a cast.
        fed: What these read, each with the value that the quantized operator reads for it.
        is_fed: Whether all that they read has one.
    """

    kernel: str
    operator: int
    real: Value
    stored: Value
    ops: tuple[Op, ...]
    fed: tuple[tuple[Value, Value], ...]
    is_fed: bool = True

    @property
    def tensor(self) -> str:
        """The name of the quantized network's value, or that of the float one's if it has none."""
        return self.stored.name or self.real.name

    @property
    def obstacle(self) -> str:
        """Why the float operators cannot run alone; empty if they can."""
        if any(callees(op) or op.regions for op in self.ops):
            return "it calls functions"
        if not all(map(is_pure, self.ops)):
            return "it has a state, or its results differ from run to run"
        return "" if self.is_fed else "what it reads has no partner"


@dataclass(frozen=True)
class Unpaired:
    """An operator's result without a partner in the other network."""

    operator: str
    tensor: str


@dataclass(frozen=True, eq=False)
class Pairing:
    """Operators of two networks that belong together.

    Attributes:
        pairs: In the order of the quantized network's operators.
        outputs: The places of the pairs that are outputs.
        only_float: Results of float operators that have no partner.
        only_quantized: Results of the quantized network's operators that have none.
    """

    pairs: tuple[Pair, ...]
    outputs: tuple[int, ...]
    only_float: tuple[Unpaired, ...]
    only_quantized: tuple[Unpaired, ...]


@dataclass(frozen=True, eq=False)
class Side:
    """A function of a network, and the inputs and outputs of its entry, in an order that both networks share."""

    function: Function
    inputs: Sequence[Value]
    outputs: Sequence[Value]


def paired(floats: Side, quantized: Side) -> Pairing:
    """The pairs of two networks."""
    return _Pairing(floats, quantized).result()


class _Pairing:
    """partners: the quantized network's value of each float value; named: the same the other way round."""

    def __init__(self, floats: Side, quantized: Side) -> None:
        self.floats = floats
        self.quantized = quantized
        self.partners: dict[Value, Value] = {}
        self.named: dict[Value, Value] = {}
        ends = [(floats.inputs, quantized.inputs), (floats.outputs, quantized.outputs)]
        matches = [(a, b) for mine, others in ends for a, b in zip(mine, others, strict=True)]
        names = [_named(side.function) for side in (floats, quantized)]
        matches += [(value, names[1][name]) for name, value in names[0].items() if name in names[1]]
        for real, value in matches:
            if real not in self.partners and value not in self.named and fits(real.type, value.type):
                self.partners[real] = value
                self.named[value] = real
        for real, value in list(self.partners.items()):
            self.partners[real] = source = self._before_casts(value)
            self.named[source] = real

    def _before_casts(self, value: Value) -> Value:
        """The value that an operator makes, of which another is a cast."""
        while (source := _cast_from(value)) is not None and source not in self.named:
            value = source
        return value

    def meaning(self, value: Value) -> Value | None:
        """The float value that a value of the quantized network stands for, through casts; None if there is none."""
        return _through_casts(value, self.named)

    def result(self) -> Pairing:
        pairs = [*self._inputs(), *self._results()]
        places = {pair.stored: place for place, pair in enumerate(pairs)}
        outputs = [_through_casts(value, places) for value in self.quantized.outputs]
        return Pairing(
            tuple(pairs),
            tuple(dict.fromkeys(place for place in outputs if place is not None)),
            tuple(_unpaired(self.floats.function, lambda value: value in self.partners)),
            tuple(_unpaired(self.quantized.function, lambda value: self.meaning(value) is not None)),
        )

    def _inputs(self) -> Iterator[Pair]:
        """The pairs of inputs that are stored integers."""
        for value in self.quantized.inputs:
            real = self.named.get(value)
            if real is not None and value.type.quantized and _is_real(real):
                yield Pair(INPUT, -1, real, value, (), ())

    def _results(self) -> Iterator[Pair]:
        """The pairs of operators' results, but for those that nothing reads: the interpreter has no data of these."""
        read = {value for side in (self.floats, self.quantized) for value in (*side.function.users(), *side.outputs)}
        for place, op in enumerate(self.quantized.function.ops):
            for value in op.results:
                real = self.meaning(value)
                if real in read and value in read and (pair := self._pair(place, op, value, real)) is not None:
                    yield pair

    def _pair(self, place: int, op: Op, value: Value, real: Value) -> Pair | None:
        """The pair of an operator's result and the float value that it stands for; None if these are no numbers to
        compare."""
        if not _is_real(real):
            return None
        if isinstance(op, Quantize) and _cast_from(value) is not None and self.meaning(op.input) is real:
            return Pair(op.short_name, place, real, value, (), ((real, op.input),))
        if self.partners[real] is not value:
            return None
        ops, ends = _behind(real, lambda each: each in self.partners)
        _, others = _behind(value, lambda each: self.meaning(each) is not None)
        inputs = {self.meaning(each): each for each in others}
        sources = ((each, inputs.get(each) or self.partners.get(each)) for each in ends)
        fed = tuple((each, source) for each, source in sources if source is not None)
        return Pair(op.short_name, place, real, value, ops, fed, len(fed) == len(ends))


def _through_casts(value: Value, known: Mapping[Value, Known]) -> Known | None:
    """The known fact of a value, or else of the nearest that it is a cast of; None if there is none."""
    following: Value | None = value
    while following is not None and following not in known:
        following = _cast_from(following)
    return None if following is None else known[following]


def _named(function: Function) -> dict[str, Value]:
    """The results of operators that have a name of their own."""
    names = Counter(value.name for value in function.values())
    return {v.name: v for op in function.ops for v in op.results if v.name and names[v.name] == 1}


def fits(a: TensorType, b: TensorType) -> bool:
    """Whether a type can be the quantized one of another: of its shape, where both say it."""
    if a.shape is None or b.shape is None:
        return a.shape == b.shape
    same = len(a.shape) == len(b.shape) and all(d == e or None in (d, e) for d, e in zip(a.shape, b.shape, strict=True))
    return same and (b.quantized or b.storage.is_float if a.storage.is_float else a.storage == b.storage)


def _is_real(value: Value) -> bool:
    return value.type.storage.is_float and not value.type.quantized


def _cast_from(value: Value) -> Value | None:
    """The source of a cast; None if the value is not a cast, or is one of a constant."""
    if not isinstance(value.producer, (Quantize, Dequantize)):
        return None
    source = value.producer.input
    return None if source.is_constant else source


def _behind(value: Value, stops: Callable[[Value], bool]) -> tuple[tuple[Op, ...], list[Value]]:
    """The operators that compute a value from those at which this stops, in order; and these values, in order."""
    ops: dict[Op, None] = {}
    ends: dict[Value, None] = {}
    stack: list[tuple[Op, bool]] = [] if value.producer is None else [(value.producer, False)]
    while stack:
        op, done = stack.pop()
        if done:
            ops[op] = None
            continue
        stack.append((op, True))
        for operand in op.operands:
            if operand is None or operand.is_constant:
                continue
            if stops(operand) or operand.producer is None:
                ends[operand] = None
            elif operand.producer not in ops:
                stack.append((operand.producer, False))
    return tuple(ops), list(ends)


def _unpaired(function: Function, has_partner: Callable[[Value], bool]) -> list[Unpaired]:
    """The results of operators without a partner, except casts."""
    ops = [op for op in function.ops if not isinstance(op, (Quantize, Dequantize))]
    return [Unpaired(op.short_name, v.name) for op in ops for v in op.results if not has_partner(v)]


def alone(pairs: Sequence[Pair]) -> Module:
    """The float operators of pairs, each fed by itself: what each reads is an input, in the order of `fed`, and what
    it makes an output."""
    inputs, outputs, ops = list[Value](), list[Value](), list[Op]()
    for pair in pairs:
        copies = {value: Value(value.type) for value, _ in pair.fed}
        inputs += copies.values()
        ops += copied(pair.ops, copies)
        outputs.append(copies[pair.real])
    return Module([Function("main", inputs, outputs, ops)])
