"""Claims on converted networks in the interpreter: python benchmarks/claim_running.py [--repeat N]

Time for each inference and memory, times the original's: kernels, integer and float32, with optimized kernels and with
XNNPACK, one thread. The aim of float32 with optimized kernels is relative to the slower of the original and the float
network (`float_network.py`): no form in floats is faster than that, and int8 kernels may be several times faster. With
XNNPACK there is none: products are so quick there that the operators beside them are most of the time. Memory is
what the process grows by at most while it loads and runs the file, and the arena that is stated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from claims import Claim, networks, table
from float_network import float_network

import tflq
from tflq.analysis.arena import arena_of

NETWORKS: Final = (
    *("mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant", "mobilenet_v2_1.0_224_inat_bird_quant"),
    *("tf2_mobilenet_v2_1.0_224_ptq", "deeplabv3_mnv2_dm05_pascal_quant", "pretrainedResnet_large_int8"),
    *("vww_96_int8", "kws_ref_model", "ResNet50", "EfficientNetB0"),
)
WAYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "kernels": {"target": "kernels"},
    "integer": {},
    "float32": {"mac": "float32"},
}
TIMES: Final = {("float32", "optimized"): 1.5}
MEMORY: Final = {"integer": 3.0}
"""The most of the original's."""
RESOLVERS: Final = {"optimized": "optimized", "XNNPACK": "default"}
PROGRAM: Final = """
import json, statistics, sys, time
sys.path.insert(0, sys.argv[1])
from measure import peak_growth
from run_time import interpreter
if sys.argv[4] == "memory":
    interpreter(open(sys.argv[5], "rb").read(), sys.argv[2])  # what is loaded once
    print(json.dumps(peak_growth(lambda: interpreter(open(sys.argv[6], "rb").read(), sys.argv[2]))))
else:
    runners = [interpreter(open(path, "rb").read(), sys.argv[2]) for path in sys.argv[5:]]
    times = [[] for _ in runners]
    for _ in range(int(sys.argv[3])):
        for runner, taken in zip(runners, times):
            start = time.thread_time()
            runner.invoke()
            taken.append(time.thread_time() - start)
    print(json.dumps([statistics.median(taken) for taken in times]))
"""


def asked(what: str, resolver: str, repeat: int, *paths: Path) -> Any:
    """What the program prints; None, said aloud, if the interpreter does not run the models."""
    here = str(Path(__file__).resolve().parent)
    command = [sys.executable, "-c", PROGRAM, here, RESOLVERS[resolver], str(repeat), what, *map(str, paths)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        print(f"SKIPPED: {paths[-1]} with {resolver} kernels: exit code {run.returncode}", flush=True)
        return None
    return json.loads(run.stdout.splitlines()[-1])


def of_network(name: str, original: Path, folder: Path, repeat: int) -> Iterator[Claim]:
    made = {way: folder / f"{way}.tflite" for way in WAYS}
    arenas = {way: tflq.convert(original, made[way], force=True, **options).arena for way, options in WAYS.items()}
    floats = folder / "float_network.tflite"
    floats.write_bytes(float_network(original))
    for resolver in RESOLVERS:
        seconds = asked("time", resolver, repeat, original, floats, *made.values())
        yield from _times(name, resolver, seconds)
    least = networks(["pad"])["pad"]
    assert least is not None
    before, of_floats = (asked("memory", "optimized", 1, least, path) or 0 for path in (original, floats))
    own = arena_of(tflq.read(original)).bytes
    for way, path in made.items():
        grown, arena = asked("memory", "optimized", 1, least, path), arenas[way]
        stated = None if arena is None else arena.bytes
        of = f"{(grown or 0):.1f} MiB, original {before:.1f} MiB, float network {of_floats:.1f} MiB"
        yield Claim(f"memory, {way}", name, grown / before if grown and before else None, MEMORY.get(way), of=of)
        if stated and own:
            of = f"{stated / 2**20:.2f} MiB, original {own / 2**20:.2f} MiB"
            yield Claim(f"arena, {way}", name, stated / own, of=of)


def _times(name: str, resolver: str, seconds: Sequence[float] | None) -> Iterator[Claim]:
    """Of the original, its float network, and each way."""
    if seconds is None:
        yield from (Claim(f"run time, {way}, {resolver}", name, None) for way in WAYS)
        return
    own, floats, *others = seconds
    for way, taken in zip(WAYS, others, strict=True):
        aim = TIMES.get((way, resolver))
        if aim is not None:
            aim *= max(1.0, floats / own)
        of = f"{taken * 1e3:.2f} ms, original {own * 1e3:.2f} ms, float network {floats * 1e3:.2f} ms"
        yield Claim(f"run time, {way}, {resolver}", name, taken / own, aim, of=of)


def claims(repeat: int = 15) -> Iterator[Claim]:
    for name, path in networks(NETWORKS).items():
        if path is not None:
            with tempfile.TemporaryDirectory() as place:
                yield from of_network(name, path, Path(place), repeat)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    print(table(claims(parser.parse_args().repeat)))
