"""tflq/ir/index.py is what the modules declare and register, and leads from an op to each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from scripts.make_index import INDEX, import_everything, written
from tflq.dialects.declare import Operator, operand, result
from tflq.dialects.registry import REGISTRIES, modules_of
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.traits import Broadcasts
from tflq.ir.ops import Value, dialect, dialects
from tflq.legalize.rule import DECLARED, rule, rules_of


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


def test_every_rule_is_a_function_of_an_op_and_a_builder() -> None:
    kinds = {kind for _, kind in DECLARED}
    assert len(kinds) > 100
    for kind in kinds:
        for each in rules_of(kind):
            assert inspect.isfunction(each)
            assert len(inspect.signature(each).parameters) == 2


def declare(module: str) -> None:
    """Declares another rule of ADD, as if in a module."""
    text = "@rule(Add)\ndef another(op, b): return op.output"
    exec(text, {"__name__": module, "rule": rule, "Add": Add})  # noqa: S102


def test_two_rules_of_one_order() -> None:
    declare(next(rules_of(Add)).__module__)
    with pytest.raises(ValueError, match=r"two rules of Add in tflq\.legalize\.arithmetic have the same order"):
        written()


def test_rules_of_two_modules_with_one_order() -> None:
    declare("tflq.legalize.another")
    with pytest.raises(
        ValueError,
        match=r"tflq\.legalize\.another and tflq\.legalize\.arithmetic both have a rule of tfl\.add with order 0",
    ):
        written()


def test_a_rule_from_outside_changes_no_index() -> None:
    before = written()
    declare("somewhere_else")
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
            places = set(registry.places_of_traits()) - {registry.package}  # a registry's own module is imported
            assert {*modules_of(registry.package, "outside.add")} == places


def test_nothing_is_imported_for_a_name_that_is_no_op() -> None:
    assert modules_of("tflq.formats.tflite.lowering", "tfl.nothing") == ()
