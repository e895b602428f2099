"""Draw random graphs as TensorFlow writes them, convert them, resize every input of both files and compare results.

    python scripts/drop_ins.py --count 200 --seed 1        what is lost of 200, in each form
    python scripts/drop_ins.py --only 17 --save x.tflite   one again, saved

tests/resizing draws them. Graph N of a seed is the same in every run. Exit 1 if anything is lost.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from resizing.examine import examine  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="this graph alone")
    parser.add_argument("--save", type=Path, help="with --only: where to write it")
    a = parser.parse_args()
    numbers = range(a.start, a.start + a.count) if a.only is None else range(a.only, a.only + 1)
    lost: Counter[str] = Counter()
    graphs = ran = announced = 0
    with ProcessPoolExecutor(a.jobs) as pool:
        for result in pool.map(partial(examine, a.seed), numbers):
            if a.save:
                a.save.write_bytes(result.model)
            ran += result.runs > 0
            announced += result.announced
            graphs += any(result.lost.values())
            for form, what in result.lost.items():
                lost[form] += bool(what)
                for line in what[: 3 if a.only is None else None]:
                    print(f"{result.number} {form} {line}\n    {result.text}", flush=True)
    forms = ", ".join(f"{form} {n}" for form, n in lost.items())
    told = f"{ran} of them run, {announced} with announced differences"
    print(f"seed {a.seed}: {len(numbers)} graphs, {told}, lost: {graphs} ({forms})")
    return int(graphs > 0)


if __name__ == "__main__":
    sys.exit(main())
