"""IREE, where it is at hand: the environment variable TFLQ_IREE names a Python with its compiler and runtime.

`run` compiles a text for the CPU and gives what its functions make of arrays.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest

PYTHON = os.environ.get("TFLQ_IREE", "")
needs_iree = pytest.mark.skipif(not PYTHON, reason="TFLQ_IREE names no Python with IREE's compiler and runtime")

_SCRIPT = """
import json, os, sys
import numpy as np
from iree import compiler, runtime
text, calls = json.load(sys.stdin)
flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
         "--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false"]
def array(given):
    data, dtype, shape = given
    return np.frombuffer(bytes.fromhex(data), dtype).reshape(shape)
binary = compiler.compile_str(text, input_type="auto", extra_args=flags)
context = runtime.SystemContext(config=runtime.Config("local-task"))
context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, binary))
out = []
for name, arrays in calls:
    made = context.modules.module[name](*map(array, arrays))
    made = made if isinstance(made, (list, tuple)) else [made]
    out.append([[a.tobytes().hex(), a.dtype.str, a.shape] for a in (np.asarray(m.to_host()) for m in made)])
json.dump(out, sys.stdout)
"""


def run(text: str, calls: Sequence[tuple[str, Sequence[np.ndarray]]]) -> list[list[np.ndarray]]:
    """The results of calls of a module's functions. RuntimeError with IREE's message if it refuses the text."""
    given = [(name, [_shown(array) for array in arrays]) for name, arrays in calls]
    done = subprocess.run(
        [PYTHON, "-c", _SCRIPT], input=json.dumps([text, given]), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return [[_array(found) for found in results] for results in json.loads(done.stdout)]


def _shown(array: np.ndarray) -> tuple[str, str, tuple[int, ...]]:
    return np.ascontiguousarray(array).tobytes().hex(), array.dtype.str, array.shape


def _array(given: Sequence[object]) -> np.ndarray:
    data, dtype, shape = given
    return np.frombuffer(bytes.fromhex(str(data)), str(dtype)).reshape(shape)  # type: ignore[call-overload]
