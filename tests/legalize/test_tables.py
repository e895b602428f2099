"""The tables of rules name functions that exist, and nothing is imported before it is tried."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tflq.legalize.rules
from tflq.legalize.later import LaterRule, later
from tflq.legalize.rules import rules_of

FAMILIES = sorted(path.stem for path in Path(tflq.legalize.rules.__path__[0]).glob("[a-z]*.py"))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_rule_is_a_function_of_an_op_and_a_builder(family: str) -> None:
    rules: Any = import_module(f"tflq.legalize.rules.{family}").RULES
    for kind, named in rules.items():
        assert all(isinstance(rule, LaterRule) for rule in named)
        found = list(rules_of(kind))
        assert len(found) == len(named)
        for rule in found:
            assert inspect.isfunction(rule)
            assert rule.__module__.startswith("tflq.legalize.")
            assert len(inspect.signature(rule).parameters) == 2


def test_a_rule_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="none"):
        later("reference.pooling").none(None, None)  # type: ignore[arg-type]
