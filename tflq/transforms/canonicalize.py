"""Simplification: casts that undo each other, constants, ops without users, and ops that repeat others."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import ClassVar, Final, Literal, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.effects import called_functions, inner_blocks, is_pure, is_variable, reachable, visible_blocks
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl import casts
from tflq.dialects.tfl.casts import Bitcast, Cast
from tflq.dialects.tfl.shape import Range, Rank, Shape
from tflq.dialects.tosa import movement as tosa
from tflq.dialects.tosa.movement import Identity
from tflq.dialects.traits import MovesElements
from tflq.ir.facts import final
from tflq.ir.module import Function, Module, attribute_key
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.rewriting import move_name, remove_ops, remove_unneeded, replace_in_signatures, replace_inside, split_dead
from tflq.ir.types import ElementType, UniformQuantizedType, bf16, is_narrowed, is_quantized
from tflq.transforms.pass_manager import Pass, PassResult

_Cast: TypeAlias = Qcast | Dcast | Scast | casts.Cast | tosa.Cast | Identity


class Canonicalize(Pass):
    """Removes casts that undo each other or do nothing, also inside of other ops, but for those of a quant.region.

        qcast(dcast(q)) → q    if the quantized types are equal
        dcast(qcast(x)) → x    if the float types are equal
        scast(scast(x)) → x    if the outer types are equal
        cast(x) → x            if the types are equal

    `semantics` says whether a rounding may go. `real`: all of the above, as the `quant` dialect has them
    (its canonicalization sections). `interpreter`: only what changes no number: never a dcast of a qcast; a qcast of a
    dcast if it gives back every stored value. A function's output keeps its name: where folding would give it another
    tensor's name, the casts stay.
    """

    name: ClassVar[str] = "canonicalize"
    in_step: ClassVar[bool] = True
    runs_on: ClassVar[tuple[type, ...]] = (Qcast, Dcast, Scast, casts.Cast, tosa.Cast, Identity)

    def __init__(self, semantics: Literal["real", "interpreter"] = "real") -> None:
        self.semantics: Final = semantics

    def run(self, module: Module) -> PassResult:
        called = set(called_functions(module))
        replaced: dict[Value, Value] = {}
        result = PassResult.of(module, lambda function: self._function(function, function in called, replaced))
        replace_in_signatures(module, replaced)
        return result

    def _function(self, function: Function, called: bool, replaced: dict[Value, Value]) -> bool:
        replacements: dict[Value, Value] = {}
        folded: set[Op] = set()
        outputs = set(function.outputs)
        for op in reachable(function.ops):
            source = self._source(op, replacements)
            if source is None:
                continue
            returned = op.result in outputs
            if called and returned and not _may_return(source, outputs):
                continue
            if op.result.name and move_name(source, op.result):
                replacements[source] = op.result
                if source in outputs:
                    outputs.add(op.result)
            elif returned and op.result.name and op.result.name != source.name:
                continue
            else:
                replacements[op.result] = source
                if returned:
                    outputs.add(source)
            folded.add(op)
        replace_inside(function, replacements)
        replaced |= replacements
        remove_ops(function, folded)
        return bool(folded)

    def _source(self, op: Op, replacements: dict[Value, Value]) -> Value | None:
        """The value that the cast's result equals, if it does."""
        if not isinstance(op, _Cast):
            return None
        operand = final(op.input, replacements)
        if operand.type == op.result.type and not isinstance(op, (Qcast, Dcast)):
            return operand
        match op, operand.producer:
            case (Scast(), Scast() as before) | (Qcast(), Dcast() as before):
                pass
            case Dcast(), Qcast() as before if self.semantics == "real":
                pass
            case _:
                return None
        source = final(before.input, replacements)
        if source.type != op.result.type:
            return None
        if isinstance(op, Qcast) and self.semantics == "interpreter":
            exact = op.rounding != "toward_zero" and gives_back(op.result.type.element)
            return source if exact else None
        return source


