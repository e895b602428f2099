"""docs/numerics.md names functions and tests that exist, and every module of `tflq/numerics` that has a formula."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from scripts.pages import numerics

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


def test_every_module_with_a_formula_is_named() -> None:
    folder = ROOT / "tflq" / "numerics"
    modules = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("[a-z]*.py")}
    shared = {
        *("kernel_sets", "xnnpack"),
        *(f"requantize.{v}" for v in ("scaling", "climb", "forms", "float_forms", "numpy_ops", "lines")),
    }
    named_modules = {name.rpartition(".")[0] for row in ROWS for name in named(row[3]) if "/" not in name}
    assert modules - shared == named_modules


def test_the_table_of_forms_is_current() -> None:
    assert numerics.page() == PAGE, "make it anew: scripts/make_docs.py numerics"
    assert numerics.table() in PAGE
