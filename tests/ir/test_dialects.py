"""The declarations of schema/: every op of the integer form has one, an evaluator and a lowering."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import tflq.evaluate
import tflq.select.families  # noqa: F401  registers the lowerings
from tflq.evaluate.registry import CONTROL, EVALUATORS
from tflq.ir.dialects import QUANTIZED, declaration, op_names, signature, table
from tflq.select.lowering import LOWERINGS

INTEGER_FORM = op_names("tosa") | op_names("ext")


def of_integer_form(names: Iterable[str]) -> set[str]:
    return {n for n in names if n.startswith(("tosa.", "ext."))}


def test_declared_ops_are_those_with_an_evaluator() -> None:
    assert of_integer_form(EVALUATORS) == INTEGER_FORM - CONTROL.keys()


def test_ops_that_run_functions_or_have_a_state_are_evaluated_apart() -> None:
    assert CONTROL.keys() == {
        *("tosa.cond_if", "tosa.while_loop"),
        *("tosa.variable", "tosa.variable_read", "tosa.variable_write"),
    }


def test_declared_ops_are_those_with_a_lowering() -> None:
    """All but the declaration of a variable, whose initial value `tosa.raising` writes by a function."""
    assert of_integer_form(LOWERINGS) == INTEGER_FORM - {"tosa.variable"}


def test_quant_ops_are_declared() -> None:
    assert op_names("quant") == {n for n in EVALUATORS if n.startswith("quant.")}


def test_evaluators_of_tfl_are_of_declared_operators() -> None:
    assert {n for n in EVALUATORS if n.startswith("tfl.")} <= op_names("tfl")


@pytest.mark.parametrize("dialect", ["tfl", "quant", "tosa", "ext"])
def test_every_line_is_a_declaration(dialect: str) -> None:
    for name in op_names(dialect):
        declared = declaration(name)
        assert declared is not None
        assert declared.signatures
        for side in declared.signatures:
            names = [slot.name for slot in (*side.operands, *side.results)]
            assert len(set(names)) == len(names), name
            assert not any(slot.variadic for slot in (*side.operands[:-1], *side.results[:-1])), name


def test_ext_ops_say_what_they_compute() -> None:
    meanings = table("tosa")["meaning"]
    assert op_names("ext") <= meanings.keys() <= INTEGER_FORM


def test_a_line() -> None:
    declared = declaration("tosa.table")
    assert declared is not None
    lookup, interpolated = declared.signatures
    assert [(s.name, s.type, s.constant) for s in lookup.operands] == [("input", "B", False), ("table", "T", True)]
    assert declared.types["B"] == {"i8", "ui8"}
    assert declared.types[interpolated.results[0].type] == {"i32"}


def test_attributes() -> None:
    declared = declaration("tosa.rescale")
    assert declared is not None
    kinds = {a.name: (a.kind, a.optional) for a in declared.attributes}
    assert kinds["multiplier"] == ("i32[]", False)
    assert kinds["rounding_mode"] == ("SINGLE_ROUND/DOUBLE_ROUND", False)
    assert kinds["input_range"] == ("int[2]", True)


def test_arity_of_an_operator() -> None:
    declared = declaration("tfl.conv_2d")
    assert declared is not None
    (side,) = declared.signatures
    assert [(s.name, s.optional) for s in side.operands] == [("input", False), ("filter", False), ("bias", True)]
    assert not declared.attributes


def test_quantized_is_a_type() -> None:
    declared = declaration("quant.scast")
    assert declared is not None
    assert [declared.types[s.operands[0].type] == {QUANTIZED} for s in declared.signatures] == [False, True]


@pytest.mark.parametrize("name", ["tosa.nothing", "tfl.nothing", "math.round", "", "tosa"])
def test_what_is_not_declared(name: str) -> None:
    assert declaration(name) is None


def test_flags() -> None:
    side = signature("a? b# c!:i8 d* -> e")
    flags = [(s.optional, s.integer, s.constant, s.variadic) for s in side.operands]
    assert flags == [
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, False),
        (False, False, False, True),
    ]
    with pytest.raises(ValueError, match="has no ->"):
        signature("a b")
