"""Pages for people, each one self-contained HTML file: the renderer of all, and the layers page of a comparison.

The layers page lists every operator result of the original in order, with the other model's difference from it. Each
row has the operator, the original's parameters and the formulas of the integer form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tflq.base.errors import MissingPackageError, TflqError
from tflq.base.version import __version__
from tflq.conversion.convert import integer_form
from tflq.dialects.forms import is_tosa
from tflq.dialects.quant import RescaleF32, RescaleF64, Table2D, Table16Bit
from tflq.dialects.registry import description
from tflq.dialects.tfl import convolution as tfl
from tflq.dialects.tfl.arithmetic import Mul
from tflq.dialects.tfl.convolution import BatchMatMul, FullyConnected
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv2D
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale, Table
from tflq.formats.sources import Source, read
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.print_types import attribute_text, quantization, shape_text
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.tools.verify.interface import function_number

if TYPE_CHECKING:
    from jinja2 import Environment

    from tflq.tools.verify.difference import Difference
    from tflq.tools.verify.outcome import Verification


# The plot: a bar for each operator result, as high as its largest difference, with axes that are scaled to the data.


LABELS: Final = 6  # of an axis, at most
DECADES: Final = 12  # of floats: smaller ones get the lowest bar
LOWEST: Final = 2.0  # percent, of a bar that has a difference


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis, and where it is, in percent of the axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale of logarithms to a base, from one power of it to another."""

    base: int
    low: int
    high: int

    def height(self, value: float) -> float:
        """Where a value is, in percent; infinity and NaN are at the top."""
        at = math.log(value, self.base) if math.isfinite(value) else self.high
        return round(min(max(100 * (at - self.low) / (self.high - self.low), LOWEST), 100.0), 1)

    @property
    def ticks(self) -> list[Tick]:
        """Whole powers above the lowest, the highest among them."""
        step = -(-(self.high - self.low) // LABELS)
        powers = range(self.high, self.low, -step)
        return [Tick(100 * (p - self.low) / (self.high - self.low), _power(self.base, p)) for p in powers]


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars of one unit. heights: of each row in percent, None where it has no difference in this unit. across: labels
    of operators, from left to right.
    """

    title: str
    axis: Axis
    heights: Sequence[float | None]
    across: Sequence[Tick]


def plots(rows: Sequence[Row]) -> list[Plot]:
    """A plot for the integers that differ, and one for the floats, if there are any."""
    drawn = []
    for title, integers in (("in LSB", True), ("in floats", False)):
        largest = [_largest(row, integers) for row in rows]
        values = [value for value in largest if value is not None]
        if values:
            axis = axis_for(values, integers=integers)
            heights = [None if value is None else axis.height(value) for value in largest]
            drawn.append(Plot(f"Largest difference {title}, layer by layer", axis, heights, _across(rows)))
    return drawn


def axis_for(values: Sequence[float], *, integers: bool) -> Axis:
    """The axis of some differences above 0: counts from 1/2 to a power of two, floats between powers of ten."""
    finite = [value for value in values if math.isfinite(value)] or [1.0]
    if integers:
        return Axis(2, -1, max(1, math.ceil(math.log2(max(finite)))))
    high = math.ceil(math.log10(max(finite)))
    low = max(math.ceil(math.log10(min(finite))) - 1, high - DECADES)
    return Axis(10, min(low, high - 1), high)


def _largest(row: Row, integers: bool) -> float | None:
    """The largest difference of a row, if it has one in this unit; infinity if it is not a number."""
    apart = row.difference
    if apart is None or apart.equal or (apart.unit == "LSB") != integers:
        return None
    return math.inf if apart.problem or not apart.largest > 0 else apart.largest


def _across(rows: Sequence[Row]) -> list[Tick]:
    """Labels of operators below their bars."""
    step = -(-len(rows) // LABELS)
    return [Tick(100 * (i + 0.5) / len(rows), rows[i].place) for i in range(0, len(rows), step)]


def _power(base: int, power: int) -> str:
    if base == 2:
        return f"{1 << power:,}" if 0 <= power <= 20 else f"2^{power}"
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"1e{power}"


# What an op of the integer form computes, as a formula with its numbers, and what an operator of the source says.


_ROUNDINGS: Final[Mapping[str, str]] = {
    "SINGLE_ROUND": "rounded once, half up",
    "DOUBLE_ROUND": "rounded twice (DOUBLE_ROUND)",
    "INEXACT_ROUND": "rounded as the target likes",
}


def steps(form: Module, operands: Mapping[tuple[int, int], Sequence[str]]) -> dict[tuple[int, int], list[str]]:
    """The formulas by which the integer form computes each operator of the source, by function and number, in order. A
    step calls the result of another by its number: `#1` is the first.

    operands: names of each operator's operands, which are `input 0`, `input 1`, ...
    """
    formulas: dict[tuple[int, int], list[str]] = {}
    numbers: dict[Value, tuple[tuple[int, int], str]] = {}
    for op in form.ops():
        if op.location is None:
            continue
        key = op.location.function, op.location.operator
        lines = formulas.setdefault(key, [])
        names = {value: _name(value, key, numbers, operands.get(key, ())) for value in op.present_operands}
        lines.append(formula(op, {value: name for value, name in names.items() if name}))
        for i, value in enumerate(op.results):
            numbers[value] = key, f"#{len(lines)}" + (f"[{i}]" if len(op.results) > 1 else "")
    return formulas


def _name(
    value: Value,
    key: tuple[int, int],
    numbers: Mapping[Value, tuple[tuple[int, int], str]],
    operands: Sequence[str],
) -> str:
    """A value's name in a step: the number of an earlier step, or an operand of its operator; "" for neither."""
    if value.is_constant:
        return ""
    owner, number = numbers.get(value, (key, ""))
    if number and owner == key:
        return number
    source = value
    while source.producer is not None and source.producer.location is None and len(source.producer.operands) == 1:
        (before,) = source.producer.operands
        if before is None:
            break
        source = before
    if source.name and source.name in operands:
        return f"input {operands.index(source.name)}"
    return f"{number} of operator {owner[1]}" if number else ""


def formula(op: Op, names: Mapping[Value, str] = MappingProxyType({})) -> str:
    """One line: `y = sat_int8((x - 0) * 1814478563 >> 39 ...)`. names: of operands; else they are x, or their type."""
    if special := _special(op, names):
        return f"{shape_text(op.result.type)} = {special}"
    known = None if op.name.startswith("tfl.") else " ".join(description(type(op)).split())
    numbers = ", ".join(f"{name} {attribute_text(value)}" for name, value in op.attributes.items() if value is not None)
    operands = ", ".join("none" if v is None else names.get(v) or _operand(v) for v in op.operands)
    results = ", ".join(shape_text(value.type) for value in op.results)
    text = f"{results} = {op.name.partition('.')[2]}({operands})" if results else f"{op.name}({operands})"
    return "; ".join(part for part in (text, numbers, known) if part)


def _special(op: Op, names: Mapping[Value, str]) -> str:
    """The formula of an op, if its class has a formula of its own; else empty."""
    first = next(iter(op.operands), None)
    x = (names.get(first) if first is not None else "") or "x"
    match op:
        case Rescale():
            return _rescale(op, x)
        case RescaleF64():
            scale = f"{op.scale[0]:.17g}" if op.scale.size == 1 else f"scale[c], {_span(op.scale)}"
            return f"saturate(round({x} · {scale}) in float64, half away from zero{_plus(op.output_zp)})"
        case RescaleF32() if op.after is None and not op.before:
            scale = f"{op.scale[0]:.9g}" if op.scale.size == 1 else f"scale[c], {_span(op.scale)}"
            return f"saturate(rint({x} · {scale}) in float32{_plus(op.output_zp)})"
        case Conv2D() | Conv3D() | DepthwiseConv2D() | TransposeConv2D():
            return _convolution(op, x)
        case Table() | Table2D() | Table16Bit():
            return _table(op.table, x)
        case Clamp():
            return f"min(max({x}, {attribute_text(op.min_val)}), {attribute_text(op.max_val)})"
    return ""


def _rescale(op: Rescale, x: str) -> str:
    x, multiplier, shift = _less(x, op.input_zp), op.multiplier, op.shift
    if multiplier.size == 1:
        real = multiplier / np.exp2(shift.astype(np.float64))
        scaled = f"{x} · {int(multiplier[0])} / 2^{int(shift[0])} (= {_span(real)})"
    else:
        scaled = f"{x} · M[c] / 2^s[c], M {_span(multiplier)}, s {_span(shift)}, {multiplier.size} channels"
    return f"saturate({scaled}, {op.rounding or _ROUNDINGS[op.rounding_mode]}{_plus(op.output_zp)})"


def _convolution(op: Conv2D | Conv3D | DepthwiseConv2D | TransposeConv2D, x: str) -> str:
    taps = f"Σ {_less(x, op.input_zp)} · {_less('w', op.weight_zp)} + b"
    shown = {name: op.attributes[name] for name in ("pad", "out_pad", "stride", "dilation") if name in op.attributes}
    listed = ", ".join(f"{name} {attribute_text(value)}" for name, value in shown.items())
    return f"{taps}; w {shape_text(op.weight.type)}, {listed}"


def _table(entries: Value, x: str) -> str:
    shown = f", {shape_text(entries.type)}: {attribute_text(entries.array)}" if entries.is_constant else ""
    return f"table[{x}]{shown}"


def parameters(op: Op) -> list[tuple[str, str]]:
    """Parameters of an operator in the source: its options, then each tensor's type and quantization."""
    options = [(name, attribute_text(value)) for name, value in op.attributes.items() if value is not None]
    sides = [(f"input {i}", v) for i, v in enumerate(op.operands) if v is not None]
    sides += [("result" if len(op.results) == 1 else f"result {i}", v) for i, v in enumerate(op.results)]
    return options + [(side, _quantized(value)) for side, value in sides]


def real_multipliers(op: Op) -> str:
    """The scale of the products that an operator sums, over the scale of its result: what RESCALE stands for."""
    if not isinstance(op, _PRODUCTS):
        return ""
    types = [v.type.element if v is not None else None for v in (*op.operands[:2], op.result)]
    scales = [scale for element in types if (scale := _scales(element)) is not None]
    if len(scales) < len(types):
        return ""
    x, w, y = scales
    with np.errstate(divide="ignore", invalid="ignore"):
        real = x * w / y
    return _span(real) if real.size == 1 else f"{_span(real)}, {real.size} channels"


_PRODUCTS: Final = (tfl.Conv2D, tfl.DepthwiseConv2D, FullyConnected, Mul, BatchMatMul, tfl.Conv3D)


def _scales(element: Any) -> np.ndarray | None:
    if isinstance(element, UniformQuantizedType):
        return np.array([element.scale])
    return element.scales.astype(np.float64) if isinstance(element, UniformQuantizedPerAxisType) else None


def _quantized(value: Value) -> str:
    element = value.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        zeros = f", zero points {_span(element.zero_points)}" if element.zero_points.any() else ""
        parameters_text = f"scale {_span(element.scales)} along axis {element.axis}{zeros}"
    elif isinstance(element, UniformQuantizedType):
        parameters_text = f"scale {element.scale:.9g}, zero point {element.zero_point}"
    else:
        parameters_text = ", ".join(f"{name} {text}" for name, text in quantization(element).items())
    constant = "constant" if value.is_constant else ""
    return ", ".join(part for part in (shape_text(value.type), parameters_text, constant) if part)


def _operand(value: Value) -> str:
    if value.is_constant and value.type.storage.numpy and value.array.size <= 4:
        return attribute_text(value.array)
    return shape_text(value.type)


def _less(name: str, zero: int) -> str:
    return name if not zero else f"({name} {'-' if zero > 0 else '+'} {abs(zero)})"


def _plus(zero: int) -> str:
    return "" if not zero else f", {'+' if zero > 0 else '-'} {abs(zero)}"


def _span(values: np.ndarray) -> str:
    """`3 to 9`, or the one value that all have."""
    low, high = values.min(), values.max()
    shown = [f"{v:.7g}" if values.dtype.kind == "f" else str(int(v)) for v in (low, high)]
    return shown[0] if low == high else f"{shown[0]} to {shown[1]}"


# Templates to HTML: jinja2 (of the extra `verify`), with everything escaped.


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        what = "pages are made with jinja2, which is not installed"
        raise MissingPackageError(what, "verify") from error
    loader = PackageLoader("tflq.tools.pages")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **values: Any) -> str:
    """A template of `templates/`, filled in. TflqError without jinja2."""
    return _environment().get_template(template).render(**values)


