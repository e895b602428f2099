"""Networks converted for a target against their originals, on the interpreter's reference kernels.

    python benchmarks/target_accuracy.py FOLDER --target rules/npu_example.toml [--fallback error] [--json OUT.json]

A row per model: how many of its operators are kept because the target has a kernel for them ("kernels") or for another
reason ("kept": no quantized tensor, float with quantized constants, recurrent, custom), lowered to plain integers or
computed in float, and the largest difference of any output, on random inputs and on the edges of the range: in counts
of the stored integers, of float outputs absolute. A model that is refused is listed with every reason. At the end a
summary by folder.

Needs `pip install '.[verify]'`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tflq

COLUMNS = ("equal", "differs", "refused", "invalid", "not run", "failed")
PATHS = ("kernels", "kept", "integer", "float")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--target", default="integer", help="integer, kernels, or a file of kernels")
    parser.add_argument("--fallback", choices=["float", "error"], default="float")
    parser.add_argument("--match", default="", help="only models whose path holds this")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one run may take")
    parser.add_argument("--json", type=Path, help="write every model's outcome")
    arguments = parser.parse_args()
    rows = []
    for model in _models(arguments.folders, arguments.match):
        found = measure(model, arguments.target, arguments.fallback, arguments.timeout)
        rows.append({"folder": model.parent.name, "model": model.name, **found})
        print(_line(rows[-1]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    _print_summary(rows)


def _models(folders: Iterable[Path], match: str) -> list[Path]:
    """The models of the folders, small ones first."""
    found = [path for folder in folders for path in folder.rglob("*.tflite") if match in str(path)]
    return sorted(found, key=lambda path: path.stat().st_size)


def measure(model: Path, target: str, fallback: Any, timeout: float) -> dict[str, Any]:
    """What became of one model."""
    try:
        conversion = tflq.convert(model, target=target, fallback=fallback)
    except tflq.UnsupportedError as error:
        return {"outcome": "refused", "reasons": error.reasons or [str(error)]}
    except tflq.InvalidModelError as error:
        return {"outcome": "invalid", "reasons": [str(error)]}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
        return {"outcome": "failed", "reasons": [f"{type(error).__name__}: {error}"]}
    rows = conversion.report.rows
    found = {
        "operators": len(rows),
        **dict.fromkeys(PATHS, 0),
        **Counter("kernels" if "a kernel of the target" in row.reason else row.path for row in rows),
        "in_float": [f"{row.place}: {row.reason}" for row in rows if row.path == "float"],
    }
    return found | _compared(model, conversion.data, timeout)


def _compared(model: Path, converted: bytes, timeout: float) -> dict[str, Any]:
    outcome = tflq.verify(model, converted, timeout=timeout)
    original = [why for why in outcome.failures if why.startswith(os.fspath(model))]
    skipped = [run.skipped for run in outcome.runs if run.skipped]
    if original or (outcome.runs and len(skipped) == len(outcome.runs)):
        return {"outcome": "not run", "reasons": original or skipped[:1]}
    if outcome.failures or outcome.interface:
        return {"outcome": "failed", "reasons": [*outcome.failures, *outcome.interface]}
    differences = outcome.outputs.values()
    worst = max(differences, key=lambda d: (bool(d.problem), d.largest), default=None)
    if worst is None or all(d.equal for d in differences):
        return {"outcome": "equal", "largest": 0.0, "unit": "LSB"}
    return {"outcome": "differs", "largest": worst.largest, "unit": worst.unit, "reasons": [str(worst)]}


def _line(row: dict[str, Any]) -> str:
    counts = " ".join(f"{row[path]:>4} {path}" for path in PATHS) if "operators" in row else ""
    reasons = "".join(f"\n    {reason}" for reason in row.get("reasons", ()))
    return f"{row['folder'] + '/' + row['model']:72} {row['outcome']:8} {counts}{reasons}"


def _print_summary(rows: list[dict[str, Any]]) -> None:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for folder in (row["folder"], "all"):
            table[folder][row["outcome"]] += 1
            table[folder].update({path: row.get(path, 0) for path in PATHS})
    print(f"\n{'folder':24}", *(f"{name:>8}" for name in (*COLUMNS, *PATHS)))
    for folder, counts in sorted(table.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{folder:24}", *(f"{counts[name] or '-':>8}" for name in (*COLUMNS, *PATHS)))


if __name__ == "__main__":
    main()
