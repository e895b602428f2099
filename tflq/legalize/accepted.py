"""Types that the text form has and TFLite's files do not: honoured, or refused before anything is converted.

!quant.uniform<i8<-8:7>:f32, 0.5>     results are clamped to the bounds; inputs are taken to keep them
!quant.calibrated<f32<-1.0:1.0>>      a float, its statistics beside it, as files have them
!quant.any<i8:f32>                    refused: nothing says the parameters
!quant.uniform<i8:f64, 0.1>           refused: kernels take scales of float32
"""

from __future__ import annotations

from collections.abc import Iterator

from tflq.dialects.calls import entry_functions
from tflq.dialects.effects import is_variable
from tflq.errors import UnsupportedError
from tflq.ir.core import Function, Location, Module, Value
from tflq.ir.quant_constraints import bounds_problem
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    NoQuantizedType,
    QuantizedType,
    ScalarType,
    f32,
    is_narrowed,
    is_quantized,
)
from tflq.light import dataclass, field, replace

__all__ = ["Accepted", "accept"]

_ANY = "its type is !quant.any, and nothing says its parameters; state them (!quant.uniform)"
_EXPRESSED = "it expresses {}, and kernels compute with what expresses f32; state its scales as those of f32"
_FILES = "state types that a TFLite file has"
_STATE = "nothing keeps the state of an operator within the bounds <{}:{}>; leave them out"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a module's types said that its values do not say any more: the bounds of those that have any, and a warning
    for each edge of the model that has."""

    bounds: dict[Value, tuple[int, int]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def accept(module: Module) -> Accepted:
    """A module (changed in place) of the types that a TFLite file has. UnsupportedError lists every tensor whose type
    cannot be honoured."""
    found, refused = Accepted(), list[str]()
    for index, function in enumerate(module.functions):
        _locate(module, index, function)
        scratch = {v for op in function.ops for v in op.intermediates if v is not None}
        for value in function.values():
            if isinstance(value.type.element, ScalarType):
                continue
            if problem := _take(value, found, held=is_variable(value) or value in scratch):
                refused.append(f"subgraph {index}, {value.label}: {problem}")
    if refused:
        raise UnsupportedError(f"{len(refused)} tensor(s) have types that cannot be converted:", refused, remedy=_FILES)
    if found.bounds:
        entries = [module.functions[index] for index in entry_functions(module)]
        found.warnings.extend(w for function in entries for w in _edges(function, found.bounds))
    return found


def _locate(module: Module, index: int, function: Function) -> None:
    """Gives operators that came without a location the one that reading a file would give them: reports go by it."""
    for number, op in enumerate(function.ops):
        if op.location is None:
            tensor = op.result.name if op.results else ""
            op.location = Location(module.source, index, number, op.name.removeprefix("tfl.").upper(), tensor)


def _take(value: Value, found: Accepted, *, held: bool) -> str:
    """Gives a value a type of TFLite's. Why that cannot be; empty if it can."""
    element = value.type.element
    if isinstance(element, AnyQuantizedType):
        return _ANY
    if isinstance(element, CalibratedQuantizedType):
        if element.expressed == f32:
            value.info = {"quantization": {"min": (element.minimum,), "max": (element.maximum,)}, **value.info}
        value.type = value.type.with_element(element.expressed)
        return ""
    if isinstance(element, NoQuantizedType):
        value.type = value.type.with_element(element.expressed)
        return ""
    if not is_quantized(element):
        return ""
    if element.expressed != f32:
        return _EXPRESSED.format(element.expressed)
    if not is_narrowed(element):
        return ""
    low, high = element.storage_min, element.storage_max
    if held:
        return _STATE.format(low, high)
    if problem := bounds_problem(value):
        return problem
    if not value.is_constant:
        found.bounds[value] = low, high
    value.type = value.type.with_element(_widened(element))
    return ""


def _widened(element: QuantizedType) -> QuantizedType:
    """The type with all of its storage."""
    return replace(element, storage_min=element.storage.minimum, storage_max=element.storage.maximum)


def _edges(function: Function, bounds: dict[Value, tuple[int, int]]) -> Iterator[str]:
    """What a caller has to know who no longer finds the bounds in the types."""
    for value in function.inputs:
        if value in bounds:
            low, high = bounds[value]
            yield (
                f"input '{value.name}' is taken to hold integers from {low} to {high}, which a file cannot state; give "
                "it no others"
            )
    for value in function.outputs:
        if value in bounds and value not in function.inputs:
            low, high = bounds[value]
            yield (
                f"output '{value.name}' holds integers from {low} to {high}, which a file cannot state; tell whoever "
                "reads it"
            )
