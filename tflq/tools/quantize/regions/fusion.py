"""kernel-fusion: ops become logical kernels, `quant.region`.

The patterns are those of `rules/fusion.toml`; any other op that can be quantized is a kernel alone. With a target, only
kernels that it lists are made. What a model states before or after ports (casts, statistics, element types) becomes
their specs. Ops on quantized tensors become ops on what these express, between casts, and their types the specs: fusion
works before quantization and after it. What is in a region stays as it is.

A composite operator is a kernel under its own name, with the ops of its decomposition.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, TypeAlias

import numpy as np

from tflq.base.files import FilePath, resource
from tflq.dialects.builder import Emitter, expressed
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.regions import Region, Return
from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.dialects.traits import Calls, Impure, Recurrent, StaysQuantized
from tflq.ir.module import Function, Module
from tflq.ir.ops import Block, Op, Value, constant
from tflq.ir.ops import Region as OpRegion
from tflq.ir.rewriting import copied, remove_unneeded, replace_values
from tflq.ir.types import ElementType, ScalarType, TensorType, f32
from tflq.targets.load import Kernels, load_kernels
from tflq.targets.target import RulesFile
from tflq.tools.quantize.regions.lookup import computes_with_reals, is_real
from tflq.tools.quantize.regions.ranges import (
    POINTS,
    faked_type,
    is_dequantizing,
    is_quantizing,
    is_statement,
    same_value,
    set_plain_types,
    statement_after,
    statement_before,
)
from tflq.transforms.pass_manager import Pass, PassResult

_NO_KERNELS = ("quant", "func", "arith", "shape", "tensor", "tflq")
"""Dialects whose ops never are kernels."""


@dataclass(frozen=True)
class KernelFusion(Pass):
    """Wraps ops in regions. `target`: a target's file; only its kernels are made. `reals=true`: ops that have quantized
    tensors already, hybrid ones, too, stay as they are."""

    name: ClassVar[str] = "kernel-fusion"
    target: str = ""
    reals: bool = False

    def run(self, module: Module) -> PassResult:
        kernels = load_kernels(self.target) if self.target else None
        whole = {op.decomposition_subgraph_index for op in module.ops() if isinstance(op, StablehloComposite)}
        fused = [f for index, f in enumerate(module.functions) if index not in whole]
        groups = {f: _Grouping(module, f, kernels, reals=self.reals).groups() for f in fused}
        touched = {v for chains in groups.values() for _, ops in chains for op in ops for v in op.tensors}
        plain = set_plain_types(touched)
        real: dict[Value, Value] = {}
        for function, chains in groups.items():
            if chains:
                real |= _Wrapping(module, function, plain).run(chains)
        modified = any(groups.values())
        if modified:
            remove_unneeded(module, lambda op: is_statement(op) and not isinstance(op, POINTS))
            _label(module, real)
        return PassResult(module, modified)


def _label(module: Module, real: Mapping[Value, Value]) -> None:
    """Gives reals the names and ranges of the quantized tensors that they replace."""
    remaining = {value for function in module.functions for value in function.values()}
    for value, quantized in real.items():
        if quantized not in remaining:
            value.name = quantized.name
            value.info = {key: quantized.info[key] for key in ("min", "max") if key in quantized.info}


_Group = tuple[str, list[Op]]


class _Grouping:
    """Grouping of a function's ops into kernels."""

    def __init__(self, module: Module, function: Function, kernels: Kernels | None, *, reals: bool) -> None:
        self.module = module
        self.function = function
        self.kernels = kernels
        self.reals = reals
        self.users = function.users()
        self.outputs = frozenset(function.outputs)
        self.grouped: set[Op] = set()

    def groups(self) -> list[_Group]:
        """Kernels and their ops, each in the order of the function."""
        groups: list[_Group] = []
        for op in self.function.ops:
            if isinstance(op, StablehloComposite):
                if op.name_ and self._lists(op.name_) and _is_plain(op, self.module.functions):
                    groups.append((op.name_, [op]))
            elif self.free(op) and (group := self._of(op)) is not None:
                self.grouped.update(group[1])
                groups.append(group)
        return groups

    def free(self, op: Op) -> bool:
        if self.reals and any(value.type.quantized for value in op.tensors):
            return False
        return op not in self.grouped and _is_quantizable(op)

    def _of(self, op: Op) -> _Group | None:
        chains = ((p, p.match(op, self.following, self.free)) for p in patterns())
        longest = max((c for c in chains if len(c[1]) > 1 and self._admits(*c)), key=lambda c: len(c[1]), default=None)
        if longest is not None:
            return longest[0].kernel, longest[1]
        return (op.short_name, [op]) if self._lists(op.short_name) else None

    def _lists(self, kernel: str) -> bool:
        return self.kernels is None or kernel in self.kernels

    def _admits(self, pattern: Pattern, ops: Sequence[Op]) -> bool:
        parts = (op.short_name for op in ops if not op.name.startswith("quant."))
        return self._lists(pattern.kernel) or (pattern.parts and all(map(self._lists, parts)))

    def following(self, op: Op) -> tuple[Op, list[Op]] | None:
        """The only op that uses an op's only result, and the casts and statistics between them."""
        between: list[Op] = []
        value = op.result
        while len(op.results) == 1 and value not in self.outputs:
            users = self.users.get(value, ())
            if len(users) != 1:
                return None
            if not is_statement(users[0]):
                return users[0], between
            between.append(users[0])
            value = users[0].result
        return None


