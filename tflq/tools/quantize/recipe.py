"""A recipe: what is asked of single operators of a network, as TOML. Of several rules the first that fits wins.

    [[rule]]
    name = "block_?/*"        # operators that make a tensor of such a name
    operator = "conv_2d"      # ... that are such operators
    from = "a"                # ... that need tensor a
    to = "b"                  # ... that tensor b needs: with both, the part between them
    scheme = "int16x8"        # or float, or any scheme of `tflq quantize`
    range = "percentile:99.9" # of their results

    [[rule]]
    operator = "fully_connected"
    scheme = "weight-only"
    weights = "int4"

A rule has at least one of the first four, and fits what all that it has fit. Names are patterns (`matcher`).

With static ranges an operator of another scheme is a kernel with other parameters, or stays float.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from tflq.analysis.statistics import Method
from tflq.base.arguments import check_choice, choices, not_expected
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.dialects.declare import trait_of
from tflq.dialects.parameters import HybridKernel
from tflq.dialects.regions import Region
from tflq.ir.facts import unique, walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType, f32, i8, i16, is_float
from tflq.numerics.ranges import GPTQ, RECONSTRUCT, WEIGHT_METHODS
from tflq.targets.load import JOINED, Kernels
from tflq.targets.target import RulesFile
from tflq.tools.quantize.regions.lookup import is_real, lookup, ports, regions_of
from tflq.tools.quantize.regions.quantize import leave_real
from tflq.tools.quantize.regions.ranges import (
    Range,
    is_dequantizing,
    is_quantizing,
    is_statement,
    parameters,
    same_value,
)
from tflq.tools.quantize.regions.tensor_constraints import matcher, near
from tflq.tools.quantize.report import QuantizedRow, inner_names

Scheme = Literal["int8", "int16x8", "dynamic", "weight-only", "float16"]
STATIC: Final = {"int8": 1 << 8, "int16x8": 1 << 16}
"""Schemes whose activations are quantized, too, and how many values these have."""
WEIGHT_SCHEMES: Final = ("dynamic", "weight-only", "float16")
SCHEMES: Final = (*STATIC, *WEIGHT_SCHEMES)
FLOAT: Final = "float"
BITS: Final = {"int2": 2, "int4": 4, "int8": 8}
_FEWEST: Final = 4
"""Bits of weights that kernels of quantized activations take."""
BLOCKS: Final = (32, 64, 128, 256)
"""Numbers of weights of FULLY_CONNECTED in a row that may have one scale."""
_TABLE: Final = "rule"
METHODS: Final = ("range", "equalize", "headroom", "correct_biases")
"""The keys at the top, of the whole network (`methods`)."""
WHOLE: Final = ("scheme", "weights", "blocks", "weight_method")
"""Further ones, in place of the call's options (`whole_settings`)."""
WHERE: Final = {"name": "name", "operator": "operator", "from": "start", "to": "end"}
"""The keys that say which operators a rule is of, and their fields."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Quantization of an operator: the scheme, or float; the method of its results' ranges.

    Of weights: their type, how many of them have one scale (0: a channel), and the method of their ranges.
    """

    scheme: str
    range: str = "minmax"
    weights: str = "int8"
    blocks: int = 0
    weight_method: str = "minmax"

    @property
    def bits(self) -> int:
        """Bits of a stored weight."""
        return BITS[self.weights]

    def check(self) -> None:
        """OptionError for values that are not known, or do not fit each other."""
        check_choice("scheme", self.scheme, (*SCHEMES, FLOAT))
        Method.of(self.range)
        check_choice("weights", self.weights, tuple(BITS))
        check_choice("weight_method", self.weight_method, WEIGHT_METHODS)
        if self.blocks not in (0, *BLOCKS) or isinstance(self.blocks, bool):
            remedy = f"give one of {', '.join(map(str, BLOCKS))}"
            raise OptionError(Reason(f"blocks={self.blocks!r} is not known", value=self.blocks, remedy=remedy))
        if self.blocks and self.scheme != "weight-only" and (self.scheme, self.weights) != ("dynamic", "int4"):
            remedy = "take scheme weight-only, or dynamic and weights int4, or leave out blocks"
            what = "blocks are for scheme weight-only, and for int4 with dynamic: no runtime takes others"
            raise OptionError(Reason(what, value=self.blocks, remedy=remedy))
        if self.scheme in STATIC and self.bits < _FEWEST:
            remedy = "take int4, or scheme dynamic or weight-only"
            what = f"kernels of quantized activations take weights of {_FEWEST} bits at least, not {self.weights}"
            raise OptionError(Reason(what, value=self.weights, remedy=remedy))
        if (self.weights, self.weight_method) != ("int8", "minmax") and self.scheme in ("float16", FLOAT):
            remedy = "take another scheme, or leave out weights and weight_method"
            raise OptionError(Reason(f"scheme '{self.scheme}' has no choice of weights", remedy=remedy))


