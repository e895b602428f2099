"""Pipelines written as text: `canonicalize{semantics=interpreter},cse,dce`, as MLIR's `opt` tools take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any, TypeAlias

from tflq.arguments import nearest
from tflq.contract import Pass, Pipeline
from tflq.errors import OptionError, Reason
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.cse import CommonSubexpressionElimination
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.fold import Fold
from tflq.passes.lower_quant_ops import LowerQuantOps
from tflq.passes.normalize_quant_types import NormalizeQuantTypes
from tflq.passes.regions.fusion import KernelFusion
from tflq.passes.regions.inline import InlineRegions
from tflq.passes.regions.materialize import QuantMaterialize
from tflq.passes.regions.propagate import QuantPropagate
from tflq.passes.stablehlo_conversions import DefaultConversions, FuseConversions
from tflq.passes.stablehlo_hybrid import HybridDequantizeThenOp
from tflq.passes.strip_func_quant_types import StripFuncQuantTypes
from tflq.passes.through_floats import DequantizeFallback

__all__ = ["PASSES", "described", "parse_pipeline"]

PASSES: dict[str, type[Pass]] = {
    item.name: item
    for item in (
        *(Canonicalize, CommonSubexpressionElimination, DeadCodeElimination, DequantizeFallback, Fold),
        *(DefaultConversions, FuseConversions, HybridDequantizeThenOp, InlineRegions, KernelFusion),
        *(LowerQuantOps, NormalizeQuantTypes, QuantMaterialize, QuantPropagate, StripFuncQuantTypes),
    )
}
"""The passes that any stage can use, by name."""

Readers: TypeAlias = Mapping[str, Callable[[str], Any]]

_ITEM = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")
_OPTION = re.compile(r"([\w-]+)=(\S+)")


def parse_pipeline(
    text: str, passes: Mapping[str, type[Pass]] | None = None, readers: Readers = MappingProxyType({})
) -> Pipeline:
    """The pipeline that a text such as `cse,canonicalize{semantics=interpreter}` names. OptionError if it names none.
    `passes`: those that there are, by default `PASSES`. `readers`: of options such as `legalize.target`, from text."""
    known = PASSES if passes is None else passes
    found: list[Pass] = []
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            raise OptionError(f"pipeline '{text}': expected a pass at '{text[position:]}'")
        found.append(_make(item[1], item[2] or "", known, readers))
        position = item.end()
    if not found:
        raise OptionError(f"the pipeline is empty; the passes are {', '.join(sorted(known))}")
    return Pipeline(found)


def described(kind: type[Pass]) -> tuple[str, str]:
    """What a pass does, in a sentence, and its options as text: "limit=int, semantics='interpreter' | 'real'"."""
    said = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    options = [f"{f.name.replace('_', '-')}={getattr(f.type, '__name__', f.type)}" for f in fields(kind)]
    return re.split(r"(?<=\.) ", said)[0], ", ".join(options)


def _make(name: str, options: str, passes: Mapping[str, type[Pass]], readers: Readers) -> Pass:
    kind = passes.get(name)
    if kind is None:
        remedy = nearest(name, passes) or f"the passes are {', '.join(sorted(passes))}"
        raise OptionError(Reason(f"there is no pass '{name}'", value=name, remedy=remedy))
    types = {field.name.replace("_", "-"): getattr(field.type, "__name__", str(field.type)) for field in fields(kind)}
    given: dict[str, Any] = {}
    for option in re.split(r"[\s,]+", options.strip()) if options.strip() else []:
        match = _OPTION.fullmatch(option)
        if match is None or match[1] not in types:
            known = ", ".join(f"{key}=" for key in types) or "none"
            raise OptionError(f"pass '{name}' has no option '{option}'; its options: {known}")
        reader = readers.get(f"{name}.{match[1]}")
        value = _option(name, match[1], types[match[1]], match[2]) if reader is None else reader(match[2])
        given[match[1].replace("-", "_")] = value
    for field in fields(kind):
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise OptionError(f"pass '{name}' needs its option '{field.name.replace('_', '-')}='")
    return kind(**given)


def _option(name: str, option: str, kind: str, text: str) -> bool | int | str:
    words = tuple(word for word in re.findall(r"['\"](.*?)['\"]", kind) if word)
    if kind == "bool" and text in ("true", "false"):
        return text == "true"
    if kind.removesuffix(" | None") == "int" and text.isdigit():
        return int(text)
    if text in words or kind == "str":
        return text
    expected = "true or false" if kind == "bool" else f"one of {', '.join(words)}" if words else "a number"
    raise OptionError(f"pass '{name}': option '{option}' is {expected}, not '{text}'")
