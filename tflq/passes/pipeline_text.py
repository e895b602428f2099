"""Pipelines written as text: `canonicalize{semantics=interpreter},cse,dce`, as MLIR's `opt` tools take them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields

from tflq.errors import OptionError
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.contract import Pass, Pipeline
from tflq.passes.cse import CommonSubexpressionElimination
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.fold import Fold
from tflq.passes.lower_quant_ops import LowerQuantOps
from tflq.passes.normalize_quant_types import NormalizeQuantTypes
from tflq.passes.regions.fusion import KernelFusion
from tflq.passes.regions.inline import InlineRegions
from tflq.passes.regions.materialize import QuantMaterialize
from tflq.passes.regions.propagate import QuantPropagate
from tflq.passes.strip_func_quant_types import StripFuncQuantTypes
from tflq.passes.through_floats import DequantizeFallback

__all__ = ["PASSES", "parse_pipeline"]

PASSES: dict[str, type[Pass]] = {
    item.name: item
    for item in (
        *(Canonicalize, CommonSubexpressionElimination, DeadCodeElimination, DequantizeFallback, Fold),
        *(InlineRegions, KernelFusion, LowerQuantOps, NormalizeQuantTypes, StripFuncQuantTypes),
        *(QuantMaterialize, QuantPropagate),
    )
}
"""The passes that any stage can use, by name."""

_ITEM = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")
_OPTION = re.compile(r"([\w-]+)=(\S+)")


def parse_pipeline(text: str, passes: Mapping[str, type[Pass]] | None = None) -> Pipeline:
    """The pipeline that a text such as `cse,canonicalize{semantics=interpreter}` names. OptionError if it names none.
    `passes`: those that there are, by default `PASSES`."""
    known = PASSES if passes is None else passes
    found: list[Pass] = []
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            raise OptionError(f"pipeline '{text}': expected a pass at '{text[position:]}'")
        found.append(_make(item[1], item[2] or "", known))
        position = item.end()
    if not found:
        raise OptionError(f"the pipeline is empty; the passes are {', '.join(sorted(known))}")
    return Pipeline(found)


def _make(name: str, options: str, passes: Mapping[str, type[Pass]]) -> Pass:
    kind = passes.get(name)
    if kind is None:
        raise OptionError(f"there is no pass '{name}'; the passes are {', '.join(sorted(passes))}")
    types = {field.name.replace("_", "-"): getattr(field.type, "__name__", str(field.type)) for field in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, bool | int | str] = {}
    for option in re.split(r"[\s,]+", options.strip()) if options.strip() else []:
        match = _OPTION.fullmatch(option)
        if match is None or match[1] not in types:
            known = ", ".join(f"{key}=" for key in types) or "none"
            raise OptionError(f"pass '{name}' has no option '{option}'; its options: {known}")
        given[match[1].replace("-", "_")] = _option(name, match[1], types[match[1]], match[2])
    return kind(**given)


def _option(name: str, option: str, kind: str, text: str) -> bool | int | str:
    words = tuple(word for word in re.findall(r"['\"](.*?)['\"]", kind) if word)
    if kind == "bool" and text in ("true", "false"):
        return text == "true"
    if kind == "int" and text.isdigit():
        return int(text)
    if text in words or kind == "str":
        return text
    expected = "true or false" if kind == "bool" else f"one of {', '.join(words)}" if words else "a number"
    raise OptionError(f"pass '{name}': option '{option}' is {expected}, not '{text}'")
