"""Draw the memory of a sweep's driver over time: python benchmarks/sweep_memory.py MODELS PLOT.svg [-- SWEEP OPTIONS]

MODELS tiny models are made, each another; `tflq sweep` runs them, and the resident memory of its driver is read 4
times a second. With `--cluster N`, N Dask workers on this machine run them. Prints models per minute, and the memory
in MiB after the first results, at the last, and the growth between. Needs `pip install -e '.[verify,dask]'`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tflq
from tflq.ir.types import UniformQuantizedType, i8

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
from handmade import one_operator, stored, tensor

EVERY = 0.25  # seconds
WIDTH, HEIGHT, LEFT, BOTTOM = 900, 420, 70, 50
Point = tuple[float, float, int]
"""Seconds, MiB, results."""


def make(folder: Path, count: int) -> None:
    """Models of one addition, with scales of their own."""
    for i in range(count):
        scales = (0.02 + i * 1e-5, 0.03, 0.05 + i * 1e-5)
        x, y, z = (UniformQuantizedType.of(i8, scale) for scale in scales)
        operands = [tensor("x", (1, 8), x), stored("y", np.arange(8, dtype=np.int8), y)]
        add = one_operator("add", operands, [tensor("z", (1, 8), z)], {"fused_activation_function": "NONE"})
        (folder / f"{i:05}.tflite").write_bytes(tflq.write(add))


@contextmanager
def cluster(workers: int) -> Iterator[list[str]]:
    """The options of a sweep on a cluster of so many processes; none for 0."""
    if not workers:
        yield []
        return
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as one:
        yield ["--scheduler", one.scheduler_address]


def resident(pid: int) -> float:
    """MiB of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def watch(process: subprocess.Popen[bytes], results: Path) -> Iterator[Point]:
    """The memory of a sweep's driver until it ends, and how far it was."""
    start, done, read = time.monotonic(), 0, 0
    while process.poll() is None:
        time.sleep(EVERY)
        if results.exists():
            with results.open("rb") as file:
                file.seek(read)
                new = file.read()
            done, read = done + new.count(b"\n"), read + len(new)
        if memory := resident(process.pid):
            yield time.monotonic() - start, memory, done


def draw(points: list[Point], path: Path, title: str) -> None:
    """Memory and results over time, as SVG."""
    seconds, top = points[-1][0], max(memory for _, memory, _ in points) * 1.2
    most = max(done for _, _, done in points) or 1
    inner_width, inner_height = WIDTH - 2 * LEFT, HEIGHT - 2 * BOTTOM

    def line(values: list[float], largest: float, color: str) -> str:
        places = [
            f"{LEFT + t / seconds * inner_width:.1f},{HEIGHT - BOTTOM - value / largest * inner_height:.1f}"
            for (t, _, _), value in zip(points, values, strict=True)
        ]
        return f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{" ".join(places)}"/>'

    def text(x: float, y: float, what: str, anchor: str = "middle", color: str = "#222") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">{what}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        "<style>text { font-size: 13px }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(WIDTH / 2, 24, title),
        text(LEFT, 42, "driver, MiB", "start", "#1f5fbf"),
        text(WIDTH - LEFT, 42, "results", "end", "#b85c00"),
        text(WIDTH / 2, HEIGHT - 12, "seconds"),
    ]
    for i in range(6):
        y = HEIGHT - BOTTOM - i / 5 * inner_height
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
            text(LEFT - 8, y + 4, f"{top * i / 5:.0f}", "end", "#1f5fbf"),
            text(WIDTH - LEFT + 8, y + 4, f"{most * i / 5:.0f}", "start", "#b85c00"),
            text(LEFT + i / 5 * inner_width, HEIGHT - BOTTOM + 18, f"{seconds * i / 5:.0f}"),
        ]
    parts += [line([memory for _, memory, _ in points], top, "#1f5fbf")]
    parts += [line([float(done) for _, _, done in points], most, "#b85c00"), "</svg>"]
    path.write_text("\n".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", type=int)
    parser.add_argument("plot", type=Path)
    parser.add_argument("--cluster", type=int, default=0)
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, cluster(given.cluster) as more:
        folder, out = Path(place, "models"), Path(place, "out")
        folder.mkdir()
        make(folder, given.models)
        command = [sys.executable, "-m", "tflq", "sweep", str(folder), "-o", str(out), "--no-cache", "-q"]
        start = time.monotonic()
        process = subprocess.Popen([*command, *more, *given.options])
        points = list(watch(process, out / "results.jsonl"))
        seconds = time.monotonic() - start
    title = f"{given.models} models" + (f", {given.cluster} Dask workers" if given.cluster else "")
    draw(points, given.plot, f"{title}: memory of the driver")
    sweeping = [point for point in points if 0.05 * given.models <= point[2] < given.models]
    times, memory, _ = np.array(sweeping).T
    slope = np.polyfit(times, memory, 1)[0] * (times[-1] - times[0])
    print(f"{title}: exit code {process.returncode}, {seconds:.0f} s, {given.models / seconds * 60:.0f} a minute")
    print(
        f"driver, MiB: {memory[0]:.1f} at 5 % of the models, {memory[-1]:.1f} at the last, fitted growth {slope:+.1f}"
    )
    print(f"most, with the page written at the end: {max(point[1] for point in points):.1f}")


if __name__ == "__main__":
    main()
