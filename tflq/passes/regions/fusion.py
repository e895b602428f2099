"""kernel-fusion: ops become logical kernels, `quant.region`.

The patterns are those of `rules/fusion.toml`; any other op that can be quantized is a kernel alone. With a target, only
kernels that it lists are made. What a model states before or after ports (casts, statistics, element types) becomes
their specs. Ops on quantized tensors become ops on what these express, between casts, and their types the specs: fusion
works before quantization and after it. What is in a region stays as it is.

A composite operator is a kernel under its own name, with the ops of its decomposition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tflq.builder import Emitter, expressed
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.regions import Region, Return
from tflq.dialects.tfl.arithmetic import Dequantize, Quantize
from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.dialects.traits import Calls, Impure, Kept, Recurrent
from tflq.ir.core import Block, Function, Module, Op, Value
from tflq.ir.core import Region as OpRegion
from tflq.ir.rewriting import copied, remove_unneeded, replace_values
from tflq.ir.types import ElementType, ScalarType, TensorType
from tflq.passes.regions.batch_norm import folded
from tflq.passes.regions.lookup import is_real
from tflq.passes.regions.patterns import Pattern, patterns
from tflq.passes.regions.ranges import (
    POINTS,
    faked_type,
    is_dequantizing,
    is_quantizing,
    is_statement,
    made_plain,
    stated_after,
    stated_before,
)
from tflq.targets.load import Kernels, load_kernels

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
        plain = made_plain(touched)
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
    kept = {value for function in module.functions for value in function.values()}
    for value, quantized in real.items():
        if quantized not in kept:
            value.name = quantized.name
            value.info = {key: quantized.info[key] for key in ("min", "max") if key in quantized.info}


_Group = tuple[str, list[Op]]


class _Grouping:
    """Which ops of a function become kernels."""

    def __init__(self, module: Module, function: Function, kernels: Kernels | None, *, reals: bool) -> None:
        self.module = module
        self.function = function
        self.kernels = kernels
        self.reals = reals
        self.users = function.users()
        self.outputs = frozenset(function.outputs)
        self.taken: set[Op] = set()

    def groups(self) -> list[_Group]:
        """Kernels and their ops, each in the order of the function."""
        groups: list[_Group] = []
        for op in self.function.ops:
            if isinstance(op, StablehloComposite):
                if op.name_ and self._lists(op.name_) and _is_plain(op, self.module.functions):
                    groups.append((op.name_, [op]))
            elif self.free(op) and (group := self._of(op)) is not None:
                self.taken.update(group[1])
                groups.append(group)
        return groups

    def free(self, op: Op) -> bool:
        if self.reals and any(value.type.quantized for value in op.tensors):
            return False
        return op not in self.taken and _is_quantizable(op)

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
    """Whether an op computes reals: not a cast, with real results, and without regions, effects and state."""
    if op.name.partition(".")[0] in _NO_KERNELS or op.regions or isinstance(op, (Quantize, Dequantize)):
        return False
    if faked_type(op) is not None or (isinstance(op, Operator) and op.has(Calls, Impure, Kept, Recurrent)):
        return False
    return bool(op.results) and all(is_real(value.type.element) for value in op.results)


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
            made = _copied(op, inner_operands, is_last=op is ops[-1])
            copies += made
            known |= zip(op.results, made[-1].results, strict=True)
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
        stated = stated_before(value)
        return stated.value, stated.spec or self.plain.get(stated.value) or stated.value.type.element

    def _output(self, value: Value) -> ElementType:
        """The spec of a result. Values that stand for it after casts and statistics are replaced by it."""
        if value.type.quantized:
            return value.type.element
        spec, same = stated_after(value, self.users, self.outputs)
        if spec is None:
            return self.plain.get(value, value.type.element)
        self.replacements |= same
        for kept in dict.fromkeys(same.values()):
            ends = [v for v, before in same.items() if before is kept]
            returned = [v.name for v in ends if v in self.outputs]
            kept.name = next(filter(None, (*returned, kept.name, *(v.name for v in ends))), "")
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
        results = [Value(expressed(value.type)) for value in op.results]
        attributes, inner = op.attributes, op.intermediates
        ops.append(Op(op.name, operands, results, attributes, op.location, info=op.info, intermediates=inner))
    for result, value in zip(ops[-1].results, op.results, strict=True):
        result.name = "" if is_last else value.name
    return ops


def _cast(ops: list[Op], kind: type[Operator], value: Value | None, type: TensorType) -> Value:
    """A cast of a value, emitted."""
    result = Value(type)
    ops.append(Op(kind.op_name, [value], [result], {}))
    return result