@lru_cache(1024)
def gives_back(element: ElementType) -> bool:
    """Whether quantizing what a stored value expresses, to the nearest, gives that value again: no value is clamped,
    and dividing the product by the scale, with roundings to the expressed type, is off by less than a half."""
    assert is_quantized(element)
    if is_narrowed(element) or not element.expressed.numpy:
        return False
    limits = np.finfo(element.expressed.dtype)
    one = isinstance(element, UniformQuantizedType)
    scales = np.asarray(element.scale if one else element.scales, np.float64)  # type: ignore[union-attr]
    zeros = np.asarray(element.zero_point if one else element.zero_points, np.float64)  # type: ignore[union-attr]
    reach = np.maximum(element.storage_max - zeros, zeros - element.storage_min)
    finite = (scales >= limits.tiny) & (reach * scales <= float(limits.max))
    return bool((finite & (reach < 2.0 ** (limits.nmant - 1))).all())


def _may_return(source: Value, outputs: set[Value]) -> bool:
    """Whether a called function may return the source as it is: interpreters of control flow do not copy an argument,
    or a value that is returned twice."""
    return source.producer is not None and source not in outputs


_KEEPS_NUMBERS: Final = (Bitcast, Cast, Range, Rank, Shape)
FOLDED_BYTES: Final = 1 << 16
"""The size up to which any result of constants is computed."""


class Fold(Pass):
    """Turns the results of pure ops on constants into constants, by the numpy evaluator. A result stays if it is
    both over `limit` bytes and larger than its operands. An empty result of the function stays computed: the
    interpreter does not take a tensor without bytes for a constant."""

    name: ClassVar[str] = "fold"
    in_step: ClassVar[bool] = True

    def __init__(self, limit: int = FOLDED_BYTES) -> None:
        self.limit: Final = limit

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, self._function)

    def _function(self, function: Function) -> bool:
        folded: set[Op] = set()
        empty = {v for v in function.outputs if 0 in v.type.dims}
        for op in function.ops:
            if (
                not op.operands
                or not all(v is None or _is_known(v) for v in op.operands)
                or op.info.get("kept")
                or not is_pure(op)
                or _computes(op)
                or not empty.isdisjoint(op.results)
            ):
                continue
            arrays = self._evaluate(op)
            if arrays is None:
                continue
            for value, array in zip(op.results, arrays, strict=True):
                _become(value, array)
            folded.add(op)
        remove_ops(function, folded)
        return bool(folded)

    def _evaluate(self, op: Op) -> list[np.ndarray] | None:
        from tflq.analysis.evaluate.registry import array_of, evaluate_op, takes_bits

        if not all(value.type.is_static and _has_array(value) for value in op.results):
            return None
        if not takes_bits(op) and any(value.type.storage is bf16 for value in op.tensors):
            return None
        source = sum(v.buffer.data.size for v in op.present_operands if v.buffer is not None)
        if any(_size(value) > max(self.limit, source) for value in op.results):
            return None
        try:
            arrays = evaluate_op(op, [None if value is None else array_of(value) for value in op.operands])
        except (NotImplementedError, ArithmeticError, IndexError, ValueError):  # not implemented, or undefined
            return None
        if arrays is None or any(a.shape != v.type.shape for a, v in zip(arrays, op.results, strict=True)):
            return None
        return arrays


def _computes(op: Op) -> bool:
    """Whether an op of TFLite computes numbers: that is left to its kernel, with its order and precision."""
    if not isinstance(op, Operator) or not op.name.startswith("tfl."):
        return False
    return not (isinstance(op, _KEEPS_NUMBERS) or op.has(MovesElements))


def _is_known(value: Value) -> bool:
    return value.is_constant and value.type.is_static and _has_array(value) and not is_variable(value)


def _has_array(value: Value) -> bool:
    """Whether arrays hold the elements of a value: bf16 by its bits."""
    return bool(value.type.storage.numpy) or value.type.storage is bf16


