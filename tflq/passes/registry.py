"""Passes by name, and pipelines of them as text: `lower-quant-ops,canonicalize`, options as
`canonicalize{real_semantics=true}`.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from tflq.errors import TflqError
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.contract import Pass, Pipeline
from tflq.passes.cse import CommonSubexpressionElimination
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.fold import Fold
from tflq.passes.lower_quant_ops import LowerQuantOps

__all__ = ["PASSES", "parse_pipeline"]

PASSES: dict[str, type[Pass]] = {
    kind.name: kind for kind in (Canonicalize, CommonSubexpressionElimination, DeadCodeElimination, Fold, LowerQuantOps)
}

_STEP = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline that a text names. TflqError says what is not known, and what is."""
    steps: list[Pass] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise TflqError(f"pipeline '{text}': no pass name at '{text[at:]}'")
        steps.append(_step(found[1], found[2] or ""))
        at = found.end()
    if not steps:
        raise TflqError(f"the pipeline names no pass; there are {', '.join(PASSES)}")
    return Pipeline(steps)


def _step(name: str, options: str) -> Pass:
    if name not in PASSES:
        raise TflqError(f"there is no pass '{name}'; there are {', '.join(PASSES)}")
    kind = PASSES[name]
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for option in options.replace(",", " ").split():
        key, _, value = option.partition("=")
        if key not in known:
            raise TflqError(f"pass '{name}' has no option '{key}'; it has {', '.join(known) or 'none'}")
        values[key] = _value(name, key, value, type(known[key].default))
    return kind(**values)


def _value(name: str, key: str, text: str, kind: type) -> Any:
    if kind is bool and text in ("true", "false"):
        return text == "true"
    if kind is int and re.fullmatch(r"-?\d+", text):
        return int(text)
    if kind is str:
        return text
    raise TflqError(f"pass '{name}': {key}={text} is not a value of type {kind.__name__}")