_WHAT: Final = tuple(field.name for field in fields(Settings))
_FORMER: Final = {"weight_range": "weight_method"}
"""Keys by their former names."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Settings of some operators. name, operator, start, end: which operators; empty: any. what: fields of `Settings`
    that the rule sets. place: where the rule stands, for errors."""

    name: str = ""
    operator: str = ""
    start: str = ""
    end: str = ""
    what: tuple[tuple[str, Any], ...] = ()
    path: str = ""
    place: str = ""

    def error(self, what: str, remedy: str, value: Any = None) -> OptionError:
        return OptionError(Reason(what, self.path, place=self.place, value=value, remedy=remedy))


Recipe = FilePath | Sequence[Mapping[str, Any]]
"""A file, or its rules."""


def opened_recipe(recipe: Recipe | None) -> RulesFile | Recipe | None:
    """A recipe whose file, if it is one, is read. FileError if that cannot be read, OptionError if it is not TOML."""
    return RulesFile(Path(recipe)) if isinstance(recipe, (str, os.PathLike)) else recipe


def read_recipe(
    recipe: RulesFile | Recipe | None,
    keep_float: Sequence[str],
    default: Settings,
    *,
    path: str = "",
    numbers: Sequence[int] = (),
) -> tuple[Rule, ...]:
    """The rules of a recipe, behind those that keep operators float. default: what the call asks for. path, numbers:
    for errors, the file that a list comes from, and the number of each rule there. OptionError for what is no rule;
    FileError if the file cannot be read."""
    if not all(keep_float):
        remedy = "give names of tensors, or leave it out"
        raise OptionError(Reason("a pattern of what stays float is empty", value=list(keep_float), remedy=remedy))
    float_rules = tuple(Rule(name=pattern, what=(("scheme", FLOAT),)) for pattern in keep_float)
    if recipe is None:
        return float_rules
    if not isinstance(recipe, (str, os.PathLike, list, tuple, RulesFile)):
        raise not_expected("recipe", recipe, "a file, or a list of its rules")
    if isinstance(recipe, (list, tuple)):
        pairs = zip(numbers or range(len(recipe)), recipe, strict=True)
        return float_rules + tuple(_rule(table, f"rule {number}", Rule(path=path), default) for number, table in pairs)
    file = recipe if isinstance(recipe, RulesFile) else RulesFile(Path(recipe))
    for name in file.content:
        if name not in (_TABLE, *WHOLE, *METHODS):
            file.fail(f"'{name}' is not a table of a recipe", "", name, known=(_TABLE, *WHOLE, *METHODS))
    tables = file.content.get(_TABLE, [])
    if not isinstance(tables, list):
        file.fail(f"'{_TABLE}' is one table, and a recipe has a list of them", "", _TABLE, known=(f"[[{_TABLE}]]",))
    places = [Rule(path=file.path, place=str(file.locate((_TABLE, place))[0])) for place in range(len(tables))]
    return float_rules + tuple(
        _rule(table, f"[[{_TABLE}]]", at, default) for table, at in zip(tables, places, strict=True)
    )