def _size(value: Value) -> int:
    from tflq.analysis.evaluate.registry import array_dtype

    return math.prod(value.type.sizes) * array_dtype(value.type).itemsize


def _become(value: Value, array: np.ndarray) -> None:
    """Makes a result a constant; it stays the same value, so its users need no change."""
    value.producer = None
    value.buffer = Buffer.of(array, value.type.storage)


class DeadCodeElimination(Pass):
    """Removes pure ops whose results nothing reads, chains of them included; also inside of other ops, but for those of
    a quant.region."""

    name: ClassVar[str] = "dce"
    in_step: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        inside = [_inside(function) for function in module.functions]
        return PassResult(module, remove_unneeded(module, is_pure) or any(inside))


def _inside(function: Function) -> bool:
    """Removes them from blocks, the innermost first; the last op of a block ends it and stays."""
    if function.is_flat():
        return False
    removed = set[Op]()
    for block in reversed(list(inner_blocks(function.ops))):
        end = block.ops[-1:]
        block.ops, dead = split_dead(block.ops, (), lambda op, end=end: op not in end and is_pure(op))  # type: ignore[misc]
        removed |= dead
    remove_ops(function, removed)
    return bool(removed)


CONSTANT_LIMIT = 4096
"""Bytes up to which constants are compared by content; larger ones only if they share a buffer."""


class CommonSubexpressionElimination(Pass):
    """Merges identical pure ops and equal small constants.

    Ops are identical if their names, operands, attributes and result types are. Of two results of which one has a name,
    that of a tensor of the source model, the named one stays; two with different names both stay, unless `keep_names`
    is off, and so do two that a called function returns. An op inside of another is merged with one of the same block,
    or with one before the op that holds it. What is in a `quant.region` stays as it is.
    """

    name: ClassVar[str] = "cse"
    in_step: ClassVar[bool] = True

    def __init__(self, keep_names: bool = True) -> None:
        self.keep_names: Final = keep_names

    def run(self, module: Module) -> PassResult:
        called = set(called_functions(module))
        replaced: dict[Value, Value] = {}
        result = PassResult.of(module, lambda function: self._function(function, function in called, replaced))
        replace_in_signatures(module, replaced)
        return result

    def _function(self, function: Function, called: bool, replaced: dict[Value, Value]) -> bool:
        merging = _Merging(self._clash, set(function.outputs) if called else set(), _Constants(self._clash))
        merging.block(function.ops)
        for value in function.outputs:
            merging.constants.enter(value)
        replacements = merging.constants.replacements | merging.replacements
        replace_inside(function, replacements)
        replaced |= replacements
        remove_ops(function, merging.merged)
        return bool(replacements or merging.merged)

    def _clash(self, a: Value, b: Value) -> bool:
        return self.keep_names and bool(a.name) and bool(b.name) and a.name != b.name


class _Constants:
    """Constants that are equal to an earlier one. `first`: the earlier one, to find ops by; `replacements`: the
    constant that is read in the place of others, which is the one with a name. `known`: values that are entered."""

    def __init__(self, clash: Callable[[Value, Value], bool]) -> None:
        self.first: dict[Value, Value] = {}
        self.replacements: dict[Value, Value] = {}
        self.known: set[Value] = set()
        self._clash = clash
        self._groups: dict[Hashable, tuple[Value, Value]] = {}  # the first of equal ones, and the one that stays

    def enter(self, value: Value) -> None:
        """Enters a value, in order, if it is a constant."""
        if value in self.known or not value.is_constant or (value.info and is_variable(value)):
            return
        self.known.add(value)
        key = _constant_key(value)
        first, chosen = self._groups.setdefault(key, (value, value))
        if first is value or self._clash(chosen, value):
            return
        self.first[value] = first
        if value.name and not chosen.name:
            self._groups[key] = first, value
            self.replacements[chosen] = value
        else:
            self.replacements[value] = chosen


