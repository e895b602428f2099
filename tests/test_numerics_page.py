"""docs/numerics.md names functions and tests that exist, and every module of `tflq/numerics` that has a formula."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
LEGALIZE = ROOT / "tests" / "legalize"
FOLDERS = {"N": ROOT / "tests" / "numerics", "L": LEGALIZE, "R": LEGALIZE / "reference"}
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]
HELPERS = {"arrays", "bfloat16", "real_tables"}
"""Modules without a formula of a kernel."""


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_function_named_exists() -> None:
    for row in ROWS:
        for name in named(row[3]) if row[3] != "`tflq/numerics`" else ():
            module, _, function = name.partition(".")
            assert callable(getattr(import_module(f"tflq.numerics.{module}"), function)), name


def test_every_test_named_exists() -> None:
    proofs = [name for row in ROWS for name in named(row[4])]
    assert len(proofs) > 60
    for name in proofs:
        file, _, test = name.partition("::")
        text = (FOLDERS[file[0]] / file[2:]).read_text(encoding="utf-8")
        assert f"def {test}(" in text, name


def test_every_module_with_a_formula_is_named() -> None:
    modules = {path.stem for path in (ROOT / "tflq" / "numerics").glob("[a-z]*.py")} - HELPERS
    assert modules == {name.partition(".")[0] for row in ROWS for name in named(row[3]) if "/" not in name}
