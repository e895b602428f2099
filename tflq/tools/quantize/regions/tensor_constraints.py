"""Model constraints by the names of tensors, from a program, a file of annotations or a model's own ranges.

A file of annotations is TOML. Its section `tensors` has a line for each pattern of names (`matcher`) with the
constraint on such tensors, as IR writes types; `none`: they stay as they are. The first pattern that fits a name wins.

    [tensors]
    "input" = "!quant.uniform<i8:f32, 0.5:-3>"
    "block_?/*" = "!quant.calibrated<f32<-1.0:3.0>>"
    "logits" = "!quant.any<i16:f32>"
    "*softmax*" = "none"
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from tflq.base.errors import OptionError, ParseError, Reason
from tflq.dialects.regions import SPECS, Rescale
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.parse_types import TypeParser
from tflq.ir.text.print_types import type_text
from tflq.ir.types import (
    BareType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    TensorType,
    is_float,
    is_quantized,
)
from tflq.ir.verifier import axis_problem
from tflq.targets.target import RulesFile
from tflq.tools.quantize.regions.lookup import Port, ports, regions_of
from tflq.tools.quantize.regions.ranges import ACCUMULATED, is_quantizing, stored_of

_SECTION: Final = "tensors"
_NONE: Final = "none"

Constraints = Mapping[str, ElementType | None]
"""By pattern; None: the tensors stay as they are."""


def constrain(module: Module, constraints: Constraints) -> bool:
    """Gives these specs to the ports of all regions whose tensors have such names. Returns whether any changed.

    OptionError if no port's tensor has a name that fits a pattern, or a type does not express a tensor's element type,
    or does not have its axes.
    """
    return _constrain(module, constraints, None)


def constrain_by_file(module: Module, path: Path) -> bool:
    """`constrain` by a file of annotations. OptionError, with the line, also for other faults of the file; FileError if
    it cannot be read."""
    file = RulesFile(path)
    return _constrain(module, {key: _type(file, key, text) for key, text in _section(file).items()}, file)


def _fault(file: RulesFile | None, pattern: str, what: str, remedy: str = "") -> OptionError:
    """The error at a pattern, in a file if it is of one."""
    path, place = ("", "") if file is None else (file.path, str(file.line(_SECTION, pattern)))
    return OptionError(Reason(f"'{pattern}': {what}", path, place=place, value=pattern, remedy=remedy))


def named_in(path: Path) -> Callable[[str], bool]:
    """Whether a tensor of a name is constrained by a file of annotations. Errors as of `constrain_by_file`."""
    matchers = [matcher(pattern) for pattern in _section(RulesFile(path))]
    return lambda name: any(matches(name) for matches in matchers)


def _section(file: RulesFile) -> Mapping[str, Any]:
    """The lines of a file of annotations."""
    file.check_sections((_SECTION,))
    file.check_faults()
    section = file.content.get(_SECTION, {})
    if not isinstance(section, dict):
        file.fail(f"'{_SECTION}' is not a section", "", _SECTION)
    return section


def _type(file: RulesFile, pattern: str, text: Any) -> ElementType | None:
    """The constraint that a line states."""
    if not isinstance(text, str):
        file.fail(f"'{pattern}' is not a string, which a type is written in", _SECTION, pattern)
    if text == _NONE:
        return None
    parser = TypeParser(text, file.path)
    try:
        constraint = parser.type()
        parser.skip()
    except ParseError as error:
        file.fail(f"'{pattern}': {error.reasons[0].what}", _SECTION, pattern)
    if parser.pos < len(text) or not isinstance(constraint, (*SPECS, ScalarType)):
        known = ("!quant.uniform<...>", "!quant.calibrated<f32<min:max>>", "!quant.any<i16:f32>", _NONE)
        file.fail(f"'{pattern}': '{text}' is not a constraint", _SECTION, pattern, known=known)
    return constraint


def _constrain(module: Module, constraints: Constraints, file: RulesFile | None) -> bool:
    matchers = {pattern: matcher(pattern) for pattern in constraints}
    named: dict[str, list[Port]] = {}
    for port, value in _ports(module):
        if value.name:
            named.setdefault(value.name, []).append(port)
    for pattern, matches in matchers.items():
        if not any(map(matches, named)):
            raise _fault(file, pattern, "no tensor between kernels has such a name", near(pattern, named))
    modified = False
    for name, same_name in named.items():
        for pattern in [p for p, matches in matchers.items() if matches(name)][:1]:
            for port in same_name:
                element = port.value.type.element
                if isinstance(element, ScalarType) and not element.is_float and pattern != name:
                    continue  # a pattern is of reals
                modified |= _set(port, _spec(port.value.type, name, pattern, constraints[pattern], file))
    return modified


def _ports(module: Module) -> Iterator[tuple[Port, Value]]:
    """The ports of all regions, with the tensors of the model that each is: its value, or what that is quantized to."""
    for function in module.functions:
        users = function.users()
        for region in regions_of(function.ops):
            for port in ports(region):
                yield from ((port, value) for value in _tensors(port.value, users))


def _tensors(value: Value, users: Mapping[Value, Sequence[Op]]) -> Iterator[Value]:
    """A value, and the tensors of the model that it stands for: quantized, or with the parameters asked for."""
    yield value
    if (stored := stored_of(value)) is not None:
        yield stored
    yield from (op.result for op in users.get(value, ()) if is_quantizing(op) or isinstance(op, Rescale))


def _spec(type: TensorType, name: str, pattern: str, spec: ElementType | None, file: RulesFile | None) -> ElementType:
    """A constraint, as the spec of a port of a type."""
    element = type.element
    assert isinstance(element, ScalarType)
    tensor = f"tensor '{name}' is of {element}"
    if not element.is_float:
        raise _fault(file, pattern, f"{tensor}, and only reals have constraints")
    if spec is None:
        return NoQuantizedType(element)
    expressed = spec if isinstance(spec, ScalarType) else getattr(spec, "expressed", None)
    if expressed != element:
        shown = type_text(BareType.of(spec))
        remedy = f"write a type that expresses {element}"
        raise _fault(file, pattern, f"{tensor}, which {shown} does not express", remedy)
    if (problem := axis_problem(TensorType(type.shape, spec))) is not None:
        raise _fault(file, pattern, f"tensor '{name}': {problem}")
    return spec


def _set(port: Port, spec: ElementType) -> bool:
    """Gives a port a spec that is an annotation. Returns whether it had another one."""
    if port.spec == spec:
        return False
    port.set(spec)
    del port.region.origins
    return True


def take_ranges(module: Module, *, all_ports: bool) -> bool:
    """Gives ports the ranges that the model's file has for their tensors, one min and one max each: ports without any
    constraint, or all of reals, instead of parameters as well. Then parameters of accumulators, stored in 32 bits or
    more, are dropped, since they follow from others. Returns whether any changed."""
    ranges: dict[Port, tuple[float, float]] = {}
    for port, value in _ports(module):
        if port not in ranges and (ends := _range(value)) is not None:
            ranges[port] = ends
    modified = False
    for port, (low, high) in ranges.items():
        element = port.value.type.element
        free = isinstance(port.spec, ScalarType) or all_ports
        if free and is_float(element) and not isinstance(port.spec, NoQuantizedType):
            modified |= _set(port, CalibratedQuantizedType.of(element, low, high))
    if all_ports and ranges:
        regions = (region for function in module.functions for region in regions_of(function.ops))
        for port in (port for region in regions for port in ports(region)):
            if is_quantized(port.spec) and port.spec.storage.bits >= ACCUMULATED:
                modified |= _set(port, port.value.type.element)
    return modified


def _range(value: Value) -> tuple[float, float] | None:
    """The min and max that a file has for a tensor; None if there is not exactly one of each."""
    info = {**(value.info.get("quantization") or {}), **value.info}
    ends = [np.asarray(() if info.get(key) is None else info[key], np.float64).reshape(-1) for key in ("min", "max")]
    if any(end.size != 1 for end in ends):
        return None
    low, high = (float(end[0]) for end in ends)
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low <= high else None


# Patterns of names. `*`: any characters, `?`: one; `re:` and a regular expression of Python, which the whole name has
# to fit. Recipes have them, too.


_REGULAR: Final = "re:"


def matcher(pattern: str) -> Callable[[str], object]:
    """Whether a name fits a pattern. OptionError for a regular expression that is not valid."""
    if pattern.startswith(_REGULAR):
        try:
            return re.compile(pattern.removeprefix(_REGULAR), re.DOTALL).fullmatch
        except re.error as error:
            remedy = "write a regular expression of Python behind 're:'"
            raise OptionError(Reason(f"'{pattern}': {error}", value=pattern, remedy=remedy)) from error
    words = {"*": ".*", "?": "."}
    expression = "".join(words.get(letter, re.escape(letter)) for letter in pattern)
    return re.compile(expression, re.DOTALL).fullmatch


def near(pattern: str, names: Iterable[str]) -> str:
    """The remedy for a pattern that fits none of the names: the names near it."""
    matches = difflib.get_close_matches(pattern, list(names), 3, 0.4)
    return f"near are {', '.join(map(repr, matches))}" if matches else "`tflq inspect --tensors` lists the names"
