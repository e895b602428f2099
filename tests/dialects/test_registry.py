"""Functions by class of op: own ones, those of traits, unions, and modules by family."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tflq.dialects.registry import Registry
from tflq.dialects.tfl.activation import Prelu, Relu, Softmax
from tflq.dialects.tfl.arithmetic import Add, Sub
from tflq.dialects.traits import Broadcasts, Elementwise, SameShape


def test_an_own_function_goes_before_a_trait() -> None:
    registry: Registry[object] = Registry("tests")
    one, other, third = (object() for _ in range(3))
    registry(Relu)(one)
    registry(SameShape)(other)
    registry(Add | Sub)(third)
    assert registry.get(Relu) is one
    assert registry.get(Softmax) is other
    assert registry.get(Add) is registry.get(Sub) is third
    assert registry.named("tfl.mul") is None
    assert registry.named("none.such") is None


def test_a_trait_serves_its_subclasses() -> None:
    assert Relu.trait(Elementwise) is not None
    registry: Registry[object] = Registry("tests")
    one, other = object(), object()
    registry(SameShape)(one)
    registry(Prelu)(other)
    assert registry.get(Relu) is registry.get(Softmax) is one
    assert registry.get(Prelu) is other


def test_one_function_each() -> None:
    registry: Registry[object] = Registry("tests")
    registry(Add)(object())
    with pytest.raises(ValueError, match="Add has two functions in tests"):
        registry(Add)(object())


def test_a_function_that_comes_late_is_found() -> None:
    registry: Registry[object] = Registry("tests")
    assert registry.get(Add) is None
    late = object()
    registry(Broadcasts)(late)
    assert registry.get(Add) is late


def test_a_fresh_process_finds_a_function_that_another_module_registers() -> None:
    code = "import tflq; tflq.convert('models/atan2_int16.tflite', format='tosa').data"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