def whole_settings(recipe: RulesFile | None, default: Settings) -> Settings:
    """The settings of the whole network: those of the call, and what the top of a recipe's file says. With a scheme
    there all are the recipe's, but for the range. OptionError for values that they cannot have."""
    chosen = {} if recipe is None else {key: recipe.content[key] for key in WHOLE if key in recipe.content}
    if recipe is None or not chosen:
        return default
    for key, value in chosen.items():
        if key != "blocks" and not isinstance(value, str):
            recipe.fail(f"{key} is {value!r}, not a text", "", key, known=(f'{key} = "..."',))
    base = Settings(chosen["scheme"], default.range) if "scheme" in chosen else default
    settings = replace(base, **chosen)
    try:
        check_choice("scheme", settings.scheme, SCHEMES)
        settings.check()
    except OptionError as error:
        reason = error.reasons[0]
        key = next((key for key in chosen if chosen[key] == reason.value), next(iter(chosen)))
        recipe.fault(reason.what, "", key, remedy=reason.remedy)
        recipe.check_faults()
    return settings


def _rule(table: Any, where: str, at: Rule, default: Settings) -> Rule:
    """A rule of its keys, at a place. OptionError for keys and values that it cannot have."""
    known = (*WHERE, *_WHAT)
    if not isinstance(table, Mapping):
        raise at.error(f"{where} is {table!r}, and a rule has keys: {', '.join(known)}", "write a table")
    table = {_FORMER.get(key, key): value for key, value in table.items()}
    for key, value in table.items():
        if key not in known:
            raise at.error(f"{where}: '{key}' is not a key of a rule", choices(key, known), key)
        if key != "blocks" and (not isinstance(value, str) or not value):
            fault = "is empty" if value == "" else "is not a text"
            raise at.error(f"{where}: {key} = {value!r} {fault}", f'write it in quotes: {key} = "..."', value)
    if not WHERE.keys() & table.keys():
        raise at.error(f"{where} does not say of which operators it is", f"give {', '.join(WHERE)}, or several")
    if not set(_WHAT) & table.keys():
        raise at.error(f"{where} asks for nothing", f"give {', '.join(_WHAT)}, or several")
    what = {key: table[key] for key in _WHAT if key in table}
    try:
        _settings(what, default).check()
        for key in ("name", "from", "to"):
            matcher(table.get(key, ""))
    except OptionError as error:
        reason = error.reasons[0]
        raise at.error(f"{where}: {reason.what}", reason.remedy, reason.value) from error
    return replace(at, what=tuple(what.items()), **{name: table[key] for key, name in WHERE.items() if key in table})


def _settings(what: Mapping[str, Any], default: Settings) -> Settings:
    """The settings of a rule. A rule with a scheme has nothing of the call but the method of ranges."""
    base = Settings(what["scheme"], default.range) if what.get("scheme", default.scheme) != default.scheme else default
    return replace(base, **what)


def rounds_by_products(rules: Iterable[Rule], default: Settings) -> bool:
    """Whether weights of an operator whose activations stay float are to be rounded by what the float network
    multiplies them with on samples."""
    return any(
        each.weight_method == GPTQ and each.scheme not in STATIC
        for each in (default, *(_settings(dict(rule.what), default) for rule in rules))
    )


def fits_weights(rules: Iterable[Rule], default: Settings) -> bool:
    """Whether weights of an operator are to be fitted to what the quantized network multiplies them with on samples."""
    return any(map(_is_fitted, (default, *(_settings(dict(rule.what), default) for rule in rules))))


def _is_fitted(settings: Settings) -> bool:
    method = settings.weight_method
    return method == RECONSTRUCT or (method == GPTQ and settings.scheme in STATIC)


# Which operators a rule is of.


