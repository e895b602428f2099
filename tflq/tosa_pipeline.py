"""tfl-to-tosa-pipeline: a module of TFLite's operators → TOSA's, in one pass.

Function headers keep their quantized types, which `tosa.rescale` reads and writes as they are; elsewhere a
`quant.scast` stands between them and the stored integers. `target-compilation-backend=true` leaves the storage types
alone, as a backend takes them: all that the types say stands in attributes by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from tflq.contract import Pass, PassResult, Pipeline
from tflq.errors import InvalidModelError, VerificationError
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ElementType

__all__ = ["TflToTosa"]


@dataclass(frozen=True)
class TflToTosa(Pass):
    """Lowers operators of TFLite to TOSA. `fallback`: by way of floats where no integer algorithm covers one.
    `semantics`: what the parameters say (real), or what TFLite's kernels compute where they disregard some
    (interpreter). UnsupportedError lists every operator refused."""

    name: ClassVar[str] = "tfl-to-tosa-pipeline"
    makes: ClassVar[Literal["any"]] = "any"
    fallback: bool = True
    target_compilation_backend: bool = False
    semantics: Literal["real", "interpreter"] = "real"

    def run(self, module: Module) -> PassResult:
        from tflq.backends.tosa import Tosa
        from tflq.dialects.forms import verify_form
        from tflq.options import Options
        from tflq.pipelines import to_integer_form, to_tosa
        from tflq.tosa.target import Target

        try:
            verify_form(module, "tfl")
        except VerificationError as error:
            raise InvalidModelError("", str(error), path=module.source) from error
        options = Options(Tosa(), target=Target(), fallback=self.fallback, semantics=self.semantics)
        passes = [*to_integer_form(options, "tfl"), *to_tosa(options)]
        lowered = Pipeline(passes, "tfl").run(module).module
        for function in lowered.functions:
            if self.target_compilation_backend:
                _forget(function)
            else:
                _restate(lowered, function)
        return PassResult(lowered, True)


def _stated(value: Value) -> ElementType | None:
    """The quantized type that a tensor had, if it is known."""
    found: ElementType | None = value.info.get("quantized")
    return found


def _without(value: Value) -> None:
    value.info = {key: item for key, item in value.info.items() if key != "quantized"}


def _forget(function: Function) -> None:
    for value in (*function.values(), *function.tensors):
        if _stated(value) is not None:
            _without(value)


def _restate(module: Module, function: Function) -> None:
    """Quantized types in the header."""
    users = function.users()
    before: list[Op] = []
    for value in dict.fromkeys(function.inputs):
        element = _stated(value)
        if element is None:
            continue
        if _of_rescales(users.get(value, ())) and value not in function.outputs:
            value.type = value.type.with_element(element)
        elif value.type.storage.kind != "uint":
            inner = Value(value.type)
            function.replace({value: inner})
            value.type = value.type.with_element(element)
            before.append(Op("quant.scast", [value], [inner]))
        else:
            continue
        _without(value)
    function.ops = [*before, *function.ops]
    replacements: dict[Value, Value] = {}
    for value in dict.fromkeys(function.outputs):
        element = _stated(value)
        if element is None or value.producer is None or value.type.element == element:
            continue
        if value.producer.name == "tosa.rescale" and value not in users:
            value.type = value.type.with_element(element)
        elif value.type.storage.kind != "uint":
            outer = Value(value.type.with_element(element), value.name)
            value.name = ""
            function.ops.append(Op("quant.scast", [value], [outer]))
            replacements[value] = outer
        else:
            continue
        _without(value)
    function.outputs = [replacements.get(value, value) for value in function.outputs]
    module.signatures = module.signatures and [s.with_outputs(replacements) for s in module.signatures]


def _of_rescales(users: Sequence[Op]) -> bool:
    return bool(users) and all(op.name == "tosa.rescale" for op in users)
