"""Running modules in the tosa form on the TOSA reference model, and checking them with tosa-opt."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.module import Module


def reference(module: Module, inputs: Sequence[np.ndarray], function: int = 0) -> list[np.ndarray]:
    """The outputs of an entry, of their storage dtypes. Skips the test where the reference model is not installed."""
    outputs = reference_of_file(bytes(tosa_bytes(module, function)), inputs)
    types = [v.type.storage.dtype for v in module.functions[function].outputs]
    return [
        out.view(dtype) if out.dtype.itemsize == dtype.itemsize else out
        for out, dtype in zip(outputs, types, strict=True)
    ]


def reference_of_file(data: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a TOSA file, as the model gives them. Skips the test where the reference model is not
    installed."""
    tool = pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    outputs, status = tool.run(data, list(inputs))
    assert status.name == "TOSA_VALID", status
    return list(outputs)


@cache
def tosa_opt() -> str:
    """The path of tosa-opt. Skips the test where it is not installed."""
    with suppress(PackageNotFoundError):  # the program itself: the script of that name starts Python first
        program = str(distribution("tosa-tools").locate_file("bin/tosa-opt"))
        if os.access(program, os.X_OK):
            return program
    found = shutil.which("tosa-opt")
    if found is None:
        pytest.skip("needs tosa-opt: pip install '.[tosa]'")
    return found


def validate(text: str, tmp_path: Path) -> None:
    """Fails with tosa-opt's message unless it finds MLIR text valid, strictly, for the target that the text names."""
    path = tmp_path / "model.mlir"
    path.write_text(text)
    problem = invalid(path.read_bytes())
    assert not problem, problem


def invalid(text: bytes) -> str:
    """What tosa-opt finds wrong with MLIR text, by the letter and for the target that the text names; "" if nothing."""
    command = [tosa_opt(), "-", "--tosa-validate=strict-op-spec-alignment", "-o", "/dev/null"]
    run = subprocess.run(command, input=text, capture_output=True, check=False)
    return run.stderr.decode()[:2000] if run.returncode else ""


def valid(text: str, profiles: Iterable[str], extensions: Iterable[str], folder: Path, *steps: str) -> bool:
    """Whether tosa-opt finds MLIR text valid for profiles and extensions, strictly, at level 8k; `steps` follow."""
    path = folder / "model.mlir"
    path.write_text(text)
    target = f"profiles={','.join(sorted(profiles))} extensions={','.join(sorted(extensions))} level=8k"
    passes = [f"--tosa-attach-target={target}", "--tosa-validate=strict-op-spec-alignment", *steps]
    run = subprocess.run([tosa_opt(), str(path), *passes, "-o", "/dev/null"], capture_output=True, check=False)
    return run.returncode == 0