class Choices:
    """The settings of each operator of a module: of the call, and by rules. OptionError for a rule that fits none."""

    def __init__(self, module: Module, rules: Sequence[Rule], default: Settings) -> None:
        self.default = default
        self._settings = [_settings(dict(rule.what), default) for rule in rules]
        self._rule: dict[Value, int] = {}
        functions = [function for function in module.functions if function.ops]
        self._ops = [op for function in functions for op in function.ops]
        for place, rule in enumerate(rules):
            fitting = [op for function in functions for op in _fitting(function, rule)]
            if not fitting:
                raise _unmatched(module, rule)
            for value in (value for op in fitting for value in op.results):
                self._rule.setdefault(value, place)
        self._named = {value.name: place for value, place in self._rule.items() if value.name}

    def of(self, results: Iterable[Value]) -> Settings:
        """The settings of an operator, by its results."""
        return self._first(self._rule[value] for value in results if value in self._rule)

    def of_region(self, region: Region) -> Settings:
        """The settings of the operators that one kernel computes: by the first rule that fits one of them."""
        by_value = [self._rule[value] for value in region.results if value in self._rule]
        return self._first(by_value + [self._named[name] for name in inner_names(region) if name in self._named])

    def fitted(self) -> dict[str, str]:
        """The method of operators whose weights are to be fitted to the quantized network, by the names of results."""
        pairs = ((op.results, self.of(op.results)) for op in self._ops)
        return {v.name: settings.weight_method for values, settings in pairs if _is_fitted(settings) for v in values}

    def _first(self, places: Iterable[int]) -> Settings:
        place = min(places, default=None)
        return self.default if place is None else self._settings[place]

    @property
    def needs_bins(self) -> bool:
        """Whether a range is asked for that needs a histogram."""
        return any(Method.of(settings.range).needs_bins for settings in (self.default, *self._settings))

    @property
    def static(self) -> list[str]:
        """The schemes with ranges of activations that are asked for, first that of the network."""
        schemes = [settings.scheme for settings in (self.default, *self._settings)]
        return sorted((scheme for scheme in STATIC if scheme in schemes), key=lambda each: each != self.default.scheme)


def _fitting(function: Function, rule: Rule) -> list[Op]:
    """The operators of a function that a rule is of."""
    fits = matcher(rule.name)
    after = _reached(function, rule.start, forwards=True) if rule.start else None
    before = _reached(function, rule.end, forwards=False) if rule.end else None
    return [
        op
        for op in function.ops
        if (not rule.name or any(value.name and fits(value.name) for value in op.results))
        and (not rule.operator or op.short_name == rule.operator)
        and (after is None or op in after)
        and (before is None or op in before)
    ]


def _reached(function: Function, pattern: str, *, forwards: bool) -> set[Op]:
    """The operators that need a tensor of such a name, or that it needs."""
    fits: Callable[[str], object] = matcher(pattern)
    known = {value for value in function.values() if value.name and fits(value.name)}
    reached: set[Op] = set()
    for op in function.ops if forwards else reversed(function.ops):
        near_side, far_side = (op.operands, op.results) if forwards else (op.results, op.operands)
        if not known.isdisjoint(near_side):
            reached.add(op)
            known.update(unique(far_side))
    return reached


def _unmatched(module: Module, rule: Rule) -> OptionError:
    """The error of a rule that fits no operator: what of it fits nothing, and what is near."""
    results = [value.name for op in module.ops() for value in op.results if value.name]
    tensors = [value.name for function in module.functions for value in function.values() if value.name]
    operators = sorted({op.short_name for op in module.ops()})
    for text, names, what in (
        (rule.name, results, "no operator makes a tensor"),
        (rule.start, tensors, "there is no tensor"),
        (rule.end, tensors, "there is no tensor"),
    ):
        if text and not any(map(matcher(text), names)):
            return rule.error(f"{what} '{text}'", near(text, names), text)
    if rule.operator and rule.operator not in operators:
        return rule.error(
            f"the network has no operator '{rule.operator}'", choices(rule.operator, operators), rule.operator
        )
    keys = ", ".join(f"{key} = '{getattr(rule, name)}'" for key, name in WHERE.items() if getattr(rule, name))
    return rule.error(f"no operator fits {keys} at once", "leave out one of them")


# Operators of a network with static ranges that have another scheme than the rest, or stay float.


SAME_SCALE: Final = "same_scale"
"""The constraint along which one range decides."""
_STORAGES = {"int8": i8, "int16x8": i16}


def mixed_target(target: FilePath | None, chosen: Choices) -> str:
    """The kernels that decide: of a device, or of the network's scheme, then of those that single operators have."""
    return str(target) if target else JOINED.join(chosen.static)


