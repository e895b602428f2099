"""Run the tests on a wheel from which products and a source format are deleted: what remains must not need them.

    python scripts/without_products.py [pytest's arguments]

The wheel is unpacked beside the tests, `ABSENT` is deleted with its tests, and `tflq/ir/index.py` is made again. A test
is skipped if it fails and its file names something absent. It fails if none is named, or if the core needs it: an
import that is missing in another folder than `tflq/tools` and `tflq/cli`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import copy, rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
ABSENT: Final = ("formats/mlir", "tools/quantize", "tools/sweep", "tools/explorer")
NAMES: Final = re.compile(
    r"formats[./]mlir|tools[./](quantize|sweep|explorer)|\b(arith|linalg|fxpmath)\.\w|func\.(call|constant)|quant-\w"
    r"|\btflq[. ](quantize|calibrate|debug|inspect|sweep|run_sweep)\b|[\"']inspect[\"']"
    r"|named_passes|\bsweeps?\b|stablehlo"
)
"""What names something absent in the source of a test: its modules, functions, commands, passes and dialects.
`tflq inspect` is among them, since the quantizer tells it whether a network is quantized."""
DOCUMENTS: Final = (
    *("test_pages", "test_packaging", "test_site", "test_readme", "test_numerics_page", "test_proposals_page"),
    *("test_examples_in_docstrings", "test_words"),
)
"""Tests of documents and of the wheel as a whole, which name something absent."""


class SkipAbsent:
    """A plugin of pytest: a test that fails and names something absent is skipped, unless the core needs that."""

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        report = yield
        if report.failed and names_absent(collector.path):
            report.outcome, report.longrepr = "skipped", _skipped(collector.path)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if report.failed and call.excinfo is not None and names_absent(item.path) and not _is_core(call.excinfo):
            report.outcome, report.longrepr = "skipped", _skipped(item.path)
        return report


@cache
def names_absent(path: Path) -> bool:
    """Whether a test file names something absent."""
    return path.is_file() and (path.stem in DOCUMENTS or NAMES.search(path.read_text(encoding="utf-8")) is not None)


def _skipped(path: Path) -> tuple[str, int, str]:
    return str(path), 0, "Skipped: names something absent"


def _is_core(error: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether a module of the core imports something absent."""
    cause: BaseException | None = error.value
    while cause is not None and not isinstance(cause, ModuleNotFoundError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return False
    frames = [Path(str(entry.path)).as_posix() for entry in pytest.ExceptionInfo.from_exception(cause).traceback]
    inside = [path for path in frames if "/tflq/" in path and "importlib" not in path]
    inside = [path for path in inside if not path.endswith("/tflq/__init__.py")]  # public names, imported when asked
    return bool(inside) and not any(f"/tflq/{folder}/" in inside[-1] for folder in ("tools", "cli"))


def main(arguments: list[str]) -> int:
    """Builds, deletes, runs. Returns pytest's exit code."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        build = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
        subprocess.run(build, check=True)
        tree = place / "tree"
        with ZipFile(next(place.glob("*.whl"))) as wheel:
            wheel.extractall(tree)
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in listed.splitlines():
            if not name.startswith("tflq/") and (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                copy(ROOT / name, tree / name)
        for name in ABSENT:
            rmtree(tree / "tflq" / name)
            rmtree(tree / "tests" / name)
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        subprocess.run([sys.executable, "scripts/make_index.py"], cwd=tree, env=environment, check=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "scripts.without_products", *arguments]
        return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def pytest_configure(config: pytest.Config) -> None:
    """Registers the plugin where pytest loads this file by `-p`, in each worker."""
    config.pluginmanager.register(SkipAbsent())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
