"""The kernel sets that a file names, and those of the interpreter that is loaded.

The interpreter is recognised by what it computes: a model of five operators whose sums lie on ties of the sets'
products. The results of each set are written down here, so that a fault of a set is found, and not its interpreter.
"""

from __future__ import annotations

import platform
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from tflq.base.files import file_errors
from tflq.formats.backend import opening
from tflq.formats.sources import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i8, i32, ui8
from tflq.numerics.kernel_sets import IN_FILE, NAMES, Exactness, kernel_set
from tflq.tools.verify.c_interface import exactness_in
from tflq.tools.verify.model_file import ModelFile
from tflq.tools.verify.runner import Resolver
from tflq.tools.verify.sources import onnx_metadata
from tflq.tools.verify.tflite_runner import TfliteRunner


def exactness_of(path: str) -> Exactness | None:
    """The kernel sets in the metadata of a file; None if it has none."""
    format = opening(path)
    if format.name == "c":
        with file_errors(path):
            return exactness_in(Path(path).read_text("utf-8", "replace"))
    text: bytes | None = None
    if format.interpreted:
        text = ModelFile(path).metadata.get(IN_FILE)
    elif format.name == "onnx" and find_spec("onnx"):
        text = onnx_metadata(path).get(IN_FILE)
    elif format.name == "tosa":
        text = read(path).metadata_of(IN_FILE)
    return Exactness.read(text)


def resolver_for(exactness: Exactness) -> Resolver:
    """The kernels of the interpreter that a file's set is of: those of its delegate, if the set has one."""
    known = exactness.name in NAMES
    return "reference" if not known or kernel_set(exactness.name).delegated is None else "default"


# The probe. Each operator is run on all 256 values, with scales and zero points such that sums lie on ties of the sets'
# products. BATCH_MATMUL has a zero point that older delegates drop, MEAN sums that they round otherwise; no delegate
# takes RELU.


def _type(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, float(np.float32(scale)), zero_point)


class _Probed(NamedTuple):
    """An operator of the probe: types and shapes of its input and its result, and what else it reads."""

    name: str
    attributes: Mapping[str, object]
    x: tuple[UniformQuantizedType, tuple[int, ...]]
    y: tuple[UniformQuantizedType, tuple[int, ...]]
    weights: tuple[UniformQuantizedType, tuple[int, ...]] | None = None

    @property
    def numbers(self) -> np.ndarray:
        """The values of its input, as stored: int64 [256]."""
        return np.arange(self.x[0].storage_min, self.x[0].storage_max + 1)


_PLAIN: Final = {"fused_activation_function": "NONE"}
_CONNECTED: Final = _Probed(
    "tfl.fully_connected",
    _PLAIN | {"weights_format": "DEFAULT", "keep_num_dims": False, "asymmetric_quantize_inputs": False},
    (_type(i8, 0.5, 3), (256, 1)),
    (_type(i8, 4.0, -2), (256, 16)),
    (_type(i8, 0.25), (16, 1)),
)
_CONVOLUTION: Final = _Probed(
    "tfl.conv_2d",
    _PLAIN | {"padding": "VALID", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1},
    (_type(ui8, 0.7285608, 120), (1, 256, 1, 1)),
    (_type(ui8, 21.312927, 128), (1, 256, 1, 16)),
    (_type(ui8, 0.58539003, 110), (16, 1, 1, 1)),
)
_MATRICES: Final = _Probed(
    "tfl.batch_matmul",
    {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False},
    (_type(i8, 0.5, 3), (256, 1)),
    (_type(i8, 4.0, -2), (256, 16)),
    (_type(i8, 0.25, 10), (1, 16)),
)
_MEAN: Final = _Probed("tfl.mean", {"keep_dims": False}, (_type(i8, 0.5, 3), (128, 2)), (_type(i8, 0.5, 5), (128,)))
_RELU: Final = _Probed("tfl.relu", {}, (_type(ui8, 0.31643587, 100), (256,)), (_type(ui8, 0.35940865, 3), (256,)))
_PROBED: Final = (_CONNECTED, _CONVOLUTION, _MATRICES, _MEAN, _RELU)
_WEIGHTS: Final = np.asarray([3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59])


def probe() -> bytes:
    """The file of the probe."""
    inputs, results, ops = [], [], []
    for number, each in enumerate(_PROBED):
        x, y = (Value(TensorType(shape, e), f"{name}{number}") for name, (e, shape) in (("x", each.x), ("y", each.y)))
        operands: list[Value | None] = [x]
        if each.weights is not None:
            element, shape = each.weights
            operands.append(_constant(_WEIGHTS.reshape(shape), element, f"w{number}"))
            if each is not _MATRICES:
                operands.append(_constant(np.zeros(16), _type(i32, each.x[0].scale * element.scale), f"b{number}"))
        if each is _MEAN:
            operands.append(_constant(np.asarray([1]), i32, f"axes{number}"))
        inputs.append(x)
        results.append(y)
        ops.append(Op(each.name, operands, [y], dict(each.attributes)))
    return bytes(write(Module([Function("main", inputs, results, ops)])))


