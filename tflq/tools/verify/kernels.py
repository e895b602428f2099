"""The kernel sets that a file names, and those of the interpreter that is loaded.

The interpreter is recognised by what it computes: a model of three operators whose sums lie on ties of the sets'
products. What each set gives follows from the set itself.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from tflq.formats.backend import opening
from tflq.formats.sources import read
from tflq.formats.tflite.writer import write
from tflq.ir.core import Buffer, Function, Module, Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i8, i32, ui8
from tflq.numerics.fixed_point import multiply
from tflq.numerics.kernel_sets import IN_FILE, NAMES, Exactness, KernelSet, kernel_set
from tflq.tools.verify.model_file import ModelFile
from tflq.tools.verify.runner import Resolver
from tflq.tools.verify.sources import onnx_metadata
from tflq.tools.verify.tflite_runner import TfliteRunner


def exactness_of(path: str) -> Exactness | None:
    """The kernel sets in the metadata of a file; None if it has none."""
    format = opening(path)
    texts: Mapping[str, bytes] = {}
    if format.interpreted:
        texts = {name: data for name, data in ModelFile(path).metadata.items() if name == IN_FILE}
    elif format.name == "onnx" and find_spec("onnx"):
        texts = onnx_metadata(path)
    elif format.name == "tosa":
        texts = {m.name or "": m.buffer.data.tobytes() for m in read(path).metadata or ()}
    return Exactness.read(texts[IN_FILE]) if IN_FILE in texts else None


def resolver_for(exactness: Exactness) -> Resolver:
    """The kernels of the interpreter that a file's set is of: those of its delegate, if the set has one."""
    known = exactness.name in NAMES
    return "reference" if not known or kernel_set(exactness.name).delegated is None else "default"


# The probe: FULLY_CONNECTED of int8, CONV_2D of uint8, and RELU of uint8, which no delegate takes, each on all 256
# values. Scales are chosen so that sums lie on ties of the sets' products.


def _type(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, float(np.float32(scale)), zero_point)


_FULLY_CONNECTED: Final = (_type(i8, 0.5, 3), _type(i8, 0.25), _type(i8, 4.0, -2))
_CONVOLUTION: Final = (_type(ui8, 0.7285608, 120), _type(ui8, 0.58539003, 110), _type(ui8, 21.312927, 128))
_RELU: Final = (_type(ui8, 0.31643587, 100), _type(ui8, 0.35940865, 3))
"""Types of an operator's input, weights and result."""
_PROBED: Final[tuple[tuple[UniformQuantizedType, ...], ...]] = (_FULLY_CONNECTED, _CONVOLUTION, _RELU)
_WEIGHTS: Final = np.asarray([3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59])


def _numbers(element: UniformQuantizedType) -> np.ndarray:
    return np.arange(element.storage_min, element.storage_max + 1)


def probe_results(kernels: KernelSet) -> list[np.ndarray]:
    """The probe's results under a set: int64 [256, 16], [256, 16], [256]."""
    delegated, results = kernels.of(delegated=True), []
    for x, weights, y in (_FULLY_CONNECTED, _CONVOLUTION):
        scales = np.asarray([weights.scale], np.float32)
        dense = y.storage is i8
        factor = delegated.fully_connected(x, i8, scales, y) if dense else delegated.convolution(x, scales, y)
        assert factor is not None
        sums = (_numbers(x) - x.zero_point)[:, None] * (_WEIGHTS - weights.zero_point).astype(np.int32)
        results.append(factor.apply(sums.astype(np.int32)).astype(np.int64) + y.zero_point)
    x, y = _RELU
    results.append(multiply((_numbers(x) - x.zero_point).astype(np.int32), *kernels.relu(x, y)).astype(np.int64))
    results[-1] = np.maximum(results[-1], 0) + y.zero_point
    return [np.clip(r, e[-1].storage_min, e[-1].storage_max) for r, e in zip(results, _PROBED, strict=True)]