def _is_quantizable(op: Op) -> bool:
    """Whether an op computes with reals: not a cast, of their elements, and without regions, effects and state."""
    if op.name.partition(".")[0] in _NO_KERNELS or op.regions or isinstance(op, (Quantize, Dequantize)):
        return False
    if faked_type(op) is not None or (isinstance(op, Operator) and op.has(Calls, Impure, StaysQuantized, Recurrent)):
        return False
    return bool(op.results) and computes_with_reals(op)


def _is_plain(op: StablehloComposite, functions: Sequence[Function]) -> bool:
    """Whether a composite and its decomposition compute on plain types only, and its results are reals."""
    ops = functions[op.decomposition_subgraph_index].ops
    values = (value for inner in (op, *ops) for value in inner.tensors)
    real = all(is_real(value.type.element) for value in op.outputs)
    return real and None not in op.operands and all(isinstance(value.type.element, ScalarType) for value in values)


class _Wrapping:
    """Makes the regions of one function."""

    def __init__(self, module: Module, function: Function, plain: Mapping[Value, ElementType]) -> None:
        self.module = module
        self.function = function
        self.plain = plain
        self.users = function.users()
        self.outputs = frozenset(function.outputs)
        self.replacements: dict[Value, Value] = {}
        self.real: dict[Value, Value] = {}

    def run(self, groups: Sequence[_Group]) -> dict[Value, Value]:
        """The reals that stand for quantized results."""
        last = {group[1][-1]: group for group in groups}
        inside = {op for _, ops in groups for op in ops}
        b = Emitter()
        for op in self.function.ops:
            if op in last:
                self._wrap(b, *last[op])
            elif op not in inside:
                b.ops.append(op)
        self.function.ops = b.ops
        replace_values(self.module, self.function, self.replacements)
        return self.real

    def _wrap(self, b: Emitter, kernel: str, ops: Sequence[Op]) -> None:
        b.location = ops[-1].location
        ops = folded(ops)
        inside = {result for op in ops for result in op.results}
        arguments: list[Value] = []
        operands: list[Value] = []
        input_specs: list[ElementType] = []
        known: dict[Value, Value] = {}
        copies: list[Op] = []
        for op in ops:
            inner_operands: list[Value | None] = []
            for value in op.operands:
                if value is None or value in inside:
                    inner_value = None if value is None else known[value]
                    if inner_value is not None and inner_value.type.quantized and not is_dequantizing(op):
                        inner_value = _cast(copies, Dcast, inner_value, expressed(inner_value.type))
                    inner_operands.append(inner_value)
                    continue
                outer, spec = self._input(b, value)
                operands.append(outer)
                input_specs.append(spec)
                arguments.append(Value(outer.type))
                inner_operands.append(arguments[-1])
            if isinstance(op, StablehloComposite):
                function = self.module.functions[op.decomposition_subgraph_index]
                inner = dict(zip(function.inputs, arguments, strict=True))
                copies += copied(function.ops, inner)
                known |= {r: inner.get(v, v) for r, v in zip(op.results, function.outputs, strict=True)}
                continue
            inner_ops = _copied(op, inner_operands, is_last=op is ops[-1])
            copies += inner_ops
            known |= zip(op.results, inner_ops[-1].results, strict=True)
            if op is not ops[-1] and not is_statement(op):  # keeps what the model says about a tensor inside
                known |= {v: _cast(copies, Qcast, known[v], v.type) for v in op.results if v.type.quantized}
        finals = list(ops[-1].results)
        copies.append(Op(Return.op_name, [known[value] for value in finals], []))
        outers = [Value(expressed(value.type)) if value.type.quantized else value for value in finals]
        specs = [self._output(value) for value in finals]
        attributes = {"input_specs": input_specs, "output_specs": specs, "kernel": kernel}
        body = [OpRegion([Block(arguments, copies)])]
        b.ops.append(Op(Region.op_name, list(operands), outers, attributes, b.location, regions=body))
        for outer, value in zip(outers, finals, strict=True):
            if outer is not value:
                self.real[outer] = value
                b.ops.append(Op(Qcast.op_name, [outer], [value], {}, b.location))

    def _input(self, b: Emitter, value: Value) -> tuple[Value, ElementType]:
        """The plain value that an operand is, and its spec."""
        if value.type.quantized:
            cast = value.producer
            if isinstance(cast, Qcast) and isinstance(cast.input.producer, Region):
                return cast.input, value.type.element
            return b.emit(Dcast, [value], expressed(value.type)), value.type.element
        statement = statement_before(value)
        return statement.value, statement.spec or self.plain.get(statement.value) or statement.value.type.element

    def _output(self, value: Value) -> ElementType:
        """The spec of a result. Values that stand for it after casts and statistics are replaced by it."""
        if value.type.quantized:
            return value.type.element
        spec, same = statement_after(value, self.users, self.outputs)
        if spec is None:
            return self.plain.get(value, value.type.element)
        self.replacements |= same
        for replacement in dict.fromkeys(same.values()):
            ends = [v for v, before in same.items() if before is replacement]
            returned = [v.name for v in ends if v in self.outputs]
            replacement.name = next(filter(None, (*returned, replacement.name, *(v.name for v in ends))), "")
        return spec


