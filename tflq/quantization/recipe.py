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

A rule has at least one of the first four, and fits what all that it has fit. Names are patterns (`name_patterns`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from tflq.analysis.observed_ranges import Method
from tflq.dialects.regions import Region
from tflq.errors import OptionError, Reason, check_choice, choices
from tflq.ir.core import Function, Module, Op, Value
from tflq.numerics.ranges import GPTQ, WEIGHT_METHODS
from tflq.passes.regions.tensor_constraints import matcher, near
from tflq.targets.target import RulesFile

Scheme = Literal["int8", "int16x8", "dynamic", "weight-only", "float16"]
STATIC: Final = {"int8": 1 << 8, "int16x8": 1 << 16}
"""Schemes whose activations are quantized, too, and how many values these have."""
WEIGHT_SCHEMES: Final = ("dynamic", "weight-only", "float16")
SCHEMES: Final = (*STATIC, *WEIGHT_SCHEMES)
FLOAT: Final = "float"
BITS: Final = {"int4": 4, "int8": 8}
BLOCKS: Final = (32, 64, 128, 256)
"""How many weights of FULLY_CONNECTED in a row may have one scale."""
_TABLE: Final = "rule"
_WHERE: Final = {"name": "name", "operator": "operator", "from": "start", "to": "end"}
"""The keys that say which operators a rule is of, and their fields."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an operator is quantized: the scheme, or float; the method of its results' ranges; for schemes of weights
    alone, what weights are, how many of them have one scale (0: a channel), and the method of their ranges."""

    scheme: str
    range: str = "minmax"
    weights: str = "int8"
    blocks: int = 0
    weight_range: str = "minmax"

    @property
    def bits(self) -> int:
        """What a weight is stored in."""
        return BITS[self.weights]

    def check(self) -> None:
        """OptionError for values that are not known, or do not fit each other."""
        check_choice("scheme", self.scheme, (*SCHEMES, FLOAT))
        Method.of(self.range)
        check_choice("weights", self.weights, tuple(BITS))
        check_choice("weight_range", self.weight_range, WEIGHT_METHODS)
        if self.blocks not in (0, *BLOCKS) or isinstance(self.blocks, bool):
            remedy = f"give one of {', '.join(map(str, BLOCKS))}"
            raise OptionError(Reason(f"blocks={self.blocks!r} is not known", value=self.blocks, remedy=remedy))
        if self.blocks and (self.scheme, self.weights) != ("dynamic", "int4"):
            remedy = "take scheme dynamic and weights int4, or leave out blocks"
            raise OptionError(Reason("kernels take blocks only of int4, with scheme dynamic", remedy=remedy))
        if self.blocks and self.weight_range == GPTQ:
            remedy = "leave out blocks, or take another weight_range"
            raise OptionError(Reason("gptq is for weights of one scale per channel", remedy=remedy))
        if (self.weights, self.weight_range) != ("int8", "minmax") and self.scheme not in ("dynamic", "weight-only"):
            remedy = "take scheme dynamic or weight-only, or leave out weights and weight_range"
            raise OptionError(Reason(f"scheme '{self.scheme}' has no choice of weights", remedy=remedy))


_WHAT: Final = tuple(field.name for field in fields(Settings))


@dataclass(frozen=True, slots=True)
class Rule:
    """What is asked of some operators. name, operator, start, end: which; empty: any. what: fields of `Settings`, those
    that are asked for. place: where the rule stands, for errors."""

    name: str = ""
    operator: str = ""
    start: str = ""
    end: str = ""
    what: tuple[tuple[str, Any], ...] = ()
    path: str = ""
    place: str = ""

    def error(self, what: str, remedy: str, value: Any = None) -> OptionError:
        return OptionError(Reason(what, self.path, place=self.place, value=value, remedy=remedy))


Recipe = str | os.PathLike[str] | Sequence[Mapping[str, Any]]
"""A file, or its rules."""


def read_recipe(recipe: Recipe | None, keep_float: Sequence[str], default: Settings) -> tuple[Rule, ...]:
    """The rules of a recipe, behind those that keep operators float. default: what the call asks for. OptionError for
    what is no rule; FileError if the file cannot be read."""
    if not all(keep_float):
        remedy = "give names of tensors, or leave it out"
        raise OptionError(Reason("a pattern of what stays float is empty", value=list(keep_float), remedy=remedy))
    kept = tuple(Rule(name=pattern, what=(("scheme", FLOAT),)) for pattern in keep_float)
    if recipe is None:
        return kept
    if not isinstance(recipe, (str, os.PathLike)):
        return kept + tuple(_rule(table, f"rule {place}", Rule(), default) for place, table in enumerate(recipe))
    file = RulesFile(Path(recipe))
    for name in file.content:
        if name != _TABLE:
            file.fail(f"'{name}' is not a table of a recipe", "", name, known=(_TABLE,))
    tables = file.content.get(_TABLE, [])
    if not isinstance(tables, list):
        file.fail(f"'{_TABLE}' is one table, and a recipe has a list of them", "", _TABLE, known=(f"[[{_TABLE}]]",))
    places = [Rule(path=file.path, place=str(file.table_line(_TABLE, place))) for place in range(len(tables))]
    return kept + tuple(_rule(table, f"[[{_TABLE}]]", at, default) for table, at in zip(tables, places, strict=True))


def _rule(table: Any, where: str, at: Rule, default: Settings) -> Rule:
    """A rule of its keys, at a place. OptionError for keys and values that it cannot have."""
    known = (*_WHERE, *_WHAT)
    if not isinstance(table, Mapping):
        raise at.error(f"{where} is {table!r}, and a rule has keys: {', '.join(known)}", "write a table")
    for key, value in table.items():
        if key not in known:
            raise at.error(f"{where}: '{key}' is not a key of a rule", choices(key, known), key)
        if key != "blocks" and (not isinstance(value, str) or not value):
            raise at.error(f"{where}: {key} = {value!r} is not a text", 'write it in quotes: scheme = "int8"', value)
    if not _WHERE.keys() & table.keys():
        raise at.error(f"{where} does not say of which operators it is", f"give {', '.join(_WHERE)}, or several")
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
    return replace(at, what=tuple(what.items()), **{name: table[key] for key, name in _WHERE.items() if key in table})


def _settings(what: Mapping[str, Any], default: Settings) -> Settings:
    """What a rule asks for. With a scheme of its own it has nothing of the call but the method of ranges."""
    own = Settings(what["scheme"], default.range) if what.get("scheme", default.scheme) != default.scheme else default
    return replace(own, **what)


def rounds_by_products(rules: Iterable[Rule], default: Settings) -> bool:
    """Whether weights of an operator are to be rounded by what they are multiplied with on samples."""
    return GPTQ in (default.weight_range, *(dict(rule.what).get("weight_range") for rule in rules))


# Which operators a rule is of.


class Choices:
    """What is asked of each operator of a module: of the call, and by rules. OptionError for a rule that fits none."""

    def __init__(self, module: Module, rules: Sequence[Rule], default: Settings) -> None:
        self.default = default
        self._settings = [_settings(dict(rule.what), default) for rule in rules]
        self._rule: dict[Value, int] = {}
        functions = [function for function in module.functions if function.ops]
        for place, rule in enumerate(rules):
            fitting = [op for function in functions for op in _fitting(function, rule)]
            if not fitting:
                raise _unmatched(module, rule)
            for value in (value for op in fitting for value in op.results):
                self._rule.setdefault(value, place)
        self._named = {value.name: place for value, place in self._rule.items() if value.name}

    def of(self, results: Iterable[Value]) -> Settings:
        """What is asked of an operator, by its results."""
        return self._first(self._rule[value] for value in results if value in self._rule)

    def of_region(self, region: Region) -> Settings:
        """What is asked of the operators that one kernel computes: by the first rule that fits one of them."""
        by_value = [self._rule[value] for value in region.results if value in self._rule]
        return self._first(by_value + [self._named[name] for name in inner_names(region) if name in self._named])

    def _first(self, places: Iterable[int]) -> Settings:
        place = min(places, default=None)
        return self.default if place is None else self._settings[place]

    @property
    def uses_weights(self) -> bool:
        """Whether an operator is asked to have fewer bits in its weights alone."""
        return any(map(self.uses, WEIGHT_SCHEMES))

    @property
    def needs_bins(self) -> bool:
        """Whether a range is asked for that needs a histogram."""
        return any(Method.of(settings.range).needs_bins for settings in (self.default, *self._settings))

    def uses(self, scheme: str) -> bool:
        """Whether an operator is asked to have a scheme."""
        return any(settings.scheme == scheme for settings in (self.default, *self._settings))


def inner_names(region: Region) -> list[str]:
    """The names of what the operators of a region make, without its results."""
    return [value.name for op in region.regions[0].block.ops for value in op.results if value.name]


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
        if known.intersection(value for value in near_side if value is not None):
            reached.add(op)
            known.update(value for value in far_side if value is not None)
    return reached


def _unmatched(module: Module, rule: Rule) -> OptionError:
    """The error of a rule that fits no operator: what of it fits nothing, and what is near."""
    made = [value.name for op in module.ops() for value in op.results if value.name]
    tensors = [value.name for function in module.functions for value in function.values() if value.name]
    operators = sorted({op.short_name for op in module.ops()})
    for text, names, what in (
        (rule.name, made, "no operator makes a tensor"),
        (rule.start, tensors, "there is no tensor"),
        (rule.end, tensors, "there is no tensor"),
    ):
        if text and not any(map(matcher(text), names)):
            return rule.error(f"{what} '{text}'", near(text, names), text)
    if rule.operator and rule.operator not in operators:
        return rule.error(f"there is no operator '{rule.operator}'", choices(rule.operator, operators), rule.operator)
    keys = ", ".join(f"{key} = '{getattr(rule, name)}'" for key, name in _WHERE.items() if getattr(rule, name))
    return rule.error(f"no operator fits {keys} at once", "leave out one of them")
