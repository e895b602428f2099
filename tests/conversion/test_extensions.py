"""Passes and dialects from outside: a file's, and those of the package in examples/ml_dialect."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tflq import Extension
from tflq.cli import main
from tflq.conversion.extensions import extension_of
from tflq.dialects.tfl.movement import Transpose
from tflq.formats.mlir.lower_quant import LowerQuantOps
from tflq.ir.module import Module
from tflq.ir.ops import dialect, op_class
from tflq.ir.text.parser import parse_module
from tflq.tools.opt import named_passes
from tflq.tools.quantize.quant_types import StripFuncQuantTypes
from tflq.transforms.canonicalize import CommonSubexpressionElimination, DeadCodeElimination
from tflq.transforms.pass_manager import Pipeline

FILE = """
from dataclasses import dataclass
import tflq
from tflq.transforms.pass_manager import Pass, PassResult

@dataclass(frozen=True)
class Rename(Pass):
    name = "{name}"
    to: str = "g"
    def run(self, module):
        module.main.name = self.to
        return PassResult(module, True)

EXTENSION = tflq.Extension(passes=[Rename])
"""


def test_a_file_adds_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, model = tmp_path / "my_rules.py", tmp_path / "x.mlir"
    rules.write_text(FILE.format(name="rename"))
    model.write_text("func.func @f() {\n  return\n}")
    assert main.run(["opt", str(model), "--rules", str(rules), "-p", "rename{to=h}"]) == 0
    assert "@h()" in capsys.readouterr().out
    rules.write_text(FILE.format(name="cse"))
    assert main.run(["opt", str(model), "--rules", str(rules), "-p", "cse"]) == 2
    rules.write_text("")
    assert main.run(["opt", str(model), "--rules", str(rules), "-p", "cse"]) == 2
    assert "EXTENSION" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("raise ValueError('it went off')", 11, "raises ValueError: it went off"),
        ("pass", 10, "raises TypeError: run() returns NoneType, not a PassResult"),
        (
            "module.main.inputs *= 2; return PassResult(module, True)",
            10,
            "makes invalid IR: function 0 'f': two arguments of the function are the same value",
        ),
    ],
)
def test_a_fault_of_a_pass_is_its_own(
    body: str, line: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, model = tmp_path / "my_rules.py", tmp_path / "x.mlir"
    before, _, after = FILE.format(name="boom").partition("module.main.name = self.to\n")
    rules.write_text(f"{before}{body}\n{after.partition('True)')[2]}")
    model.write_text("func.func @f(%x: tensor<2xi8>) {\n  return\n}")
    assert main.run(["opt", str(model), "--rules", str(rules), "-p", "boom"]) == 2
    assert capsys.readouterr().err == f"tflq: {rules}:{line}: the pass 'boom' {said}; mend the file\n"


TRANSPOSES = """
func.func @f(%x: tensor<2x3x4xi8>) -> tensor<{shape}xi8> {{
  %p = "tfl.pseudo_const"() {{value = dense<[2, 0, 1]> : tensor<3xi32>}} : () -> tensor<3xi32>
  %q = "tfl.pseudo_const"() {{value = dense<{second}> : tensor<3xi32>}} : () -> tensor<3xi32>
  %0 = "tfl.transpose"(%x, %p) : (tensor<2x3x4xi8>, tensor<3xi32>) -> tensor<4x2x3xi8>
  %1 = "tfl.transpose"(%0, %q) : (tensor<4x2x3xi8>, tensor<3xi32>) -> tensor<{shape}xi8>
  %2 = "tfl.abs"(%1) : (tensor<{shape}xi8>) -> tensor<{shape}xi8>
  return %2 : tensor<{shape}xi8>
}}
"""


@pytest.mark.parametrize(("second", "shape", "left"), [([1, 2, 0], "2x3x4", None), ([0, 2, 1], "4x3x2", [2, 1, 0])])
def test_the_example_of_a_pass(second: list[int], shape: str, left: list[int] | None) -> None:
    (merge,) = extension_of(Path(__file__).parents[2] / "examples" / "custom_pass.py").passes
    module = parse_module(TRANSPOSES.format(second=second, shape=shape))
    assert Pipeline([merge()]).run(module).modified
    kept = [op for op in module.ops() if isinstance(op, Transpose)]
    assert [op.perm.array.tolist() for op in kept] == ([left] if left else [])
    assert not Pipeline([merge()]).run(module).modified


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch) -> object:
    """convert-ml-to-arith, from the package as it is in the repository."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / "ml_dialect"))
    known = dialect("ml")
    extension = import_module("ml_dialect.lowering").EXTENSION
    assert isinstance(extension, Extension)
    declared = import_module("ml_dialect").DIALECT
    if known is None:  # the package is not installed
        monkeypatch.setattr("tflq.ir.ops.dialect", lambda name: declared if name == "ml" else dialect(name))
    yield extension.passes[0]
    for name in [name for name in sys.modules if known is None and name.startswith("ml_dialect")]:
        sys.modules.pop(name)


DIVISION = """!q = !quant.uniform<i8:f32, 2.0>
func.func @division(%arg0: tensor<3x!q>, %arg1: tensor<3x!q>) -> (tensor<3x!q>, tensor<3x!q>) {
  %quotient = "ml.div"(%arg0, %arg1) : (tensor<3x!q>, tensor<3x!q>) -> tensor<3x!q>
  %remainder = "ml.mod"(%arg0, %arg1) : (tensor<3x!q>, tensor<3x!q>) -> tensor<3x!q>
  return %quotient, %remainder : tensor<3x!q>, tensor<3x!q>
}"""


def names(module: Module) -> list[str]:
    return [op.name for op in module.main.ops]


def test_the_example_package(convert: object) -> None:
    module = parse_module(DIVISION)
    assert op_class("ml.div") is type(module.main.ops[0])
    one = ["quant.dcast", "quant.dcast", "arith.divf", "quant.qcast"]
    Pipeline([convert()]).run(module)  # type: ignore[operator]
    assert names(module) == [*one, "quant.dcast", "quant.dcast", "arith.remf", "quant.qcast"]
    Pipeline([CommonSubexpressionElimination(), DeadCodeElimination()]).run(module)
    assert names(module) == [*one, "arith.remf", "quant.qcast"]
    Pipeline([LowerQuantOps(), StripFuncQuantTypes()]).run(module)
    named = named_passes()
    for name in ("canonicalize", "dce"):
        Pipeline([named[name]()]).run(module)
    assert not any(name.startswith("quant.") for name in names(module))


def test_an_installed_package_is_found() -> None:
    if not any(entry.name == "ml" for entry in entry_points(group="tflq.rules")):
        pytest.skip("examples/ml_dialect is not installed")
    assert "convert-ml-to-arith" in named_passes()


def test_files_of_one_name_are_apart(tmp_path: Path) -> None:
    """In threads as one after another: what pickles or looks up a class by its module meets its own."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rules.py").write_text(
            "from dataclasses import dataclass\nimport tflq\n@dataclass\nclass Size:\n    n: int = 0\n"
            f"Size.folder = {folder!r}\nEXTENSION = tflq.Extension(passes=[Size])\n"
        )
    found = [extension_of(tmp_path / folder / "rules.py").passes[0] for folder in ("a", "b")]
    assert [vars(sys.modules[each.__module__])["Size"] for each in found] == found
