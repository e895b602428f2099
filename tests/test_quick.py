"""`make quick`: which tests it takes for what changed."""

from __future__ import annotations

import pytest

from scripts.quick import Suite, module

LOWERING = "formats/tflite/lowering"
FILES = {
    "tests/numerics/test_pooling.py": "from tflq.numerics import pooling",
    "tests/numerics/test_erf.py": "from tflq.numerics.erf import erf",
    f"tests/{LOWERING}/test_pooling.py": "from support.planted import plant",
    f"tests/{LOWERING}/deep/test_bits.py": "",
    f"tests/{LOWERING}/test_pools.py": "from tflq.numerics import (\n    erf,\n    pooling,\n)",
    "tests/legalize/test_engine.py": "",
    "tests/legalize/reference/arithmetic/test_division.py": "",
    "tests/support/planted.py": "from support.harness import run",
    "tests/support/harness.py": "",
    "tests/cli/test_help.py": 'PAGE = ROOT / "docs" / "cli.md"',
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("tflq/numerics/pooling.py", ["numerics/test_pooling", f"{LOWERING}/test_pools", "numerics/test_erf"]),
        ("tflq/dialects/tfl/pooling.py", [f"{LOWERING}/test_pooling", "numerics/test_pooling"]),
        (
            f"tflq/{LOWERING}/deep/bits.py",
            [f"{LOWERING}/{name}" for name in ("deep/test_bits", "test_pooling", "test_pools")],
        ),
        (
            f"tflq/{LOWERING}/pools.py",
            [f"{LOWERING}/{name}" for name in ("test_pools", "test_pooling", "deep/test_bits")],
        ),
        ("tflq/legalize/arithmetic.py", ["legalize/reference/arithmetic/test_division", "legalize/test_engine"]),
        ("tests/support/harness.py", [f"{LOWERING}/test_pooling"]),
        (f"tests/{LOWERING}/test_pools.py", [f"{LOWERING}/test_pools"]),
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
