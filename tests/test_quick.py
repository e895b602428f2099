"""`make quick`: which tests it takes for what changed."""

from __future__ import annotations

import pytest

from scripts.quick import Suite, module

FILES = {
    "tests/numerics/test_pooling.py": "from tflq.numerics import pooling",
    "tests/numerics/test_erf.py": "from tflq.numerics.erf import erf",
    "tests/formats/tflite/lowering/test_pooling.py": "from support.planted import plant",
    "tests/formats/tflite/lowering/deep/test_bits.py": "",
    "tests/formats/tflite/lowering/test_pools.py": "from tflq.numerics import (\n    erf,\n    pooling,\n)",
    "tests/support/planted.py": "from support.harness import run",
    "tests/support/harness.py": "",
    "tests/cli/test_help.py": 'PAGE = ROOT / "docs" / "cli.md"',
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("tflq/numerics/pooling.py", ["numerics/test_pooling", "select/test_pools", "numerics/test_erf"]),
        ("tflq/dialects/tfl/pooling.py", ["numerics/test_pooling", "select/test_pooling"]),
        ("tflq/select/deep/bits.py", ["select/deep/test_bits", "select/test_pooling", "select/test_pools"]),
        ("tflq/select/bits.py", ["select/deep/test_bits", "select/test_pooling", "select/test_pools"]),
        ("tests/support/harness.py", ["select/test_pooling"]),
        ("tests/formats/tflite/lowering/test_pools.py", ["select/test_pools"]),
        ("docs/cli.md", ["cli/test_help"]),
        ("LICENSE", []),
    ],
)
def test_the_closest_tests_come_first(changed: str, expected: list[str]) -> None:
    assert Suite(FILES).of([changed]) == [f"tests/{name}.py" for name in expected]


def test_nothing_changed() -> None:
    assert Suite(FILES).of([]) == []


def test_name_of_a_module() -> None:
    assert module("tflq/ir/__init__.py") == "tflq.ir"
    assert module("tests/support/harness.py", "tests/") == "support.harness"
