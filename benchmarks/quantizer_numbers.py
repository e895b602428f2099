"""The numbers of `tflq quantize` on given ranges, beside those of litert-quantizer and TensorFlow.

    python benchmarks/quantizer_numbers.py FOLDER [MODEL.tflite ...]     by default the float networks in models/

64 samples to calibrate with, 100 others to judge. One file of statistics goes to tflq and to litert-quantizer.
TensorFlow calibrates itself, and has three rows: beside tflq by its own statistics; by what TensorFlow's kernels
compute, which its calibration runs ("its kernels": optimized, on several threads, without XNNPACK); and by the ranges
that it saw ("its ranges"): of an ADD's operand these are those of its result, too, which is written over it before they
are looked at. Of so many activations these give the parameters by (max - min) / 255 alone ("plain"). A row per network,
scheme and peer:

    equal    weights, activations and biases that both quantize, whose scales are within one unit in the last place, and
             whose zero points and stored numbers are equal, of how many; others are listed below the row
    QUANTIZE how many such operators each file has
    dB       10 log10(Σf² / Σ(f-q)²) over all outputs of the 100 inputs

FOLDER keeps the files. Needs the packages of `pip install '.[verify]' litert-quantizer==0.11 tensorflow-cpu==2.21`.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from quantizers import drawn, with_signature

import tflq
from tflq.analysis.statistics import Statistics
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import CalibratedQuantizedType, is_quantized
from tflq.tools.quantize.debugging.outcome import decibels as shown
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.verify.runner import RunError

ROOT = Path(__file__).resolve().parent.parent
RECIPES = {
    "int8": "static_wi8_ai8",
    "int16x8": "static_wi8_ai16",
    "weight-only": "weight_only_wi8_afp32",
    "weight-only int4": "weight_only_wi4_afp32",
    "dynamic": "dynamic_wi8_afp32",
}
STORED = {"int8": "int8", "int16x8": "int16"}
LISTED = 12


def main(folder: Path, models: list[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    below: dict[str, list[float]] = {}
    for model in models or sorted((ROOT / "models").glob("*_float.tflite")):
        network = _Network(folder, model)
        for scheme in RECIPES:
            for method in ("minmax", "ema") if scheme in STORED else ("minmax",):
                worst = compared(network, scheme, method)
                if worst is not None and method == "minmax":
                    below.setdefault(scheme, []).append(worst)
    for scheme, found in below.items():
        print(f"{scheme}: against the better one {min(found):+.2f} dB at least, {median(found):+.2f} in the median")


class _Network:
    """A network with a signature, and its samples."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.name = folder, model.stem.removesuffix("_float")
        module = tflq.read(model)
        self.path = model if module.signatures else with_signature(module, folder / model.name)
        signature = (tflq.read(self.path).signatures or [])[0]
        self.key, self.inputs = signature.key or "", list(signature.inputs or [])
        self.calibrating, self.judging = self._samples(64, 1), self._samples(100, 2)
        calibrated = tflq.calibrate(self.path, self.calibrating, signature=self.key)
        self.statistics = calibrated.statistics

    def _samples(self, count: int, seed: int) -> list[dict[str, np.ndarray]]:
        shapes = {name or "": [dim or 1 for dim in value.type.shape or ()] for name, value in self.inputs}
        return drawn(shapes, count, seed)

    def file(self, *parts: str) -> Path:
        return self.folder / f"{'_'.join((self.name, *parts)).replace(' ', '_')}.tflite"

    def decibels(self, path: Path) -> float | None:
        try:
            return signal_to_noise(self.path, path, self.judging, signature=self.key)
        except (tflq.TflqError, RunError) as error:
            print(f"    {path.name} does not run: {str(error)[:160]}")
            return None


def compared(network: _Network, scheme: str, method: str) -> float | None:
    """Prints the rows of a network and scheme. Returns by how many decibels tflq is above the better of its peers."""
    ours, static = network.file(scheme, method), scheme in STORED
    options: dict[str, Any] = {"weights": "int4"} if scheme.endswith("int4") else {}
    if static:
        options = {"statistics": network.statistics, "range": method, "io": STORED[scheme]}
    result = tflq.quantize(network.path, ours, scheme=scheme.split()[0], force=True, **options)
    mine = network.decibels(ours)
    peers = {"litert-quantizer": _litert_quantizer}
    if (scheme, method) == ("int8", "minmax"):
        peers["TensorFlow"] = _tensorflow
    found = []
    for name, make in peers.items():
        row, theirs = f"{network.name} | {scheme} | {method} | {name}", network.file(scheme, method, name)
        try:
            with _silence():
                theirs.write_bytes(make(network, scheme, method))
            modules = tflq.read(ours), tflq.read(theirs)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its outcome
            print(f"{row} fails: {str(error)[:200]}")
            continue
        decibels = network.decibels(theirs)
        _print_row(row, *modules, f"{shown_exactly(mine)} / {shown_exactly(decibels)}")
        if make is _tensorflow:
            _print_row_of_kernels(network, f"{row}, its kernels", modules[1], decibels)
            _print_row_of_ranges(network, f"{row}, its ranges", modules[1], decibels)
        if decibels is not None and not np.isinf(decibels):  # a file that equals the network has nothing quantized
            found.append(decibels)
    kept = "; ".join(f"{row.operator}: {row.why}" for row in result.kept) if static else ""
    if kept:
        print(f"    float in tflq's: {kept[:300]}")
    return mine - max(found) if found and mine is not None else None


