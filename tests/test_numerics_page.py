"""docs/numerics.md names functions and tests that exist, and every module of `tflq/numerics` that has a formula."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from scripts.pages import numerics
from tflq.numerics.requantize.forms import Form

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
TESTS = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_function_named_exists() -> None:
    for row in ROWS:
        for name in named(row[3]) if row[3] != "`tflq/numerics`" else ():
            module, _, function = name.rpartition(".")
            assert callable(getattr(import_module(f"tflq.numerics.{module}"), function)), name


def test_every_test_named_exists() -> None:
    proofs = [name for row in ROWS for name in named(row[4])]
    assert len(proofs) > 60
    for name in proofs:
        file, _, test = name.partition("::")
        assert any(path.name == file and f"def {test}(" in text for path, text in TESTS.items()), name


def names_in(test: str) -> set[str]:
    """The names in a test, its parameters and the constants of its file that it names."""
    file, _, name = test.partition("::")
    [text] = [text for path, text in TESTS.items() if path.name == file and f"def {name}(" in text]
    body = ast.parse(text).body
    [function] = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    for node in body:
        if isinstance(node, ast.Assign) and any(isinstance(v, ast.Name) and v.id in names for v in node.targets):
            names |= {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
    return names


def test_the_proof_of_a_form_tries_it() -> None:
    for form in numerics.forms():
        test = numerics.proof_of(form)
        kinds = {kind.__name__ for kind in form.__subclasses__()} or {form.__name__}
        assert kinds <= names_in(test), f"{test} does not try {form.__name__}"
    assert "Division" not in names_in("test_forms.py::test_sums_are_scaled_as_the_kernels_scale_them")


def test_a_form_without_a_proof_or_a_reason_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class New(Form):
        """x m: exact."""

    with pytest.raises(ValueError, match="PROOFS has no test of New: add"):
        numerics.proof_of(New)
    New.__doc__ = "x m"
    monkeypatch.setattr(numerics, "forms", lambda: [New])
    with pytest.raises(ValueError, match="the docstring of New is 'x m': add a colon"):
        numerics.table()


def test_every_module_with_a_formula_is_named() -> None:
    folder = ROOT / "tflq" / "numerics"
    modules = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("[a-z]*.py")}
    shared = {
        *("kernel_sets", "reference", "xnnpack"),
        *(f"requantize.{v}" for v in ("scaling", "climb", "forms", "float_forms", "numpy_ops", "gaps", "lines")),
    }
    named_modules = {name.rpartition(".")[0] for row in ROWS for name in named(row[3]) if "/" not in name}
    assert modules - shared == named_modules


def test_the_table_of_forms_is_current() -> None:
    assert numerics.page() == PAGE, "make it anew: scripts/make_docs.py numerics"
    assert numerics.table() in PAGE