def _copied(op: Op, operands: list[Value | None], *, is_last: bool) -> list[Op]:
    """An op on other operands, inside of a region: casts and fake quantization as casts of `quant`, any other op on
    reals. The names of the last op's results are those of the region's."""
    ops: list[Op] = []
    faked = faked_type(op)
    if faked is not None:
        _cast(ops, Dcast, _cast(ops, Qcast, operands[0], op.result.type.with_element(faked)), op.result.type)
    elif is_quantizing(op) or is_dequantizing(op):
        _cast(ops, Qcast if is_quantizing(op) else Dcast, operands[0], op.result.type)
    else:
        ops.append(op.copy_with(operands, [Value(expressed(value.type)) for value in op.results]))
    for result, value in zip(ops[-1].results, op.results, strict=True):
        result.name = "" if is_last else value.name
    return ops


def _cast(ops: list[Op], kind: type[Operator], value: Value | None, type: TensorType) -> Value:
    """A cast of a value, emitted."""
    result = Value(type)
    ops.append(Op(kind.op_name, [value], [result], {}))
    return result


# Batch normalization: a multiplication and an addition of a number per channel, after a product with constant weights,
# become part of the weights and the bias, as in TensorFlow Lite's converter. weights · m and bias · m + a are rounded
# to float32 after each step.


