"""Parts of a network are cut where few elements go from one side to the other, and rules name what is changed."""

from __future__ import annotations

import re

from support.search_nets import CHOICES, KINDS, chain, rows

from tflq.tools.quantize.recipe import Settings
from tflq.tools.quantize.report import QuantizedRow
from tflq.tools.quantize.search.moves import Operators, alternatives


def test_a_part_is_cut_where_few_elements_go_across() -> None:
    module = chain(KINDS, (9, 9, 9, 9, 2, 9, 9, 9))
    operators = Operators(module, rows(module), ("float",))
    assert operators.cut(0, 8) == 5
    assert [move.tensors for move in operators.halves((0, 8))] == [tuple("abcde"), tuple("fgh")]
    assert [move.name for move in operators.halves((6, 8))] == ["relu 'g'", "relu 'h'"]
    assert operators.halves((3, 4)) == operators.halves((0, 0)) == []
    for low in range(8):
        for high in range(low + 2, 9):
            assert low < operators.cut(low, high) < high


def test_a_kind_that_is_changed_as_a_whole_is_one_rule() -> None:
    module = chain(KINDS)
    operators = Operators(module, rows(module), tuple(CHOICES))
    state = dict.fromkeys("bdfgh", "float") | {"a": "float", "e": "int16x8"}
    found = [(rule.operator, rule.name, dict(rule.what)["scheme"]) for rule in operators.rules(state, CHOICES)]
    assert found == [("logistic", "", "int16x8"), ("relu", "", "float"), ("", "re:a", "float")]


def test_a_kind_with_operators_that_are_not_quantized_is_named() -> None:
    module = chain(KINDS)
    some = [row if row.tensor != "b" else QuantizedRow("relu", "b", quantized=False) for row in rows(module)]
    rules = Operators(module, some, tuple(CHOICES)).rules(dict.fromkeys("dfgh", "float"), CHOICES)
    assert [(rule.operator, rule.name) for rule in rules] == [("", "re:d|f|g|h")]


def test_names_stand_for_themselves() -> None:
    module = chain(("tanh", "relu", "relu"))
    for op, name in zip(module.main.ops, ("a.b", "a|c", "axb"), strict=True):
        op.result.name = name
    (rule,) = Operators(module, rows(module), ("float",)).rules({"a.b": "float", "a|c": "float"}, CHOICES)[1:] or (
        None,
    )
    assert rule is None or not re.fullmatch(rule.name.removeprefix("re:"), "axb")


def test_a_network_of_one_kind_is_not_changed_to_float_as_a_whole() -> None:
    module = chain(("relu", "relu"))
    operators = Operators(module, rows(module), tuple(CHOICES))
    assert [move.alternative for move in (*operators.kinds(), *operators.whole())] == ["int16x8", "int16x8"]


def test_alternatives_have_more_bits() -> None:
    assert list(alternatives(Settings("int16x8"), is_chosen=True)) == ["float"]
    assert list(alternatives(Settings("dynamic", weights="int4"), is_chosen=False)) == ["weights of 8 bits", "float"]
    assert dict(alternatives(Settings("int8"), is_chosen=True)["int16x8"]) == {"scheme": "int16x8", "range": "minmax"}
