"""Methods of a whole network, as the keys at the top of a recipe, and a recipe as text.

    range = "mse"            # of activations, as --range
    equalize = true          # channels
    headroom = true          # of what only a SOFTMAX reads
    correct_biases = true

They are what `--range auto` chooses by samples; a recipe with one of them says which are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tflq.analysis.statistics import Method
from tflq.base.errors import OptionError
from tflq.targets.target import RulesFile
from tflq.tools.quantize.recipe import METHODS, WHERE, WHOLE, Rule, Settings


@dataclass(frozen=True, slots=True)
class Methods:
    """Methods of a network with static ranges, but for `equalize`, which is of all."""

    range: str = "minmax"
    equalize: bool = False
    headroom: bool = False
    correct_biases: bool = False


def methods_of(recipe: RulesFile | None, range: str) -> Methods:
    """The methods at the top of a recipe's file; with a range, where it says none. OptionError for values that they
    cannot have."""
    if recipe is None:
        return Methods(range)
    chosen: dict[str, Any] = {key: recipe.content[key] for key in METHODS if key in recipe.content}
    for key, value in chosen.items():
        if key == "range" and not isinstance(value, str):
            recipe.fail(f"range is {value!r}, not a text", "", key, known=('range = "mse"',))
        if key != "range" and not isinstance(value, bool):
            recipe.fail(f"{key} is {value!r}, not a truth value", "", key, known=(f"{key} = true",))
    try:
        Method.of(chosen.get("range", range))
    except OptionError as error:
        recipe.fail(error.reasons[0].what, "", "range")
    return Methods(**{"range": range, **chosen})


_SPARE: Final = Methods()


def recipe_text(rules: Sequence[Rule], methods: Methods, whole: Settings) -> str:
    """A recipe of rules, methods and the settings of the whole network, as TOML."""
    spare = Settings("")
    top = {key: getattr(whole, key) for key in WHOLE if getattr(whole, key) != getattr(spare, key)}
    top |= {key: getattr(methods, key) for key in METHODS if getattr(methods, key) != getattr(_SPARE, key)}
    lines = [f"{key} = {_value(value)}" for key, value in top.items()]
    for rule in rules:
        where = {key: getattr(rule, name) for key, name in WHERE.items() if getattr(rule, name)}
        lines += ["", "[[rule]]", *(f"{key} = {_value(value)}" for key, value in (where | dict(rule.what)).items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def _value(value: Any) -> str:
    """A text, number or truth value in TOML, whose texts in quotes are those of JSON."""
    import json

    return json.dumps(value).replace("\x7f", "\\u007f")
