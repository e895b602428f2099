"""tflq/index.py is what the modules declare and register, and leads from an op to each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from scripts.make_index import INDEX, import_everything, written
from tflq.dialects.declare import Operator, operand, result
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.traits.types import Broadcasts
from tflq.index import ROOMS
from tflq.ir.core import Value
from tflq.ir.registry import dialect, dialects, op_class
from tflq.legalize.rule import DECLARED, rule, rules_of
from tflq.registering import REGISTRIES, modules_of

FORMS = ("core_numbers", "core_tensors")
"""Modules of legalization that have forms of core dialects instead of rules."""
RULES = sorted(
    {name for module, names in ROOMS["tflq.legalize"].items() if module not in FORMS for name in names.split()}
)


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """Takes back what a test declares."""
    import_everything()
    before = {key: list(rules) for key, rules in DECLARED.items()}
    yield
    DECLARED.clear()
    DECLARED.update(before)


def test_it_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == written(), "run `make index`"


def test_every_op_is_declared_where_it_says() -> None:
    for name in dialects():
        found = dialect(name)
        assert found is not None
        for declared, (short, family) in zip(found.classes(), found.family_of.items(), strict=True):
            assert declared.op_name == f"{name}.{short}"
            assert declared.__module__ == f"{found.package}.{family}"


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_a_function_of_an_op_and_a_builder(name: str) -> None:
    found = list(rules_of(op_class(name)))
    assert found
    for each in found:
        assert inspect.isfunction(each)
        assert len(inspect.signature(each).parameters) == 2


def test_two_rules_of_one_order() -> None:
    module = next(rules_of(Add)).__module__

    def another(op: Add, _: object) -> Value:
        return op.output

    DECLARED[module, Add].append((0, another))
    with pytest.raises(ValueError, match=r"two rules of Add in tflq.legalize.* have the same order"):
        written()


def test_rules_of_two_modules_with_one_order() -> None:
    def another(op: Add, _: object) -> Value:
        return op.output

    DECLARED["tflq.legalize.another", Add] = [(0, another)]
    with pytest.raises(ValueError, match=r"another and \S+ both have a rule of tfl.add with order 0"):
        written()


def test_a_rule_from_outside_changes_no_index() -> None:
    before = written()
    rule(op_class("tfl.add"))(lambda op, _: op)
    assert written() == before


def test_an_op_from_outside_has_the_functions_of_its_traits() -> None:
    class Outside(Operator, name="outside.add"):
        x: Value = operand()
        y: Value = operand()
        output: Value = result()
        traits = (Broadcasts(x, y),)

    for registry in REGISTRIES:
        if registry.package.startswith("tflq.") and any(registry.places_of_traits()):
            registry.get(Outside)
            assert set(modules_of(registry.package, "outside.add")) == {
                place.removeprefix(f"{registry.package}.") for place in registry.places_of_traits()
            }


def test_nothing_is_imported_for_a_name_that_is_no_op() -> None:
    assert modules_of("tflq.select", "tfl.nothing") == ()
