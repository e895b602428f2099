"""Recipes of ai-edge-quantizer and litert-quantizer (JSON), as rules.

Such a recipe is a list of rules: `regex` is searched in the name of an operator's result, `operation` is its kind or
`*`, `algorithm_key` and `op_config` say what becomes of it. The last rule that fits and that the operator can have
decides, here the first; an operator that none fits stays float. Source: `recipe_manager.py` and `qtyping.py` of
google-ai-edge/ai-edge-quantizer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Required, TypedDict, TypeGuard, cast

from tflq.base.documents import read_json
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.ir.module import Module
from tflq.tools.quantize.recipe import FLOAT, STATIC, Scheme
from tflq.tools.quantize.regions.tensor_constraints import matcher

_EVERY: Final = "*"
_PRODUCTS: Final = ("fully_connected", "conv_2d", "depthwise_conv_2d", "transpose_conv", "batch_matmul")
"""Operators that have weights, which rules of weights alone are for."""
_METHODS: Final = {"min_max_uniform_quantize": "minmax", "OCTAV": "octav", "MSE": "mse", "GPTQ": "gptq"}
_NAMES: Final = {"CONV_2D_TRANSPOSE": "transpose_conv"}
_NO_KINDS: Final = ("INPUT", "OUTPUT", "CUSTOM_OP", "STABLEHLO_COMPOSITE")
_STATIC_BITS: Final = {8: "int8", 16: "int16x8"}
_MODES: Final = {"WEIGHT_ONLY": "weight-only", "DRQ": "dynamic"}


class _Tensor(TypedDict, total=False):
    num_bits: int
    symmetric: bool
    granularity: str
    channel_wise: bool


class _Config(TypedDict, total=False):
    activation_tensor_config: _Tensor | None
    weight_tensor_config: _Tensor | None
    compute_precision: str
    execution_mode: str
    skip_checks: bool
    min_weight_elements: int


class _Rule(TypedDict, total=False):
    regex: Required[str]
    operation: Required[str]
    algorithm_key: str
    op_config: _Config | None


class PeerRecipe(NamedTuple):
    """The rules that a recipe becomes, and the scheme of the network that they are of.

    warnings: a sentence for each thing that has no counterpart. numbers: the place in the file that each rule is from.
    """

    scheme: Scheme
    rules: list[dict[str, Any]]
    warnings: list[str]
    numbers: list[int]


def is_peer_recipe(recipe: object) -> TypeGuard[FilePath]:
    """Whether a recipe is such a file, by its suffix."""
    return isinstance(recipe, (str, os.PathLike)) and Path(recipe).suffix.lower() == ".json"


def read_peer_recipe(path: FilePath, module: Module) -> PeerRecipe:
    """The recipe of a file, for a network: rules for operators that it has not are left out. FileError if the file
    cannot be read; OptionError for what is no recipe, or quantizes nothing."""
    content: list[_Rule] = read_json(path, list[_Rule], "a list of rules")
    results = [(op.short_name, value.name) for op in module.ops() for value in op.results]
    warnings: dict[str, None] = {}
    rules: list[dict[str, Any]] = []
    numbers: list[int] = []
    for number in range(len(content) - 1, -1, -1):
        at = _Place(str(path), number, warnings)
        try:
            rules += [rule for rule in _rules(content[number], at) if any(_fits(rule, *each) for each in results)]
        except OptionError as error:
            raise at.error(error.reasons[0].what) from error
        numbers += [number] * (len(rules) - len(numbers))
    schemes = [rule["scheme"] for rule in rules if rule["scheme"] != FLOAT]
    if not schemes:
        raise OptionError(Reason("no rule of the recipe quantizes an operator of the network", str(path)))
    static = [scheme for scheme in reversed(schemes) if scheme in STATIC]
    scheme = cast("Scheme", (static or schemes[::-1])[0])
    rules.append({"name": _EVERY, "scheme": FLOAT})
    return PeerRecipe(scheme, rules, list(warnings), [*numbers, len(content)])


def _fits(rule: Mapping[str, Any], kind: str, name: str) -> bool:
    """Whether a rule is of an operator."""
    return rule.get("operator", kind) == kind and bool(matcher(rule.get("name", _EVERY))(name))


class _Place(NamedTuple):
    """A rule of a file. warnings: what has no counterpart."""

    path: str
    number: int
    warnings: dict[str, None]

    def leave_out(self, what: str, instead: str) -> None:
        self.warnings[f"{self.path}: rule {self.number} has {what}, which has no counterpart: {instead}"] = None

    def error(self, what: str) -> OptionError:
        return OptionError(Reason(what, self.path, place=f"rule {self.number}", remedy="write this rule in TOML"))


def _rules(rule: _Rule, at: _Place) -> Iterator[dict[str, Any]]:
    """The rules that one becomes: of weights alone one for each kind of operator that has weights."""
    regex, operation = rule["regex"], rule["operation"]
    if operation in _NO_KINDS:
        at.leave_out(
            f"operation '{operation}'", "it is left out" + (", see --io" if operation in _NO_KINDS[:2] else "")
        )
        return
    what = _what(rule, at)
    where = {} if regex == ".*" else {"name": f"re:.*(?:{regex}).*"}
    if operation != _EVERY:
        yield {**where, "operator": _NAMES.get(operation, operation.lower()), **what}
    elif what["scheme"] in (*STATIC, FLOAT):
        yield {"name": _EVERY, **where, **what}
    else:
        yield from ({**where, "operator": kind, **what} for kind in _PRODUCTS)


def _what(rule: _Rule, at: _Place) -> dict[str, Any]:
    """The settings of a rule."""
    algorithm = rule.get("algorithm_key", "min_max_uniform_quantize")
    config = rule.get("op_config") or {}
    if algorithm == "no_quantize":
        return {"scheme": FLOAT}
    if algorithm == "float_casting":
        return {"scheme": "float16"}
    for key in ("skip_checks", "min_weight_elements"):
        if value := config.get(key):
            at.leave_out(f"{key} = {value}", "it is ignored")
    if algorithm not in _METHODS:
        at.leave_out(f"algorithm '{algorithm}'", "minmax is taken")
    scheme = _scheme(config, at)
    weights: _Tensor = config.get("weight_tensor_config") or {}
    settings: dict[str, Any] = {"scheme": scheme}
    if scheme not in STATIC or weights.get("num_bits", 8) != 8:
        settings["weights"] = f"int{weights.get('num_bits', 8)}"
    if (method := _METHODS.get(algorithm, "minmax")) != "minmax":  # ranges of activations are those of minmax there
        settings["weight_method"] = method
    return settings | _granularity(weights, at)


def _scheme(config: _Config, at: _Place) -> str:
    activations = config.get("activation_tensor_config")
    if activations:
        bits = activations.get("num_bits", 8)
        if bits not in _STATIC_BITS:
            raise at.error(f"activations of {bits} bits have no counterpart")
        if bool(activations.get("symmetric", True)) != (bits == 16):
            at.leave_out(f"symmetric = {activations.get('symmetric', True)} of {bits} bits", "the kernel decides")
        return _STATIC_BITS[bits]
    if mode := config.get("execution_mode"):  # of old recipes
        return _MODES.get(mode, "weight-only")
    return "dynamic" if config.get("compute_precision") == "INTEGER" else "weight-only"


def _granularity(weights: _Tensor, at: _Place) -> dict[str, Any]:
    """The blocks of weights."""
    granularity = str(weights.get("granularity", "CHANNELWISE" if weights.get("channel_wise", True) else "TENSORWISE"))
    if blocks := re.fullmatch("BLOCKWISE_([0-9]{1,9})", granularity):
        return {"blocks": int(blocks[1])}
    if granularity != "CHANNELWISE":
        at.leave_out(f"weights of granularity {granularity}", "a channel has a scale")
    return {}
