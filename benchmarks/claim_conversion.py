"""Claims on the speed of conversion: python benchmarks/claim_conversion.py

In process, to TFLite and to TOSA, beside tosa-converter-for-tflite; and the whole process for a small network beside
Python with the same imports. Scales differ by an ulp from run to run, so that nothing can be remembered.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from claims import Claim, networks, table
from convert_speed import fully_connected
from measure import whole_process

import tflq
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType

AIMS: Final = {"mobilenet_v2_1.0_224_quant": 1.0, "tf2_mobilenet_v2_1.0_224_ptq": 2.0}
"""Times the peer, of the networks that have an aim."""
NETWORKS: Final = (
    *AIMS,
    *("mobilenet_v1_0.25_128_quant", "deeplabv3_mnv2_dm05_pascal_quant", "pretrainedResnet_large_int8", "cnn_int8"),
)
LARGE: Final = 400
REPEAT: Final = 7
OURS: Final = """
import json, os, sys, time, tflq
times = []
open_batch = any(None in (v.type.shape or ()) for v in tflq.read(sys.argv[2]).main.inputs)
options = {"batch": 1} if open_batch and sys.argv[1].endswith("tosa") else {}
for path in sys.argv[2:]:
    if os.path.exists(sys.argv[1]):
        os.remove(sys.argv[1])
    start = time.perf_counter()
    tflq.convert(path, sys.argv[1], **options)
    times.append(time.perf_counter() - start)
print(json.dumps(times[1:]))
"""
PEERS: Final = """
import json, os, sys, time, tosa_converter_for_tflite as peer
times = []
for path in sys.argv[2:]:
    if os.path.exists(sys.argv[1]):
        os.remove(sys.argv[1])
    start = time.perf_counter()
    peer.tflite_flatbuffer_to_tosa_mlir(path, sys.argv[1])
    times.append(time.perf_counter() - start)
print(json.dumps(times[1:]))
"""


def variants(model: Path, count: int, folder: Path) -> list[str]:
    """Copies of a network, each with all scales an ulp larger than in the last."""
    module, paths = tflq.read(model), []
    for number in range(count):
        paths.append(str(folder / f"{number}.tflite"))
        tflq.write(module, paths[-1])
        for value in (v for function in module.functions for v in function.values()):
            element = value.type.element
            if isinstance(element, UniformQuantizedType):
                scale = float(np.nextafter(np.float32(element.scale), np.float32(np.inf)))
                made = UniformQuantizedType.of(element.storage, scale, element.zero_point)
                value.type = TensorType(value.type.shape, made)
            elif isinstance(element, UniformQuantizedPerAxisType):
                scales = np.nextafter(element.scales, np.float32(np.inf))
                per_axis = UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, element.zero_points)
                value.type = TensorType(value.type.shape, per_axis)
    return paths


def timed(program: str, destination: Path, paths: list[str]) -> float | None:
    """Median seconds in a process of its own, the first left out; None if it fails."""
    run = subprocess.run([sys.executable, "-c", program, str(destination), *paths], capture_output=True, text=True)
    if run.returncode:
        print(f"SKIPPED: {run.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    return statistics.median(json.loads(run.stdout.splitlines()[-1]))


def beside_peer(name: str, paths: list[str], folder: Path, aim: float | None) -> Iterator[Claim]:
    """Our time in process for each format, times the peer's."""
    theirs = timed(PEERS, folder / "peer.mlirbc", paths)
    for format in ("tflite", "tosa"):
        ours = timed(OURS, folder / f"out.{format}", paths)
        assert ours is not None
        of = f"{ours * 1e3:.0f} ms" + ("" if theirs is None else f", peer {theirs * 1e3:.0f} ms")
        yield Claim(
            f"conversion in process, to {format}", name, None if not theirs else ours / theirs, aim, "× peer", of
        )


def claims() -> Iterator[Claim]:
    for name, path in networks(NETWORKS).items():
        if path is not None:
            with tempfile.TemporaryDirectory() as place:
                paths = variants(path, REPEAT + 1, Path(place))
                yield from beside_peer(name, paths, Path(place), AIMS.get(name))
    with tempfile.TemporaryDirectory() as place:
        large = Path(place) / "large.tflite"
        tflq.write(fully_connected(LARGE), large)
        yield from beside_peer(f"fully connected, {LARGE} MB", [str(large)] * 3, Path(place), 0.3)
        small = networks(["cnn_int8"])["cnn_int8"]
        command = [sys.executable, "-m", "tflq", "convert", str(small), f"{place}/out.tflite", "--force"]
        ours = whole_process(command, REPEAT)
        least = whole_process([sys.executable, "-c", "import numpy, click"], REPEAT)
        of = f"{ours}, Python with numpy and click {least}"
        yield Claim("whole process", "cnn_int8", ours.seconds / least.seconds, 1.7, "× imports", of)


if __name__ == "__main__":
    print(table(claims()))
