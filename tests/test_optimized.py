"""Under `python -OO`, which leaves out docstrings and asserts, checks fail with their sentences, and help is there."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import tflq

ROOT: Final = Path(__file__).resolve().parent.parent

BROKEN: Final = {
    "tensor sizes": (
        """func.func @f(%a: tensor<4xi8>) -> tensor<?x?xi8> {
  %0 = "tensor.empty"() : () -> tensor<?x?xi8>
  return %0 : tensor<?x?xi8>
}""",
        "there must be one size for each unknown dim",
    ),
    "linalg operands": (
        """func.func @f(%a: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "linalg.generic"(%a) <{
    operandSegmentSizes = array<i32: 2, 1>, indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
  }> ({
  ^bb0(%x: i8):
    "linalg.yield"(%x) : (i8) -> ()
  }) : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}""",
        "'operandSegmentSizes' must say how many operands are inputs",
    ),
    "elementwise": (
        """func.func @f(%a: tensor<4xi8>, %b: tensor<5xi8>) -> tensor<4xi8> {
  %0 = "arith.addi"(%a, %b) : (tensor<4xi8>, tensor<5xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}""",
        "operands and results must have the same shape",
    ),
    "a cast": (
        """func.func @f(%a: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "quant.scast"(%a) : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}""",
        "one of operand and result must be of an integer type",
    ),
}
"""Texts that break a constraint, and a part of the sentence that says so."""


def optimized(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-OO", "-m", "tflq", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("name", BROKEN)
def test_a_constraint_holds_and_says_its_sentence(name: str, tmp_path: Path) -> None:
    text, sentence = BROKEN[name]
    (tmp_path / "broken.mlir").write_text(text)
    with pytest.raises(tflq.InvalidModelError, match=sentence):
        tflq.read(tmp_path / "broken.mlir")
    assert sentence in optimized("opt", "broken.mlir", cwd=tmp_path)


def test_passes_are_described(tmp_path: Path) -> None:
    assert "Removes casts" in optimized("opt", "--list-passes", cwd=tmp_path)


def test_no_sentence_that_is_shown_is_a_docstring() -> None:
    """`description` alone reads docstrings, and reads them from the source under `-OO`."""
    readers = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "tflq").rglob("*.py")
        if path.name != "registry.py" and "__doc__" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "__doc__" and isinstance(node.ctx, ast.Load)
    }
    assert readers == set()
