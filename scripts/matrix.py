"""Convert random models of one or a few operators, run them and their originals, and list what differs.

    python scripts/matrix.py --count 200                    each generator of tests/matrix
    python scripts/matrix.py --operator conv_2d --seed 7
    python scripts/matrix.py --operator conv_2d --only 12 --save /tmp/x
    python scripts/matrix.py --target kernels               the conversions for a target, or for a file of kernels
    python scripts/matrix.py --tosa                         the conversions to TOSA, on its reference model

Case N of a generator and seed is the same in every run. A case whose original the interpreter refuses is skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from matrix import GENERATORS  # noqa: E402
from matrix.draw import Case  # noqa: E402
from matrix.run import Outcome, case_of, run  # noqa: E402
from matrix.run_tosa import INTEGER, run_tosa  # noqa: E402

OTHERS = ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="cases of each generator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator", default="", help="only generators whose name contains this")
    parser.add_argument("--only", type=int, help="one case by its number")
    parser.add_argument("--save", type=Path, help="with --only: write the original and the converted model here")
    parser.add_argument("--target", help="for cases that do not state one: integer (the default), kernels or a file")
    parser.add_argument("--mac", choices=["integer", "float32"], help="for all cases; else as they are drawn")
    parser.add_argument("--tosa", action="store_true", help="convert to TOSA and run that, and back to TFLite")
    parser.add_argument(
        "--every",
        type=int,
        default=5,
        help="run each N-th case with the other kernels, too; with --tosa for integers without double rounding",
    )
    parser.add_argument("--examples", type=int, default=3, help="cases listed per group of failures")
    return parser.parse_args()


def main() -> int:
    a = _arguments()
    if a.tosa:
        _silence()
    total: Counter[str] = Counter()
    for name in (n for n in GENERATORS if a.operator in n):
        start = time.monotonic()
        groups: dict[str, list[tuple[int, str, str]]] = {}
        for number in [a.only] if a.only is not None else range(a.count):
            try:
                case = case_of(name, number, a.seed)
            except Exception as error:
                raise RuntimeError(f"{name} {number}: not drawn") from error
            if a.target is not None:
                everywhere = case.everywhere and a.target == "integer"  # kept kernels differ from resolver to resolver
                case = replace(case, conversion={"target": a.target, **case.conversion}, everywhere=everywhere)
            if a.mac is not None:
                case = replace(case, conversion={**case.conversion, "mac": a.mac})
            if a.save is not None:
                _save(a.save, case, a.tosa)
            outcome = _on_tosa(case, number, a.every) if a.tosa else _in_tflite(case, number, a.every)
            groups.setdefault(outcome.kind, []).append((number, outcome.detail, case.text))
        total.update({kind: len(found) for kind, found in groups.items()})
        summary = ", ".join(f"{len(found)} {kind}" for kind, found in groups.items())
        print(f"{name:24} {summary}  ({time.monotonic() - start:.1f} s)", flush=True)
        for kind, found in groups.items():
            for number, detail, text in found[: a.examples] if kind != "ok" else []:
                print(
                    f"    {kind} #{number}: {detail[:300]}" + (f"\n        {text[:400]}" if kind != "skipped" else "")
                )
    print(", ".join(f"{count} {kind}" for kind, count in total.items()))
    return int(bool(set(total) - {"ok", "skipped", "refused"}))


def _silence() -> None:
    """Takes standard output from the reference model, which warns about every file it reads."""
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _in_tflite(case: Case, number: int, every: int) -> Outcome:
    return run(case, OTHERS if number % every == 0 else ())


def _on_tosa(case: Case, number: int, every: int) -> Outcome:
    """Every second case goes back to TFLite; some pass tosa-opt, of either target."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "integer.toml")
        target.write_text(INTEGER)
        chosen = target if number % every == 0 else None
        return run_tosa(case, target=chosen, strict=number % every in (0, 1), back=number % 2 == 0)


def _save(folder: Path, case: Case, tosa: bool) -> None:
    import tflq

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "original.tflite").write_bytes(case.model)
    if tosa:
        (folder / "converted.tosa").write_bytes(tflq.convert(case.model, format="tosa").data)
    else:
        (folder / "converted.tflite").write_bytes(tflq.convert(case.model, **case.conversion).data)


if __name__ == "__main__":
    sys.exit(main())