def _print_row(row: str, ours: Module, theirs: Module, decibels: str) -> None:
    """Prints what is equal in two files, and below it what is not."""
    found = list(_differences(ours, theirs))
    equal = ", ".join(
        f"{sum(k == kind and not text for k, text in found)} of {sum(k == kind for k, _ in found)} {kind}"
        for kind in ("weights", "activations", "biases")
    )
    counts = " / ".join(str(sum(isinstance(op, Quantize) for op in module.ops())) for module in (ours, theirs))
    print(f"{row} | equal {equal} | QUANTIZE {counts} | {decibels}", flush=True)
    for text in [text for _, text in found if text][:LISTED]:
        print(f"    {text}")
    for text in _floats(ours, theirs):
        print(f"    {text}")


def _print_row_of_kernels(network: _Network, row: str, theirs: Module, decibels: float | None) -> None:
    """Prints what is equal where tflq has the ranges of what TensorFlow's kernels compute."""
    import tensorflow as tf

    resolver = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    options = {"experimental_op_resolver_type": resolver, "experimental_preserve_all_tensors": True, "num_threads": 2}
    interpreter = tf.lite.Interpreter(str(network.path), **options)
    interpreter.allocate_tensors()
    places = {each["name"]: each["index"] for each in interpreter.get_tensor_details()}
    run, points = interpreter.get_signature_runner(network.key), network.statistics.points
    lows, highs = dict.fromkeys(points, np.inf), dict.fromkeys(points, -np.inf)
    for sample in network.calibrating:
        run(**sample)
        for key in points:
            seen = interpreter.get_tensor(places[key])
            lows[key], highs[key] = min(lows[key], float(seen.min())), max(highs[key], float(seen.max()))
    found = {key: replace(point, minimum=lows[key], maximum=highs[key]) for key, point in points.items()}
    ours = network.file("int8", "kernels of TensorFlow")
    tflq.quantize(network.path, ours, statistics=Statistics(found), io=STORED["int8"], force=True)
    beside = f"{shown_exactly(network.decibels(ours))} / {shown_exactly(decibels)}"
    _print_row(row, tflq.read(ours), theirs, beside)


def _print_row_of_ranges(network: _Network, row: str, theirs: Module, decibels: float | None) -> None:
    """Prints what is equal where tflq has the ranges that TensorFlow saw, and where a formula alone has them."""
    ours = network.file("int8", "ranges of TensorFlow")
    tflq.quantize(_calibrated(network), ours, io=STORED["int8"], force=True)
    mine, seen = tflq.read(ours), {v.name: v.type.element for v in tflq.read(_calibrated(network)).main.tensors}
    both, others = _tensors(mine), _tensors(theirs)
    plain = [
        not _difference(name, _plain(seen.get(name)), others[name])
        for name, each in both.items()
        if name in others and each.stored is None
    ]
    beside = f"{shown_exactly(network.decibels(ours))} / {shown_exactly(decibels)}"
    _print_row(f"{row}, plain {sum(plain)} of {len(plain)} activations", mine, theirs, beside)


def _plain(seen: Any) -> _Tensor:
    """The int8 parameters of a range that contains 0, by the formula alone; a scale of 0 where there is no range."""
    low, high = (min(seen.minimum, 0), max(seen.maximum, 0)) if isinstance(seen, CalibratedQuantizedType) else (0, 0)
    scale = np.float32((high - low) / 255)
    return _Tensor("i8", np.array([scale]), np.array([np.rint(-128 - low / scale) if scale else 0]), None)


def shown_exactly(decibels: float | None) -> str:
    if decibels is None:
        return "-"
    return shown(decibels) if np.isinf(decibels) else f"{decibels:.2f} dB"


def _litert_quantizer(network: _Network, scheme: str, method: str) -> bytes:
    from litert_quantizer import quantizer, recipe
    from litert_quantizer.utils.calibration_utils import load_calibration_results

    from tflq.analysis.statistics import write_in_form

    peer = quantizer.Quantizer(str(network.path))
    peer.load_quantization_recipe(getattr(recipe, RECIPES[scheme])())
    if scheme not in STORED:
        return bytes(peer.quantize().quantized_model)
    result = network.folder / f"{network.name}_{method}.json"
    write_in_form(result, network.statistics, "ai-edge-quantizer", method, force=True)
    return bytes(peer.quantize(load_calibration_results(str(result))[0]).quantized_model)


