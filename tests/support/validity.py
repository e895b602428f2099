"""Whether tosa-opt finds MLIR text valid for stated profiles and extensions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from support.running import tosa_opt

__all__ = ["valid"]


def valid(text: str, profiles: Iterable[str], extensions: Iterable[str], folder: Path, *steps: str) -> bool:
    """Strictly, for level 8k; `steps` run after that. Skips the test where tosa-opt is not installed."""
    path = folder / "model.mlir"
    path.write_text(text)
    target = f"profiles={','.join(sorted(profiles))} extensions={','.join(sorted(extensions))} level=8k"
    passes = [f"--tosa-attach-target={target}", "--tosa-validate=strict-op-spec-alignment", *steps]
    run = subprocess.run([tosa_opt(), str(path), *passes, "-o", "/dev/null"], capture_output=True, check=False)
    return run.returncode == 0