_Product: TypeAlias = Conv2D | DepthwiseConv2D | FullyConnected


def _weights(product: _Product) -> tuple[Value, int]:
    """The weights, and their dim of output channels."""
    if isinstance(product, FullyConnected):
        return product.weights, 0
    return product.filter, 3 if isinstance(product, DepthwiseConv2D) else 0


def is_foldable(op: Op, chained: Value | None) -> bool:
    """Whether an op multiplies by or adds a constant per channel, after a product whose weights and bias are constant.

    The op follows the product directly, or follows such a multiplication. `chained`: the operand by which the chain
    comes to the op.
    """
    product = None if chained is None else chained.producer
    if product is None or not isinstance(op, (Mul, Add)):
        return False
    if isinstance(op, Add) and isinstance(product, Mul):
        operands = (value for value in product.present_operands if not value.is_constant)
        chained = next(operands, None)
        return is_foldable(product, chained) and _numbers(op, product.result, _product_of(chained)) is not None
    if _product_of(chained) is None or (isinstance(op, Mul) and op.fused_activation_function != "NONE"):
        return False
    return _numbers(op, chained, product) is not None


def _product_of(value: Value | None) -> _Product | None:
    """The op that gives a value, if it is a product with constant weights and without an activation."""
    op = None if value is None else value.producer
    if not isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected)) or op.fused_activation_function != "NONE":
        return None
    if len(op.results) != 1 or (isinstance(op, FullyConnected) and op.weights_format != "DEFAULT"):
        return None
    (weights, _), bias = _weights(op), op.bias
    if not all(value.type.element == f32 for value in (op.input, weights, *([bias] if bias else []), op.result)):
        return None
    return op if weights.is_constant and (bias is None or bias.is_constant) else None


def _numbers(op: Op, chained: Value | None, product: Op | None) -> np.ndarray | None:
    """The other operand of an op, if it is a constant number for each channel; else None."""
    others = [value for value in op.operands if value is not chained]
    if not isinstance(product, _Product) or len(others) != 1 or others[0] is None or not others[0].is_constant:
        return None
    array, (weights, axis) = others[0].array, _weights(product)
    channels, rank = weights.array.shape[axis], product.result.type.rank
    per_channel = array.size == 1 or array.shape[-1:] == (channels,) == (array.size,)
    if array.dtype != np.float32 or not per_channel or rank is None or array.ndim > rank:
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def folded(ops: Sequence[Op]) -> list[Op]:
    """A chain that starts with a product and a multiplication, folded, with the addition after them."""
    product, *rest = ops
    if not isinstance(product, _Product) or not rest or not is_foldable(rest[0], product.result):
        return list(ops)
    scaled = rest.pop(0)
    if not isinstance(scaled, Mul):
        return list(ops)
    (weights, axis), bias = _weights(product), product.bias
    shape = [-1 if i == axis else 1 for i in range(weights.array.ndim)]
    scale = _numbers(scaled, product.result, product)
    assert scale is not None
    last: Op = scaled
    activation = "NONE"
    added = None if bias is None else bias.array * scale
    if rest and isinstance(rest[0], Add) and (shift := _numbers(rest[0], scaled.result, product)) is not None:
        added = shift if added is None else added + shift
        activation, last = rest[0].fused_activation_function, rest.pop(0)
    operands: list[Value | None] = [product.input, constant(weights.array * scale.reshape(shape), name=weights.name)]
    if added is not None:
        named = bias if bias is not None else next(value for value in last.present_operands if value.is_constant)
        operands.append(constant(np.ascontiguousarray(added), name=named.name))
    attributes = {**product.attributes, "fused_activation_function": activation}
    results = list(last.results)
    return [Op(product.name, operands, results, attributes, last.location, info=product.info), *rest]


# Patterns, `rules/fusion.toml`: chains of ops that become one logical kernel.


