"""Lowering: a module in the integer form → one on TOSA's operators.

A function's arguments and results keep names and shapes; their types are the storage types, unsigned ones included.
Every op has one lowering; what cannot be lowered is collected over the whole module into one `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.errors import UnsupportedError
from tflq.ir.core import Function, Location, Module, Signature, Value
from tflq.ir.types import TensorType, element_storage, i8, is_quantized, ui8
from tflq.numerics.fixed_point import Multiplier
from tflq.tosa.context import Refused, Tosa
from tflq.tosa.registry import LOWERINGS
from tflq.tosa.target import Target

__all__ = ["Note", "lower"]

Note = tuple[Location | None, str]
_ONE = Multiplier(1 << 30, 1)


def lower(module: Module, target: Target) -> tuple[Module, list[Note]]:
    """The module on TOSA's operators, and notes for the report: (location of an operator, sentence).

    UnsupportedError lists every operator that has no form on the target.
    """
    notes: list[Note] = []
    refused: dict[str, None] = {}
    renamed: dict[Value, Value] = {}
    functions = [
        f if f.info.get("declaration") else _Function(f, target, notes, refused, renamed).run()
        for f in module.functions
    ]
    if refused:
        raise UnsupportedError(f"{len(refused)} operator(s) have no form in TOSA on this target:", list(refused))
    signatures = None if module.signatures is None else [_remap(s, renamed) for s in module.signatures]
    lowered = Module(functions, signatures, description=module.description, source=module.source)
    lowered.warnings = list(module.warnings)
    return lowered, notes


def _remap(signature: Signature, renamed: dict[Value, Value]) -> Signature:
    def side(pairs: list[tuple[str | None, Value]] | None) -> list[tuple[str | None, Value]] | None:
        return None if pairs is None else [(name, renamed.get(value, value)) for name, value in pairs]

    return replace(signature, inputs=side(signature.inputs), outputs=side(signature.outputs), info={})


class _Function:
    """One function's walk."""

    def __init__(
        self,
        function: Function,
        target: Target,
        notes: list[Note],
        refused: dict[str, None],
        renamed: dict[Value, Value],
    ) -> None:
        self.source = function
        self.refused = refused
        self.renamed = renamed
        self.t = Tosa(target, lambda location, text: notes.append((location, text)))

    def run(self) -> Function:
        inputs = [self._input(value) for value in self.source.inputs]
        for op in self.source.ops:
            self.t.location = op.location
            try:
                lowering = LOWERINGS.get(op.name)
                if lowering is None:
                    raise Refused(f"TOSA has no form of {op.name} yet")  # noqa: TRY301
                results = lowering(op, self.t)
            except Refused as refusal:
                self.refused[f"{op.location or op.name}: {refusal}"] = None
                results = [Value(self.t.type(v)) for v in op.results]
            made: Sequence[Value] = [results] if isinstance(results, Value) else results
            for old, new in zip(op.results, made, strict=True):
                self.t.set(old, new)
        self.t.location = None
        taken: set[Value] = set(inputs)
        outputs = [self._output(value, taken) for value in self.source.outputs]
        return Function(self.source.name, inputs, outputs, self.t.ops)

    def _input(self, value: Value) -> Value:
        """The argument, of its storage type, and what the ops see of it."""
        storage = element_storage(value.type.element)
        info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        argument = self.renamed[value] = Value(TensorType(value.type.shape, storage), value.name, info=info)
        seen = argument
        if storage == ui8:
            seen = self.t.rescale(argument, _ONE, i8, output_zp=-128, rounding_mode="SINGLE_ROUND")
        self.t.set(value, seen)
        return argument

    def _output(self, value: Value, taken: set[Value]) -> Value:
        """The result: a value of its own, of its storage type, under its name."""
        try:
            result = self.t.value(value)
        except Refused as refusal:
            self.refused[f"result '{value.name}': {refusal}"] = None
            return value
        if element_storage(value.type.element) == ui8:
            result.name = ""
            result = self.t.rescale(result, _ONE, ui8, input_zp=-128, rounding_mode="SINGLE_ROUND")
        elif result in taken or result.producer is None:
            result = self.t.identity(result)
        taken.add(result)
        result.name = value.name
        result.info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        self.renamed[value] = result
        return result
