"""The SHA-256 of every conversion of many models, to see that a change of the code changes no file.

    python scripts/conversion_hashes.py write OUT.json [FOLDER...] [--matrix N] [--jobs 2]
    python scripts/conversion_hashes.py compare BEFORE.json AFTER.json

Each model is converted for the targets integer, kernels and rules/npu_example.toml, with mac="float32", and to TOSA.
A conversion that is refused counts by its error. --matrix adds N models of each generator of tests/matrix.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import tflq  # noqa: E402

FORMS = {
    "integer": {"target": "integer"},
    "kernels": {"target": "kernels"},
    "npu_example": {"target": str(ROOT / "rules" / "npu_example.toml")},
    "float32": {"mac": "float32"},
    "tosa": {"format": "tosa"},
}


def sums(model: bytes | Path) -> dict[str, str]:
    """By form, the sum of the converted file, or the kind of the error."""
    found = {}
    for form, options in FORMS.items():
        try:
            converted = tflq.convert(model, **options)  # type: ignore[arg-type]
            found[form] = hashlib.sha256(converted.data).hexdigest()
        except tflq.TflqError as error:
            found[form] = type(error).__name__
        except Exception as error:  # noqa: BLE001  a crash is a result, too
            found[form] = f"crash: {type(error).__name__}"
    return found


def _of_file(path: str) -> dict[str, str]:
    return sums(Path(path))


def _of_case(case: tuple[str, int]) -> dict[str, str]:
    from matrix.run import case_of

    return sums(case_of(*case).model)


def _cases(count: int) -> Iterator[tuple[str, int]]:
    from matrix import GENERATORS

    return ((name, number) for name in GENERATORS for number in range(count))


def _write(a: argparse.Namespace) -> int:
    files = sorted({str(path) for folder in a.folders for path in Path(folder).rglob("*.tflite")})
    cases = list(_cases(a.matrix))
    with ProcessPoolExecutor(a.jobs) as pool:
        result = dict(zip((Path(f).name for f in files), pool.map(_of_file, files, chunksize=4), strict=True))
        names = (f"{name}:{number}" for name, number in cases)
        result |= dict(zip(names, pool.map(_of_case, cases, chunksize=16), strict=True))
    Path(a.out).write_text(json.dumps(result, indent=0, sort_keys=True))
    print(f"{len(result)} models, {sum(map(len, result.values()))} conversions")
    return 0


def _compare(a: argparse.Namespace) -> int:
    before, after = (json.loads(Path(path).read_text()) for path in (a.before, a.after))
    different = [
        f"{name} {form}: {before[name].get(form)} → {sum_}"
        for name in sorted(before.keys() & after.keys())
        for form, sum_ in after[name].items()
        if before[name].get(form) != sum_
    ]
    print("\n".join(different[:100]))
    missing = len(before.keys() ^ after.keys())
    print(f"{len(different)} of {sum(map(len, after.values()))} differ; {missing} models are in one of them only")
    return 1 if different or missing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    writing.add_argument("out")
    writing.add_argument("folders", nargs="*")
    writing.add_argument("--matrix", type=int, default=0)
    writing.add_argument("--jobs", type=int, default=2)
    writing.set_defaults(run=_write)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before")
    comparing.add_argument("after")
    comparing.set_defaults(run=_compare)
    a = parser.parse_args()
    return int(a.run(a))


if __name__ == "__main__":
    sys.exit(main())