def _tensorflow(network: _Network, *_: str) -> bytes:
    """What the converter does after it has made a float file: calibrate this, then quantize it."""
    import tensorflow as tf
    from tensorflow.lite.python.convert import mlir_quantize
    from tensorflow.lite.python.optimize.calibrator import Calibrator

    calibrator = Calibrator(network.path.read_bytes())
    calibrated = calibrator.calibrate(lambda: ((network.key, sample) for sample in network.calibrating))
    _calibrated(network).write_bytes(bytes(calibrated))
    return bytes(mlir_quantize(calibrated, input_data_type=tf.int8, output_data_type=tf.int8))


def _calibrated(network: _Network) -> Path:
    """The float file with the ranges that TensorFlow saw."""
    return network.file("calibrated by TensorFlow")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Peers report at length."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class _Tensor(NamedTuple):
    storage: str
    scales: np.ndarray
    zero_points: np.ndarray
    stored: np.ndarray | None


def _tensors(module: Module) -> dict[str, _Tensor]:
    """The quantized tensors: activations by name, constants by the operator that takes them. Of casts between
    parameters the result is left out: names of these are the quantizer's own."""
    found: dict[str, _Tensor] = {}
    for op in module.ops():
        if isinstance(op, (Quantize, Dequantize)):
            continue
        made = op.results[0].name if op.results else ""
        for place, value in enumerate(op.operands):
            if value is not None and isinstance(value.producer, Dequantize):
                value = value.producer.input
            if value is not None and value.is_constant and is_quantized(value.type.element):
                found[f"{made} [{place}]"] = _tensor(value)
        for value in op.results:
            if is_quantized(value.type.element):
                found[value.name] = _tensor(value)
    return found


def _tensor(value: Value) -> _Tensor:
    kind: Any = value.type.element
    scales, zeros = (
        np.atleast_1d(getattr(kind, many, getattr(kind, one, None)))
        for many, one in (("scales", "scale"), ("zero_points", "zero_point"))
    )
    return _Tensor(str(kind.storage), scales.astype(np.float32), zeros, value.array if value.is_constant else None)


def _differences(ours: Module, theirs: Module) -> Iterator[tuple[str, str]]:
    """Of each tensor that both quantize what it is, and how it differs; empty if it does not."""
    others = _tensors(theirs)
    for name, mine in _tensors(ours).items():
        if name in others:
            kind = "activations" if mine.stored is None else "biases" if mine.storage in ("i32", "i64") else "weights"
            yield kind, _difference(name, mine, others[name])


def _difference(name: str, mine: _Tensor, other: _Tensor) -> str:
    if (mine.storage, mine.scales.shape) != (other.storage, other.scales.shape):
        return f"{_short(name)}: {mine.storage} of {mine.scales.size} scales, {other.storage} of {other.scales.size}"
    apart = np.abs(mine.scales.view(np.int32).astype(np.int64) - other.scales.view(np.int32).astype(np.int64))
    parts = []
    if (apart > 1).any():
        at = int(apart.argmax())
        parts.append(
            f"{(apart > 1).sum()} of {apart.size} scales, {mine.scales.flat[at]:.9g} and {other.scales.flat[at]:.9g}"
        )
    if (mine.zero_points != other.zero_points).any():
        parts.append(f"zero point {mine.zero_points.flat[0]} and {other.zero_points.flat[0]}")
    if mine.stored is not None and other.stored is not None:
        steps = np.abs(mine.stored.reshape(-1).astype(np.int64) - other.stored.reshape(-1).astype(np.int64))
        if steps.any():
            parts.append(f"{(steps > 0).sum()} of {steps.size} stored, by {steps.max()} at most")
    return f"{_short(name)}: {'; '.join(parts)}" if parts else ""


def _floats(ours: Module, theirs: Module) -> Iterator[str]:
    """The operators that one of the two leaves in float."""
    mine, other = (
        {op.results[0].name: op.short_name for op in m.ops() if _computes_floats(op)} for m in (ours, theirs)
    )
    for one, two, whose in ((mine, other, "tflq's"), (other, mine, "theirs")):
        if only := sorted(two_name for name, two_name in one.items() if name not in two):
            yield f"float only in {whose}: {', '.join(only)}"


def _computes_floats(op: Any) -> bool:
    return (
        bool(op.results)
        and not isinstance(op, (Quantize, Dequantize))
        and getattr(op.results[0].type.element, "is_float", False)
    )


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:24]}...{name[-33:]}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
