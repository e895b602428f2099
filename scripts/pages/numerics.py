"""docs/numerics.md, with the table of forms from their docstrings.

A form's docstring is its formula, a colon, and why it is exact.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tflq.numerics import requantize
from tflq.numerics.requantize.forms import Form

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "numerics.md"
HEAD = "| form | formula | why it is exact | `tflq/numerics` | proof |\n|---|---|---|---|---|\n"
PROOFS = {
    "test_forms.py::test_sums_are_scaled_as_the_kernels_scale_them": "Clamped Clipped Distance Falling Split",
    "test_forms.py::test_a_division_of_sums_is_the_kernels_scale": "Division",
    "test_rounded.py::test_forms_are_the_kernels_operations": "Fallen Rounded",
    "test_products.py::test_long_products_equal_the_double": "LongProduct",
}
"""The forms that each test proves, which its code or its parameters name."""


def forms(kind: type[Form] = Form) -> Iterator[type[Form]]:
    """The classes that have operations of their own, by module."""
    for module in pkgutil.iter_modules(requantize.__path__, f"{requantize.__name__}."):
        import_module(module.name)
    for each in sorted(kind.__subclasses__(), key=lambda c: (c.__module__, c.__name__)):
        if "apply" in vars(each) and each.__module__.startswith(requantize.__name__):
            yield each
        yield from forms(each)


def proof_of(form: type[Form]) -> str:
    """The test that proves a form, as PROOFS has it."""
    for test, names in PROOFS.items():
        if form.__name__ in names.split():
            return test
    raise ValueError(f"PROOFS has no test of {form.__name__}: add the one that compares it with the kernel")


def table() -> str:
    """The table, as text."""
    rows = []
    for form in forms():
        formula, _, reason = " ".join((form.__doc__ or "").split()).partition(": ")
        if not reason:
            raise ValueError(f"the docstring of {form.__name__} is {formula!r}: add a colon, and why it is exact")
        proof = proof_of(form)
        place = f"{form.__module__.removeprefix('tflq.numerics.')}.{form.__name__}"
        rows.append(f"| {form.__name__} | `{formula}` | {reason.removesuffix('.')} | `{place}` | `{proof}` |\n")
    return HEAD + "".join(rows)


def page() -> str:
    """The page with the table as it is now."""
    return re.sub(re.escape(HEAD) + r"(\|.*\n)*", lambda _: table(), PAGE.read_text(encoding="utf-8"))