def mark(module: Module, chosen: Choices, kernels: Kernels) -> list[Region]:
    """Gives ports of regions what is asked of them: that they stay as they are, or parameters for their ranges on the
    storage of another scheme than the network's.

    Returns the regions along which one range decides, and that are to stay float: not before parameters have gone along
    them (`leave_float`), so that what is rounded before such an operator is rounded to the same steps behind it.
    """
    along = []
    for region in regions_of(module.ops()):
        scheme = chosen.of_region(region).scheme
        if scheme not in STATIC and _has_one_scale(region, kernels):
            along.append(region)
        elif scheme not in STATIC:
            keep(region)
        elif scheme != chosen.static[0]:
            storage = _STORAGES[scheme]
            wide, zero = AnyQuantizedType(storage, f32, storage.minimum, storage.maximum), 0 if storage == i16 else None
            for port in ports(region):
                spec = port.spec
                if isinstance(spec, CalibratedQuantizedType) and not same_value(port.value).is_constant:
                    port.set(parameters(Range.of(spec), wide, zero))
    return along


def _has_one_scale(region: Region, kernels: Kernels) -> bool:
    match = lookup(kernels, region, region.input_specs, region.output_specs)
    return match is not None and any(name == SAME_SCALE for name, _ in match.signature.constraints)


def leave_float(regions: Sequence[Region]) -> None:
    """Has regions stay float whose ports have parameters."""
    for region in regions:
        leave_real(region)
        keep(region)


def keep(region: Region) -> None:
    """Has a region stay float."""
    for port in ports(region):
        element = port.value.type.element
        if is_float(element):
            port.set(NoQuantizedType(element))


# Islands: operators that nothing but floats come to and go from. What no kernel of the target computes stays float, and
# what is quantized between such needs a QUANTIZE before it and a DEQUANTIZE behind, and rounds. Where there are sums of
# products among it, that is what quantization is for; where there are none, it stays float, too: a mean, to which a
# number is added, between SQUARED_DIFFERENCE and RSQRT.


BETWEEN: Final = "only operators that stay float are before and behind it"


def keep_islands(module: Module, kernels: Kernels, floats: Collection[Region]) -> list[QuantizedRow]:
    """Keeps regions float that would be quantized between floats alone. floats: those that stay so whatever their
    specs are. Returns their rows."""
    rows = []
    for function in module.functions:
        for region in _islands(function, kernels, floats):
            keep(region)
            rows.append(QuantizedRow(region.kernel, region.result.name, quantized=False, why=BETWEEN))
    return rows


def _islands(function: Function, kernels: Kernels, floats: Collection[Region]) -> list[Region]:
    """The regions that have a kernel and are joined by values only with such as have no sums of products, and with
    operators on floats."""
    regions = [region for region in regions_of(function.ops) if region not in floats]
    known = [each for each in regions if lookup(kernels, each, each.input_specs, each.output_specs) is not None]
    users, ends = function.users(), {same_value(value) for value in function.outputs}
    beside = {region: list(_beside(region, users, ends)) for region in known}
    waiting = [region for region in known if None in beside[region] or _has_products(region)]
    bound = set(waiting)
    while waiting:
        joined = [other for other in beside[waiting.pop()] if other in beside and other not in bound]
        bound.update(joined)
        waiting += joined
    return [region for region in known if region not in bound]


def _beside(region: Region, users: Mapping[Value, Sequence[Op]], ends: Collection[Value]) -> Iterator[Op | None]:
    """The operators that make and read a region's reals. None: it has reals that are at an end of the network or
    quantized already, or none but constants."""
    alone = True
    for port in (port for port in ports(region) if is_real(port.spec)):
        value = same_value(port.value)
        if value.is_constant:
            continue
        if value in ends:
            yield None
        if port.is_output:
            yield from _readers(value, users)
        else:
            alone = False
            yield None if is_dequantizing(value.producer) else value.producer
    if alone:
        yield None


def _readers(value: Value, users: Mapping[Value, Sequence[Op]]) -> Iterator[Op | None]:
    """The operators that read a value, also behind what only says something of it."""
    for op in users.get(value, ()):
        if is_quantizing(op):
            yield None
        elif is_statement(op):
            yield from _readers(op.result, users)
        else:
            yield op


def _has_products(region: Region) -> bool:
    """Whether there are sums of products inside, which kernels compute with stored weights."""
    return any(trait_of(op, HybridKernel) is not None for op in walk(region.regions[0].block.ops))