def _constant(array: np.ndarray, element: UniformQuantizedType | ScalarType, name: str) -> Value:
    storage = element if isinstance(element, ScalarType) else element.storage
    stored = Buffer.of(np.ascontiguousarray(array, storage.dtype))
    return Value(TensorType(array.shape, element), name, buffer=stored)


RESULTS: Final[Mapping[str, tuple[int, ...]]] = {
    "reference-1.0": (0x0236D929, 0x3B9F5D81, 0x1E21B198, 0xFB881A58, 0x03FD933C),
    "reference-2.3": (0x457E8A8A, 0x3B9F5D81, 0x1E21B198, 0xFB881A58, 0x03FD933C),
    "reference-2.3-arm64": (0x457E8A8A, 0x3B9F5D81, 0x1E21B198, 0xFB881A58, 0x03FD933C),
    "reference-2.4-dev": (0x457E8A8A, 0x7D58778D, 0x1E21B198, 0xFB881A58, 0x5E25C8A9),
    "xnnpack-2.3": (0xC6E5E511, 0x6E1C86A2, 0x1E21B198, 0x7B292468, 0x03FD933C),
    "xnnpack-2.3-arm64": (0xC6E5E511, 0x4153A5BA, 0x1E21B198, 0x7B292468, 0x03FD933C),
    "xnnpack-2.3-arm64-a53": (0xC6E5E511, 0x5DE77EE7, 0x1E21B198, 0x7B292468, 0x03FD933C),
    "xnnpack-2.4-dev": (0xC6E5E511, 0x6E1C86A2, 0x1E21B198, 0x7B292468, 0x5E25C8A9),
}
"""CRC-32 of the results of each operator of the probe, by kernel set."""


class Recognition(NamedTuple):
    """The kernel sets that give what the interpreter gives on the probe; none if no set does. `apart`: the operators in
    which the nearest set differs from it."""

    sets: tuple[str, ...]
    nearest: str
    apart: tuple[str, ...]


_RECOGNIZED: Final[dict[Resolver, Recognition]] = {}


def recognize(resolver: Resolver, timeout: float = 60.0, beside: TfliteRunner | None = None) -> Recognition:
    """The kernel sets of the interpreter that is loaded, by the probe's results. They are computed once in a process.
    beside: a model that is open, in whose process the probe runs."""
    if resolver not in _RECOGNIZED:
        results = _results(resolver, timeout, beside)
        _RECOGNIZED[resolver] = recognition(results, arm64=platform.machine().lower() in ("aarch64", "arm64"))
    return _RECOGNIZED[resolver]


def _results(resolver: Resolver, timeout: float, beside: TfliteRunner | None) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = Path(folder, "probe.tflite")
        path.write_bytes(probe())
        runner = TfliteRunner(str(path), resolver, timeout, beside)
        try:
            inputs = [each.numbers.astype(each.x[0].storage.dtype).reshape(each.x[1]) for each in _PROBED]
            return runner.run("", inputs, {})
        finally:
            runner.close()


def recognition(results: Sequence[np.ndarray], *, arm64: bool) -> Recognition:
    """The sets whose probe has these results. Sets that differ in operators whose arithmetic is not known here are told
    apart by the machine."""
    sums = [zlib.crc32(result.tobytes()) for result in results]
    apart = {
        name: tuple(
            each.name.removeprefix("tfl.").upper()
            for each, want, result in zip(_PROBED, wanted, sums, strict=True)
            if want != result
        )
        for name, wanted in RESULTS.items()
    }
    nearest = min(apart, key=lambda name: len(apart[name]))
    names = [name for name, operators in apart.items() if not operators]
    of_machine = [name for name in names if ("arm64" in name) == arm64]
    return Recognition(tuple(of_machine or names), nearest, apart[nearest])


def mismatch(exactness: Exactness, resolver: Resolver, timeout: float, beside: TfliteRunner | None = None) -> str:
    """Why the interpreter that is loaded has other kernels than a file reproduces, and what to do; empty if it has
    these."""
    sets, nearest, apart = recognize(resolver, timeout, beside)
    if not sets:
        return _UNKNOWN.format(exactness.name, nearest, ", ".join(apart))
    return "" if {exactness.name, *exactness.exact_for} & set(sets) else _OTHER.format(exactness.name, sets[0])


_UNKNOWN: Final = (
    "the file reproduces {0}, and the interpreter that is loaded is none of the kernel sets that are known (in a probe "
    "it differs from {1}, the nearest, in {2}): install an interpreter of {0}, or compare on other kernels with "
    "--resolver"
)
_OTHER: Final = (
    "the file reproduces {0}, and the interpreter that is loaded is {1}: install an interpreter of the former, or "
    "convert again with --kernel-set {1}"
)
