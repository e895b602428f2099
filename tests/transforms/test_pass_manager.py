"""What the pass manager keeps of a function from one pass to the next, and which passes it does not run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tflq.base.errors import VerificationError
from tflq.dialects.tosa.elementwise import Add, Sub
from tflq.dialects.traits import InPlace, View
from tflq.formats.options import options_from_arguments
from tflq.formats.pipeline import form_of, narrowing, passes_of
from tflq.formats.tflite.reader import read
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.text.parser import parse_module
from tflq.transforms import pass_manager as contract
from tflq.transforms.pass_manager import Pass, PassResult, Pipeline

TEXT = """func.func @f(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {
  %0 = tosa.add %a, %b : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = tosa.add %0, %b : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %1 : tensor<4xi32>
}"""


@dataclass(frozen=True)
class Asks(Pass):
    name: ClassVar[str] = "asks"
    seen: list[Any]

    def run(self, module: Module) -> PassResult:
        self.seen.append(module.main.users())
        return PassResult(module, modified=False)


class Swaps(Asks):
    name: ClassVar[str] = "swaps"

    def run(self, module: Module) -> PassResult:
        op = module.main.ops[1]
        op.operands = op.operands[::-1]
        return PassResult(module, modified=True)


class OnSub(Asks):
    name: ClassVar[str] = "on-sub"
    runs_on: ClassVar[tuple[type, ...]] = (Sub, View)


class OnAdd(Asks):
    name: ClassVar[str] = "on-add"
    runs_on: ClassVar[tuple[type, ...]] = (Sub, Add)


class TakesTwo(Swaps):
    name: ClassVar[str] = "takes-two"

    def run(self, module: Module) -> PassResult:
        module.main.ops[1].operands *= 2
        return PassResult(module, modified=True)


class Relies(Asks):
    name: ClassVar[str] = "relies"
    relies: ClassVar[bool] = True


def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "_is_builtin", lambda _: True)


def test_answers_are_kept_until_a_pass_has_changed_something(monkeypatch: pytest.MonkeyPatch) -> None:
    own(monkeypatch)
    seen: list[Any] = []
    module = parse_module(TEXT)
    Pipeline([Asks(seen), Asks(seen), Swaps(seen), Asks(seen)]).run(module)
    first, second, third = seen
    assert first is second
    assert second is not third
    assert module.main.users() is not module.main.users(), "nothing is kept when the passes have run"


def test_a_users_pass_is_not_taken_at_its_word() -> None:
    seen: list[Any] = []
    Pipeline([Asks(seen), Asks(seen)]).run(parse_module(TEXT))
    assert seen[0] is not seen[1]


def test_answers_are_dropped_when_a_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    own(monkeypatch)

    def fails(self: Pass, module: Module) -> PassResult:
        raise ValueError("it fails")

    module = parse_module(TEXT)
    monkeypatch.setattr(OnAdd, "run", fails)
    with pytest.raises(ValueError, match="it fails"):
        Pipeline([Asks([]), OnAdd([])]).run(module)
    assert module.main.users() is not module.main.users()


def test_a_pass_runs_where_there_is_what_it_looks_at() -> None:
    without: list[Any] = []
    within: list[Any] = []
    steps = list(Pipeline([OnSub(without), OnAdd(within)]).steps(parse_module(TEXT)))
    assert (len(without), len(within)) == (0, 1)
    assert [(step.item.name, step.modified) for step in steps] == [("on-sub", False), ("on-add", False)]


def test_what_a_pass_relies_on_is_verified_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    own(monkeypatch)
    seen: list[Any] = []
    with pytest.raises(VerificationError, match=r"pass 'takes-two' left invalid IR"):
        Pipeline([TakesTwo([]), Relies(seen)], "tosa").run(parse_module(TEXT))
    assert not seen


def test_other_ops_of_a_function_drop_what_was_kept() -> None:
    function = parse_module(TEXT).main
    function.keep_facts()
    assert function.ops_of(Add) == function.ops
    assert function.users() is function.users()
    function.ops = function.ops[:1]
    assert function.ops_of(Add) == function.ops
    assert list(function.users()) == function.inputs


def test_ops_by_class_and_by_trait_are_in_order() -> None:
    text = TEXT.replace("%1 = tosa.add %0, %b", "%1 = tosa.sub %0, %b")
    function = parse_module(text).main
    assert function.ops_of(Add, Sub) == function.ops
    assert function.ops_with(View) == ()
    assert function.has_ops(Sub)
    assert not function.has_ops(View, InPlace)


def facts(function: Function) -> tuple[Any, ...]:
    classes = [*function.places()]
    by_class = {kind: function.ops_with(kind) for kind in classes}
    return function.users(), list(function.values()), by_class, function.ops_with(*classes), function.is_flat()


@pytest.mark.parametrize("format", ["tflite", "tosa"])
@pytest.mark.parametrize(
    "name", ["cnn_int8", "cnn_uint8", "lstm_float", "residual_float", "two_signatures", "mul_per_axis"]
)
def test_what_is_kept_is_true_after_each_pass(models: Path, name: str, format: str) -> None:
    """Passes that say that nothing changed, or labels alone, leave nothing else behind; those that change ops in step
    leave the truth behind."""
    module = read(str(models / f"{name}.tflite"))
    options = options_from_arguments(format, None, batch=1 if name == "two_signatures" else None)
    form = form_of(module)
    passes = [*narrowing(options, form), *passes_of(options, form)]
    for step in Pipeline(passes, form).steps(module):
        for function in step.module.functions:
            kept = facts(function)
            function.changed()
            assert kept == facts(function), f"{step.item.name} changed {function}, and says that it did not"


NESTED = """func.func @f(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {
  %0 = tosa.add %a, %b : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = tosa.sub %0, %0 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %2 = "test.wrap"(%1) ({
  ^bb0(%x: tensor<4xi32>):
    %4 = tosa.add %x, %0 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %5 = tosa.sub %4, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    "test.end"(%5) : (tensor<4xi32>) -> ()
  }) : (tensor<4xi32>) -> tensor<4xi32>
  %3 = tosa.add %2, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %3 : tensor<4xi32>
}"""


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_in_step_is_true_after_each_edit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    function = parse_module(NESTED).main
    function.keep_facts(in_step=True)
    assert not function.is_flat()
    for _ in range(4):
        ops = [op for op in function.ops_with(*function.places()) if op.results]
        gone, kept = rng.choice(len(ops) + 1, 2, replace=False)
        values = [function.inputs[0], *(op.result for op in ops)]
        index = function.users()
        if gone and rng.integers(2):
            function.take_out({ops[gone - 1]})
        else:
            function.replace({values[gone]: values[kept]})
        assert function.users() is index, "nothing is computed again"
        known = facts(function)
        function.changed()
        assert known == facts(function)


def test_undeclared_ops_have_no_trait() -> None:
    assert Op.matches(Op)
    assert not Op.matches(View)