def render_pieces(template: str, **values: Any) -> Iterator[str]:
    """Pieces of a rendered template, in order: values that come late in the template may be known late. TflqError
    without jinja2."""
    return _environment().get_template(template).generate(**values)


Formulas: TypeAlias = Mapping[tuple[int, int], list[str]]
"""Formulas of each operator in the integer form, by function and number."""

LINES = 60
"""Formulas of an operator that are shown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operator result. difference: None if it was not compared. first: the first that differs in its entry."""

    entry: str
    operator: int
    opcode: str
    tensor: str
    type: str
    difference: Difference | None
    first: bool
    parameters: list[tuple[str, str]]
    formulas: list[str]
    more: int  # formulas that are not shown
    multipliers: str

    @property
    def status(self) -> str:
        if self.difference is None:
            return "not compared"
        if self.difference.equal:
            return "equal"
        return "accepted" if self.difference.accepted else "differs"

    @property
    def short(self) -> str:
        """The tensor's name, without the names of tensors that were fused into its operator."""
        first, _, rest = self.tensor.partition(";")
        return f"{first}; …" if rest else first

    @property
    def place(self) -> str:
        """Its operator's number, with the signature's key if there are several."""
        return f"{self.entry}: {self.operator}" if self.entry else str(self.operator)


def layers_page(model: Source, result: Verification) -> str:
    """The page, as HTML, of a verification with layers whose original is `model`."""
    formulas, problem = _formulas(read(model))
    rows = rows_of(read(model), result, formulas)
    values = {"result": result, "rows": rows, "plots": plots(rows), "problem": problem}
    return render("layers.html", **values, version=__version__)


