"""Convert models with unreasonable parameters, of every operator, and compare them with the interpreter.

    python scripts/unreasonable.py                        every operator, --count draws of each
    python scripts/unreasonable.py --only add,mul         these
    python scripts/unreasonable.py --draw add:17          one again: what it is, and what comes of it
    python scripts/unreasonable.py --draw add:17 --save x ... and its files

Each draw has scales from 0 to infinity, zero points at the ends, extreme constants, odd shapes, open dims, any fused
activation. Its conversions, for the targets integer and kernels, every tenth for TOSA, too, must give what the
interpreter does, bit for bit, or the report must warn; what the interpreter runs must not be refused. A warning is
needless if it announces a difference that does not show, or says that a result is not what the parameters say although
it is; at most 1% of the draws may have one. Draw N of an operator and seed is the same in every run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from matrix.unreasonable import FAILURES, OPERATORS, Job, run, subject  # noqa: E402
from matrix.unreasonable.pool import Record, work  # noqa: E402

NEEDLESS = 0.01
"""The share of draws that may have a needless warning."""
PER_CHILD = 250


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=-(-20000 // len(OPERATORS)), help="draws of each operator")
    parser.add_argument("--start", type=int, default=0, help="number of the first draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="operators, with commas between; what ends in * stands for a beginning"
    )
    parser.add_argument("--draw", default="", help="OPERATOR:NUMBER")
    parser.add_argument("--save", type=Path, help="with --draw: write its files into this folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--tosa-every", type=int, default=10, help="of so many draws one goes to TOSA, too; 0: none")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--examples", type=int, default=3, help="draws listed per operator, target and kind of failure")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    a = _arguments()
    if a.worker:
        work(json.loads(a.worker))
        return 0
    if a.draw:
        return _one(a)
    names = [name for name in OPERATORS if not a.only or any(_matches(name, p) for p in a.only.split(","))]
    stop = a.start + a.count
    jobs = [
        Job(name, begin, min(begin + PER_CHILD, stop), a.seed, a.tosa_every)
        for name in names
        for begin in range(a.start, stop, PER_CHILD)
    ]
    started, lock = time.monotonic(), threading.Lock()
    records: list[Record] = []

    def done(record: Record) -> None:
        with lock:
            records.append(record)
            if record["kind"] in (*FAILURES, "needless"):
                print(_line(record)[:300], file=sys.stderr, flush=True)

    run(jobs, a.jobs, __file__, done)
    summary = _summary(records, len(names) * a.count, time.monotonic() - started, a)
    _print(summary, records, a.examples)
    if a.json is not None:
        a.json.write_text(json.dumps(summary, indent=1) + "\n")
    return int(bool(summary["failures"]) or summary["needless_share"] > NEEDLESS)


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _line(record: Record) -> str:
    return f"{record['operator']}:{record['number']} {record['target']} {record['kind']}: {record['detail']}"


def _summary(records: list[Record], draws: int, seconds: float, a: argparse.Namespace) -> Record:
    operators: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        operators[record["operator"]][record["target"]][record["kind"]] += 1
        totals[record["target"]][record["kind"]] += 1
    needless = {(r["operator"], r["number"]) for r in records if r["kind"] == "needless"}
    wrong = sorted((r for r in records if r["kind"] in (*FAILURES, "needless")), key=_line)
    return {
        "format": "tflq.unreasonable",
        "version": 1,
        "seed": a.seed,
        "start": a.start,
        "count": a.count,
        "draws": draws,
        "seconds": round(seconds, 1),
        "totals": totals,
        "needless_share": len(needless) / max(draws, 1),
        "operators": operators,
        "failures": [r for r in wrong if r["kind"] != "needless"],
        "needless": [r for r in wrong if r["kind"] == "needless"],
    }


def _print(summary: Record, records: list[Record], examples: int) -> None:
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda r: (r["operator"], r["number"])):
        groups[record["operator"], record["target"], record["kind"]].append(record)
    for name, targets in sorted(summary["operators"].items()):
        words = (f"{t}: " + ", ".join(f"{n} {k}" for k, n in kinds.items()) for t, kinds in targets.items())
        print(f"{name:28} " + "; ".join(words))
        for (operator, _, kind), found in groups.items():
            if operator == name and kind in (*FAILURES, "needless"):
                for record in found[:examples]:
                    print(f"    {_line(record)[:400]}\n        {record.get('text', '')[:400]}")
    for target, kinds in summary["totals"].items():
        print(f"{target}: " + ", ".join(f"{n} {k}" for k, n in kinds.items()))
    print(f"{summary['draws']} draws, {summary['needless_share']:.2%} needless warnings, {summary['seconds']} s")


def _one(a: argparse.Namespace) -> int:
    name, number = a.draw.split(":")
    drawn = subject(name, int(number), a.seed)
    print(drawn.text)
    if a.save is not None:
        _save(a.save, drawn.model)
    found: list[Record] = []
    run([Job(name, int(number), int(number) + 1, a.seed, 1)], 1, __file__, found.append)
    for record in found:
        print(_line(record))
    return int(any(record["kind"] in (*FAILURES, "needless") for record in found))


def _save(folder: Path, model: bytes) -> None:
    import tflq

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "original.tflite").write_bytes(model)
    for target in ("integer", "kernels"):
        try:
            (folder / f"{target}.tflite").write_bytes(tflq.convert(model, target=target).data)
        except tflq.TflqError as error:
            print(f"{target}: {error}")


if __name__ == "__main__":
    sys.exit(main())
