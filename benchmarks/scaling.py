"""How the cost of a conversion grows with the number of operators: milliseconds and KiB for each of the source's.

    python benchmarks/scaling.py [--counts 100 1000 10000 50000] [--plot scaling.svg]

For networks of `networks.py`, to integer TFLite, to TFLite with the kernels kept, and to TOSA: reading, converting and
writing, in a process of its own that has converted a small network before. Time is the
processor's, so that other work disturbs less. KiB: how much the peak of its memory grew.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from chart import curves
from claims import Claim, table
from networks import KINDS, network

COUNTS: Final = (100, 300, 1000, 3000, 10_000, 50_000)
WAYS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "integer": ("tflite", {}),
    "kernels": ("tflite", {"target": "kernels"}),
    "tosa": ("tosa", {}),
}
GROWTH: Final = 1.3
"""The most that an operator may cost in the largest network, times what it costs in one of `USUAL` operators."""
USUAL: Final = 1000
PROGRAM: Final = """
import json, sys, time
sys.path.insert(0, sys.argv[5])
import tflq
from measure import peak_growth
warm, model, out, options = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
tflq.convert(warm, out, force=True, **options)
start = time.process_time()
grown = peak_growth(lambda: tflq.convert(model, out, force=True, **options))
print(time.process_time() - start, grown * 1024)
"""


def measured(kind: str, count: int, way: str, folder: Path, repeat: int) -> tuple[float, float]:
    """Milliseconds and KiB for each operator: of several runs the least."""
    warm, model = folder / "warm.tflite", folder / f"{kind}{count}.tflite"
    if not model.exists():
        model.write_bytes(network(kind, count))
        warm.write_bytes(network("mixed", 28, seed=99))
    suffix, options = WAYS[way]
    command = [sys.executable, "-c", PROGRAM, str(warm), str(model), str(folder / f"out.{suffix}"), json.dumps(options)]
    command.append(str(Path(__file__).resolve().parent))
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(repeat)]
    seconds, grown = (min(float(run[i]) for run in runs) for i in range(2))
    return seconds * 1e3 / count, grown / count


def claims(counts: Sequence[int] = COUNTS, plot: Path | None = None) -> Iterator[Claim]:
    """Milliseconds and KiB for each operator, and how they grow; at last the plot."""
    drawn: dict[str, dict[str, list[tuple[float, float]]]] = {"ms for each operator": {}, "KiB for each operator": {}}
    with tempfile.TemporaryDirectory() as place:
        for kind in KINDS:
            for way in WAYS:
                for count in counts:
                    figures = measured(kind, count, way, Path(place), 2 if count < 10_000 else 1)
                    for panel, figure in zip(drawn, figures, strict=True):
                        drawn[panel].setdefault(f"{kind} {way}", []).append((count, max(figure, 0.01)))
                        unit = panel.partition(" ")[0]
                        yield Claim(f"{panel}, {way}", f"{kind}, {count:,} operators", figure, None, unit)
                for panel, rows in drawn.items():
                    yield from _growth(f"{panel}, {way}", kind, dict(rows[f"{kind} {way}"]))
    if plot is not None:
        plot.write_text(curves({**drawn}, "operators of the source"), encoding="utf-8")


def _growth(claim: str, kind: str, figures: Mapping[int, float]) -> Iterator[Claim]:
    """What an operator costs in the largest network, times what it costs in a usual one."""
    most = max(figures)
    if USUAL in figures and most > USUAL:
        case = f"{kind}, {most:,} operators for {USUAL:,}"
        yield Claim(f"growth of {claim}", case, figures[most] / figures[USUAL], GROWTH, "×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    print(table(claims(arguments.counts, arguments.plot)))


if __name__ == "__main__":
    main()