def probe() -> bytes:
    """The file of the probe."""
    inputs, results, ops = [], [], []
    shapes = ((256, 1), (256, 16), (16, 1)), ((1, 256, 1, 1), (1, 256, 1, 16), (16, 1, 1, 1)), ((256,), (256,), ())
    plain = {"fused_activation_function": "NONE"}
    window = {"padding": "VALID", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    options = {**plain, "weights_format": "DEFAULT", "keep_num_dims": False, "asymmetric_quantize_inputs": False}
    names: tuple[tuple[str, dict[str, object]], ...]
    names = ("tfl.fully_connected", options), ("tfl.conv_2d", {**plain, **window}), ("tfl.relu", {})
    for number, ((name, attributes), elements, (of_input, of_result, weights)) in enumerate(
        zip(names, _PROBED, shapes, strict=True)
    ):
        x, y = (
            Value(TensorType(of_input, elements[0]), f"x{number}"),
            Value(TensorType(of_result, elements[-1]), f"y{number}"),
        )
        operands: list[Value | None] = [x]
        if weights:
            bias = _type(i32, elements[0].scale * elements[1].scale)
            operands.append(_constant(_WEIGHTS.reshape(weights), elements[1], f"w{number}"))
            operands.append(_constant(np.zeros(16), bias, f"b{number}"))
        inputs.append(x)
        results.append(y)
        ops.append(Op(name, operands, [y], attributes))
    return bytes(write(Module([Function("main", inputs, results, ops)])))


def _constant(array: np.ndarray, element: UniformQuantizedType, name: str) -> Value:
    stored = Buffer.of(np.ascontiguousarray(array, element.storage.dtype))
    return Value(TensorType(array.shape, element), name, buffer=stored)


_SETS: Final[dict[Resolver, tuple[str, ...]]] = {}


def sets_of_interpreter(
    resolver: Resolver, timeout: float = 60.0, beside: TfliteRunner | None = None
) -> tuple[str, ...]:
    """The kernel sets that give what the interpreter gives on these kernels; none if no set does. Sets that differ in
    operators whose arithmetic is not known here are told apart by the machine. beside: a model that is open, in whose
    process the probe runs."""
    if resolver not in _SETS:
        _SETS[resolver] = _sets_of_interpreter(resolver, timeout, beside)
    return _SETS[resolver]


def _sets_of_interpreter(resolver: Resolver, timeout: float, beside: TfliteRunner | None) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = Path(folder, "probe.tflite")
        path.write_bytes(probe())
        runner = TfliteRunner(str(path), resolver, timeout, beside)
        try:
            inputs = [
                _numbers(elements[0]).astype(elements[0].storage.dtype).reshape(description["shape"])
                for elements, (_, description) in zip(_PROBED, runner.entries[""]["inputs"], strict=True)
            ]
            results = runner.run("", inputs, {})
        finally:
            runner.close()
    return sets_that_give(results, arm64=platform.machine().lower() in ("aarch64", "arm64"))


def sets_that_give(results: Sequence[np.ndarray], *, arm64: bool) -> tuple[str, ...]:
    """The sets whose probe has these results, on a machine of this kind if they say of which they are."""
    names: list[str] = []
    for name in NAMES:
        wanted = probe_results(kernel_set(name))
        if all(np.array_equal(w.reshape(-1), r.reshape(-1)) for w, r in zip(wanted, results, strict=True)):
            names.append(name)
    of_machine = [name for name in names if ("arm64" in name) == arm64]
    return tuple(of_machine or names)


def mismatch(exactness: Exactness, resolver: Resolver, timeout: float, beside: TfliteRunner | None = None) -> str:
    """Why the interpreter that is loaded has other kernels than a file reproduces, and what to do; empty if it has
    these."""
    names = sets_of_interpreter(resolver, timeout, beside)
    if not names:
        return _UNKNOWN.format(exactness.name)
    return "" if {exactness.name, *exactness.exact_for} & set(names) else _OTHER.format(exactness.name, names[0])


_UNKNOWN: Final = (
    "the file reproduces {}, and the interpreter that is loaded is none of the kernel sets that are known (its probe "
    "has other results): install an interpreter of that set, or compare on other kernels with --resolver"
)
_OTHER: Final = (
    "the file reproduces {0}, and the interpreter that is loaded is {1}: install an interpreter of the former, or "
    "convert again with --kernel-set {1}"
)
