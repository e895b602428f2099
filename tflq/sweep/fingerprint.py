"""What a result rests on: versions, the machine, and the settings of the sweep."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tflq
from tflq.files import file_errors
from tflq.sweep.task import Settings

__all__ = ["MACHINE", "by_content", "cpu_name", "fingerprint"]

MACHINE = ("cpu", "platform", "python")
"""Parts that times depend on; results do not."""


def fingerprint(settings: Settings) -> dict[str, Any]:
    """tflq's version and commit ("" outside a checkout), interpreter, resolver, CPU, seeds and the like."""
    from tflq.verification.static_memory import interpreter_name

    return {
        "tflq": tflq.__version__,
        "commit": _commit(),
        "interpreter": interpreter_name(),
        "resolver": "reference",
        "tosa": _version("tosa-tools"),
        "numpy": _version("numpy"),
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "cpu": cpu_name(),
        **settings.to_json(),
        "convert": by_content(settings.convert),
    }


def by_content(convert: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a conversion as JSON has them; files of rules by name and content, wherever they are."""
    told: dict[str, Any] = json.loads(json.dumps(convert))
    if "rules" in told:
        told["rules"] = [_file(Path(path)) for path in told["rules"]]
    return told


def _file(path: Path) -> str:
    with file_errors(path):
        return f"{path.name} (SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]})"


@cache
def _commit() -> str:
    """The commit of the checkout that tflq runs from, with a + if files of the package differ from it."""
    root = Path(tflq.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "tflq", "schema", "rules")
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()  # noqa: S603


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def cpu_name() -> str:
    """The CPU as the system names it, else its architecture."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