class _Merging:
    """Ops that repeat an earlier one. `first`: ops by name and operands; `alike`: where several have the same, by
    all else. `outputs`: values of which no two may become one. `replacements`: results that are read in the place
    of others."""

    def __init__(self, clash: Callable[[Value, Value], bool], outputs: set[Value], constants: _Constants) -> None:
        self.clash = clash
        self.outputs = outputs
        self.constants = constants
        self.replacements: dict[Value, Value] = {}
        self.merged: set[Op] = set()
        self.first: dict[Hashable, Op] = {}
        self.alike: dict[Hashable, dict[Hashable, Op]] = {}

    def block(self, ops: Sequence[Op]) -> None:
        """Every op is entered. Whether one may be merged is asked only of those that repeat an earlier one's name and
        operands, and are as pure as that."""
        first, constants, replacements = self.first, self.constants, self.replacements
        known, repeated, replaced = constants.known, constants.first.keys(), replacements.keys()
        for op in ops:
            read = op.operands
            for value in read + op.intermediates if op.intermediates else read:
                if value is not None and value.buffer is not None and value not in known:
                    constants.enter(value)
            if op.regions:
                self._inside(op)
                continue
            if not replaced.isdisjoint(read):
                read = [final(v, replacements) if v in replaced else v for v in read]
            if not repeated.isdisjoint(read):
                read = [constants.first.get(v, v) if v is not None else v for v in read]
            operands = (op.name, *read)
            earlier = first.setdefault(operands, op)
            if earlier is not op and op.results and is_pure(op):
                self._repeat(earlier, op, operands)

    def _inside(self, op: Op) -> None:
        """Ops before an op count inside of it; ops inside do not count after it. An op on constants alone is not merged
        with one outside: the block would read a value that it does not read yet."""
        before = self.first, self.alike
        reading = {key: o for key, o in self.first.items() if any(v and not v.is_constant for v in o.operands)}
        for block in visible_blocks(op):
            self.first = dict(reading)
            self.alike = {key: dict(ops) for key, ops in before[1].items() if key in reading}
            self.block(block.ops)
        self.first, self.alike = before

    def _repeat(self, earlier: Op, op: Op, operands: Hashable) -> None:
        """Merges an op with the one of the same name and operands that it repeats, if there is one."""
        known = self._known(earlier, self.alike.setdefault(operands, {}), op)
        if known is op:
            return
        pairs = list(zip(known.results, op.results, strict=True))
        if any(self.clash(a, b) or (a in self.outputs and b in self.outputs) for a, b in pairs):
            return
        for a, b in pairs:
            self._merge(a, b)
        self.merged.add(op)

    def _merge(self, a: Value, b: Value) -> None:
        chosen, gone = (b, a) if b.name and move_name(a, b) else (a, b)
        self.replacements[gone] = chosen
        if gone in self.outputs:
            self.outputs.add(chosen)

    def _known(self, first: Op, alike: dict[Hashable, Op], op: Op) -> Op:
        """The earlier op that `op` repeats, or itself. Keys are made only where a second op has the same operands."""
        if not alike:
            alike[_op_key(first)] = first
        return alike.setdefault(_op_key(op), op)


def _constant_key(value: Value) -> Hashable:
    buffer, type = value.buffer, value.type
    shape, element, info = type.shape, type.element, attribute_key(value.info) if value.info else None
    if buffer is None or buffer.data.size > CONSTANT_LIMIT or buffer.external:
        return (shape, element, id(buffer), info)
    return (shape, element, buffer.data.tobytes(), info)


def _op_key(op: Op) -> Hashable:
    """The key that two ops of one name and the same operands must share to be equal."""
    return (
        tuple(op.intermediates),
        attribute_key(op.attributes),
        attribute_key(op.info),
        tuple(result.type for result in op.results),
    )
