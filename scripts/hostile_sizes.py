"""Convert small files that state much, and hold the bounds of docs/security.md: 10 s and 500 MB beyond the file.

    python scripts/hostile_sizes.py                    2,000 draws, each in one of the forms
    python scripts/hostile_sizes.py --all-forms        ... each in all of them
    python scripts/hostile_sizes.py --only 17 --save x one again, its file saved

Draws are those of tests/support/hostile.py: operators of every kind with huge dims, windows, strides and counts,
extreme scales and constants to fold; every fourth is a layer of many channels. A child process converts them, under a
limit of memory; time is that of the processor. Draw N of a seed is the same in every run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.hostile import FORMS, any_draw, in_child  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all-forms", action="store_true")
    parser.add_argument("--only", type=int, help="one draw again")
    parser.add_argument("--save", type=Path, help="with --only: where to write its file")
    a = parser.parse_args()
    numbers = range(a.start, a.start + a.count) if a.only is None else range(a.only, a.only + 1)
    if a.save is not None:
        a.save.write_bytes(any_draw(numbers.start, a.seed)[1])
    records = list(in_child(numbers, a.seed, all_forms=a.all_forms or a.only is not None))
    failures = [record for record in records if record.excessive]
    for record in failures:
        print(record)
    slowest = max(records, key=lambda record: record.seconds)
    print(
        f"{len(records)} conversions in {len(FORMS)} forms, {len(failures)} beyond the bounds; the slowest: {slowest}"
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