Follower = Callable[[Op], tuple[Op, list[Op]] | None]
"""The only op that uses an op's result, and the casts and statistics between them."""


def _is_bias(op: Op, chained: Value | None) -> bool:
    others = [value for value in op.present_operands if value is not chained]
    return bool(others) and all(same_value(value).is_constant and value.type.rank == 1 for value in others)


def _is_biased(op: Op, _: Value | None) -> bool:
    slot = op.slot("bias") if isinstance(op, Operator) else None
    return slot is not None and slot.value(op) is not None


_NOTES: Final[Mapping[str, Callable[[Op, Value | None], bool]]] = {
    "bias": _is_bias,
    "biased": _is_biased,
    "unbiased": lambda op, chained: not _is_biased(op, chained),
    "folded": is_foldable,
}


@dataclass(frozen=True, slots=True)
class Link:
    """One op of a chain."""

    names: frozenset[str]
    optional: bool
    note: str

    def fits(self, op: Op, chained: Value | None) -> bool:
        """Whether an op is this one; `chained`: the operand by which the chain comes to it, unless it starts there."""
        return op.short_name in self.names and (not self.note or _NOTES[self.note](op, chained))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A chain of ops, and the kernel that it becomes. `parts`: also if a target lists only the ops."""

    kernel: str
    links: tuple[Link, ...]
    parts: bool

    def match(self, op: Op, following: Follower, free: Callable[[Op], bool]) -> list[Op]:
        """The chain that starts with an op, with the casts and statistics in it; empty if none does."""
        return self._match(op, None, [], self.links, following, free) or []

    def _match(
        self,
        op: Op | None,
        chained: Value | None,
        between: list[Op],
        links: Sequence[Link],
        following: Follower,
        free: Callable[[Op], bool],
    ) -> list[Op] | None:
        """The ops of the links, from an op on; None if a required link is missing."""
        if not links:
            return []
        link, *rest = links
        if op is not None and free(op) and link.fits(op, chained):
            next_op = following(op)
            behind = self._match(
                next_op[0] if next_op else None,
                next_op and (next_op[1][-1] if next_op[1] else op).result,
                next_op[1] if next_op else [],
                rest,
                following,
                free,
            )
            if behind is not None:
                return [*between, op, *behind]
        return self._match(op, chained, between, rest, following, free) if link.optional else None


def patterns(path: FilePath | None = None) -> Sequence[Pattern]:
    """The patterns of a file, by default `rules/fusion.toml`. OptionError if it has faults."""
    return _default_patterns() if path is None else _patterns(path)


@cache
def _default_patterns() -> Sequence[Pattern]:
    return _patterns(resource("rules/fusion.toml"))


def _patterns(path: FilePath) -> Sequence[Pattern]:
    file = RulesFile(os.fspath(path))
    file.check_sections(("pattern",))
    file.check_faults()
    return tuple(_pattern(file, item) for item in file.content.get("pattern", []))


def _pattern(file: RulesFile, item: object) -> Pattern:
    known = {"kernel", "ops", "parts"}
    if not isinstance(item, dict) or not {"kernel", "ops"} <= item.keys() <= known:
        file.fail("a pattern has kernel, ops and, if wanted, parts", "", "pattern", known=sorted(known))
    words = item["ops"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        file.fail(f"ops is {words!r}; give a list of names", "", "pattern")
    links = tuple(map(_link, words))
    for link in links:
        if link.note and link.note not in _NOTES:
            file.fail(f"'{item['kernel']}': ':{link.note}' is not known", "", "pattern", known=_NOTES)
    if all(link.optional for link in links):
        file.fail(f"all ops of '{item['kernel']}' may be missing", "", "pattern")
    return Pattern(item["kernel"], links, bool(item.get("parts", False)))


def _link(word: str) -> Link:
    head, _, note = word.removesuffix("?").partition(":")
    return Link(frozenset(head.split("|")), word.endswith("?"), note)
