"""The index of rules is what the decorators declare, and names functions of an op and a builder."""

from __future__ import annotations

import inspect

import pytest

from scripts.make_rule_index import INDEX, written
from tflq.ir.registry import op_class
from tflq.legalize.rule import DECLARED, rule
from tflq.legalize.rule_index import RULES
from tflq.legalize.rules import rules_of


def test_it_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == written(), "run `make rule-index`"


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_a_function_of_an_op_and_a_builder(name: str) -> None:
    found = rules_of(op_class(name))
    assert len(found) == len(RULES[name]) == len(list(found))
    for index, each in enumerate(found):
        assert each is found[index]
        assert inspect.isfunction(each)
        assert len(inspect.signature(each).parameters) == 2


def test_two_rules_of_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.make_rule_index.DECLARED", [*DECLARED, (rules_of, (op_class("tfl.add"),), 0)])
    with pytest.raises(ValueError, match=r"elementwise:add and rules:rules_of are both rules of Add with order 0"):
        written()


def test_a_rule_outside_changes_no_index() -> None:
    before = written()
    declared = len(DECLARED)
    rule(op_class("tfl.add"))(lambda op, _: op)
    try:
        assert written() == before
    finally:
        del DECLARED[declared:]


def test_a_rule_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "tfl.add", ("reference.pooling:none",))
    with pytest.raises(AttributeError, match="none"):
        rules_of(op_class("tfl.add"))[0]