def rows_of(module: Module, result: Verification, formulas: Formulas) -> list[Row]:
    """A row for each operator result of the original's entries that were run."""
    entries = list(dict.fromkeys(run.entry for run in result.runs))
    differences: dict[tuple[str, int, str], Difference] = {}
    for each in (*(result.layers.every if result.layers else ()), *result.expected):
        key = each.entry, each.operator, each.tensor
        differences[key] = differences[key] + each.difference if key in differences else each.difference
    rows = []
    for entry in entries:
        function, first = function_number(module, entry), True
        for number, op in enumerate(module.functions[function].ops):
            for value in op.results:
                difference = differences.get((entry, number, value.name))
                differs = difference is not None and not difference.equal
                lines = formulas.get((function, number), [])
                rows.append(
                    Row(
                        entry,
                        number,
                        op.short_name.upper(),
                        value.name,
                        shape_text(value.type),
                        difference,
                        differs and first,
                        parameters(op),
                        lines[:LINES],
                        max(len(lines) - LINES, 0),
                        real_multipliers(op),
                    )
                )
                first &= not differs
    return rows


def _formulas(module: Module) -> tuple[Formulas, str]:
    """The formulas of a model, which this changes; and why they are missing."""
    operands = {
        (i, n): [value.name if value is not None else "" for value in op.operands]
        for i, function in enumerate(module.functions)
        for n, op in enumerate(function.ops)
    }
    if is_tosa(module):
        ops = {(i, n): op for i, function in enumerate(module.functions) for n, op in enumerate(function.ops)}
        return {key: [formula(op, {v: f"input {i}" for i, v in _inputs(op)})] for key, op in ops.items()}, ""
    try:
        return steps(integer_form(module), operands), ""
    except TflqError as error:
        return {}, str(error)


def _inputs(op: Op) -> list[tuple[int, Value]]:
    return [(i, value) for i, value in enumerate(op.operands) if value is not None and not value.is_constant]
