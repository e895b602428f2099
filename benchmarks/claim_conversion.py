"""Claims on the speed of conversion: python benchmarks/claim_conversion.py

In process, to TFLite and to TOSA, beside tosa-converter-for-tflite; and the whole process for a small network beside
Python with the same imports. All is processor time of alternating runs, so that what else the machine does counts
little. Scales differ by an ulp from run to run, so that nothing can be remembered.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from claims import Build, Claim, networks, table
from convert_speed import fully_connected
from measure import in_turns, of_children

import tflq
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType

AIMS: Final = {
    "mobilenet_v2_1.0_224_quant": {"tflite": 1.3, "tosa": 0.75},
    "tf2_mobilenet_v2_1.0_224_ptq": {"tflite": 4.2, "tosa": 2.0},
}
"""Times the peer by format, of the networks that have an aim."""
NETWORKS: Final = (
    *AIMS,
    *("mobilenet_v1_0.25_128_quant", "deeplabv3_mnv2_dm05_pascal_quant", "pretrainedResnet_large_int8", "cnn_int8"),
)
LARGE: Final = 400
REPEAT: Final = 7
PROGRAM: Final = """
import json, os, sys, time, tflq
try:
    import tosa_converter_for_tflite as peer
except ImportError:
    peer = None

def taken(function, *arguments, **options):
    start = time.process_time()
    function(*arguments, **options)
    return time.process_time() - start

folder, *paths = sys.argv[1:]
open_batch = any(None in (value.type.shape or ()) for value in tflq.read(paths[0]).main.inputs)
times = {"tflite": [], "tosa": [], "peer": []}
for path in paths:
    for format in ("tflite", "tosa"):
        static = {"batch": 1} if open_batch and format == "tosa" else {}
        times[format].append(taken(tflq.convert, path, f"{folder}/out.{format}", force=True, **static))
    if peer is not None:
        try:
            seconds = taken(peer.tflite_flatbuffer_to_tosa_mlir, path, f"{folder}/peer.mlirbc")
        except Exception as error:
            peer = print(f"SKIPPED: the peer, {error}", file=sys.stderr)
        else:
            times["peer"].append(seconds)
            os.remove(f"{folder}/peer.mlirbc")
print(json.dumps({name: found[1:] for name, found in times.items()}))
"""
"""The processor's seconds of each, in turns, the first left out."""


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


def beside_peer(name: str, paths: list[str], folder: Path, aims: Mapping[str, float]) -> Iterator[Claim]:
    """Our processor time for each format, times the peer's: medians of alternating runs in a process of its own."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(folder), *paths], capture_output=True, text=True)
    print(run.stderr, end="", flush=True)
    run.check_returncode()
    times = {kind: statistics.median(found) for kind, found in json.loads(run.stdout.splitlines()[-1]).items() if found}
    theirs = times.pop("peer", None)
    for format, ours in times.items():
        of = f"{ours * 1e3:.0f} ms" + ("" if theirs is None else f", peer {theirs * 1e3:.0f} ms") + f"; {Build.here()}"
        ratio = None if not theirs else ours / theirs
        yield Claim(f"conversion, processor time, to {format}", name, ratio, aims.get(format), "× peer", of)


def claims() -> Iterator[Claim]:
    for name, path in networks(NETWORKS).items():
        if path is not None:
            with tempfile.TemporaryDirectory() as place:
                paths = variants(path, REPEAT + 1, Path(place))
                yield from beside_peer(name, paths, Path(place), AIMS.get(name, {}))
    with tempfile.TemporaryDirectory() as place:
        large = Path(place) / "large.tflite"
        tflq.write(fully_connected(LARGE), large)
        yield from beside_peer(
            f"fully connected, {LARGE} MB", [str(large)] * 3, Path(place), {"tflite": 0.3, "tosa": 0.3}
        )
        small = networks(["cnn_int8"])["cnn_int8"]
        command = [sys.executable, "-m", "tflq", "convert", str(small), f"{place}/out.tflite", "--force"]
        least = [sys.executable, "-c", "import numpy, click"]
        runs = [partial(subprocess.run, each, check=True, capture_output=True) for each in (command, least)]
        ours, imports = in_turns(runs, REPEAT, of_children)
        of = f"{ours * 1e3:.0f} ms, Python with numpy and click {imports * 1e3:.0f} ms; {Build.here()}"
        yield Claim("whole process, processor time", "cnn_int8", ours / imports, 1.7, "× imports", of)


if __name__ == "__main__":
    print(table(claims()))
