"""What a conversion imports: no more than it needs, since a process that converts a small model does little else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.import_graph import all_imports, circle

ROOT = Path(__file__).resolve().parents[1]
NOT_NEEDED = (
    *("decimal", "fractions", "logging", "numpy.typing", "pathlib", "tomllib"),
    *("concurrent.futures", "multiprocessing", "tempfile", "rich"),
)


def imported(code: str) -> set[str]:
    """The modules of a process that runs the code."""
    ask = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(run.stdout.split())


@pytest.fixture(scope="module")
def of_a_conversion() -> set[str]:
    """What a conversion imports beside numpy."""
    return imported("import tflq\ntflq.convert('models/cnn_int8.tflite')") - imported("import numpy")


@pytest.mark.parametrize("name", NOT_NEEDED)
def test_a_conversion_does_without(of_a_conversion: set[str], name: str) -> None:
    assert name not in of_a_conversion


def test_a_conversion_imports_no_more_than_a_few_modules(of_a_conversion: set[str]) -> None:
    assert sum(name.startswith("tflq") for name in of_a_conversion) < 260


def test_no_files_import_each_other() -> None:
    """In functions and for the type checker neither: what two need of each other belongs in a third."""
    assert circle(all_imports()) == []


def test_a_conversion_defines_no_dataclasses_but_those_of_public_results() -> None:
    """To compile the methods of one takes as long as to define 40 plain classes."""
    found = imported(
        "import dataclasses, tflq\n"
        "print(tflq.convert('models/cnn_int8.tflite').cost)\n"
        "modules = [module for name, module in sys.modules.items() if name.startswith('tflq')]\n"
        "print(*{f'dataclass:{c.__name__}' for m in modules for c in vars(m).values()\n"
        "        if isinstance(c, type) and dataclasses.is_dataclass(c)})"
    )
    assert {name for name in found if name.startswith("dataclass:")} == {
        f"dataclass:{name}" for name in ("Arena", "Cost", "Reason", "Row")
    }


def test_the_quantizer_and_the_process_that_calibrates_import_what_they_use() -> None:
    """Of a small network imports are half of the work; the package `tflite` alone has 180 modules."""
    found = imported("import tflq\ntflq.quantize")
    assert not {"tflite", "importlib.metadata", "multiprocessing", "concurrent.futures", "numpy.typing"} & found
    watching = imported("import tflq.tools.quantize.calibration.collecting")
    assert not any(name.startswith(("tflq.ir", "tflq.dialects", "tflite")) for name in watching)


def test_version_needs_neither_numpy_nor_the_compiler() -> None:
    found = imported("from tflq.cli.main import run\nrun(['--version'])")
    assert "numpy" not in found
    assert not any(name.startswith(("tflq.ir", "tflq.dialects")) for name in found)
