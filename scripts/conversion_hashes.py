"""The SHA-256 of every conversion of many models, to see that a change of the code changes no file.

    python scripts/conversion_hashes.py write OUT.json [FOLDER...] [--matrix N] [--jobs 2] [--forms NAME...]
    python scripts/conversion_hashes.py compare BEFORE.json AFTER.json

Each `.tflite`, `.tosa` and `.mlir` file is converted in every form of FORMS. Each form has a hash of the files and one
of the report, which has the warnings. A refused conversion has the hash of its error and message. --matrix adds N
models of each generator of tests/matrix. Text is also printed by `tflq opt`: with the passes that a `manifest.toml`
next to it names, else without any.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import tflq  # noqa: E402
from tflq.cli.main import run  # noqa: E402

FORMS: dict[str, dict[str, str]] = {
    "integer": {"target": "integer"},
    "kernels": {"target": "kernels"},
    "npu_example": {"target": str(ROOT / "rules" / "npu_example.toml")},
    "float32": {"mac": "float32"},
    "tosa": {"format": "tosa"},
    "tosa_text": {"format": "mlir"},
    "real": {"semantics": "real"},
    "variables": {"state": "variables"},
    "portable": {"target": "portable"},
    "tflm": {"target": "tflm"},
    "onnx": {"format": "onnx"},
    "onnx_inputs": {"format": "onnx", "state": "inputs"},
    "qdq": {"format": "qdq"},
    "ethos_u55": {"format": "tosa", "target": "ethos-u55"},
    "ethos_u65": {"format": "tosa", "target": "ethos-u65"},
    "ethos_u85": {"format": "tosa", "target": "ethos-u85"},
    "size": {"prefer": "size"},
    "memory": {"prefer": "memory"},
}
SUFFIXES = (".tflite", ".tosa", ".mlir")
KERNELS = {
    "conv_2d": "qi8 qi8:0 qi32:0? -> qi8",
    "fully_connected": "qi8 qi8:0 qi32:0? -> qi8",
    "reshape": "qi8 ... -> qi8",
}


def _sum(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sums(model: bytes | Path, forms: Sequence[str]) -> dict[str, str]:
    """By form, the sum of the converted files and that of the report, or the error."""
    found = {}
    for form in forms:
        try:
            converted = tflq.convert(model, **FORMS[form])  # type: ignore[arg-type]
            files = converted.files
            found[form] = _sum(converted.data if len(files) == 1 else repr(sorted(files.items())))
            if form.startswith("tosa") and len(files) == 1:  # what TOSA as a source becomes
                found[f"from {form}"] = _sum(tflq.convert(converted.data).data)
            found[f"{form} report"] = _sum(json.dumps(converted.report.to_json()).replace(str(ROOT), ""))
        except tflq.TflqError as error:
            found[form] = type(error).__name__
            found[f"{form} message"] = _sum(str(error).replace(str(ROOT), ""))
        except Exception as error:  # noqa: BLE001  a crash is a result, too
            found[form] = f"crash: {type(error).__name__}"
    return found


@cache
def _examples(folder: Path) -> dict[str, dict[str, Any]]:
    """What a manifest says of the texts in its folder, by name."""
    manifest = folder / "manifest.toml"
    listed = tomllib.loads(manifest.read_text())["example"] if manifest.exists() else ()
    return {example["id"]: example for example in listed}


def _printed(path: Path) -> str:
    """The sum of what `tflq opt` prints of a text, and of its exit code."""
    example = _examples(path.resolve().parent).get(path.stem, {})
    lines = example.get("constraint") or "\n".join(f"{name} = '{signature}'" for name, signature in KERNELS.items())
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "example.toml"
        target.write_text(f'[target]\nname = "example"\n\n[kernels]\n{lines}\n')
        passes = re.sub(
            r"(quant-propagate|kernel-fusion|quant-materialize)(?!\{)", r"\1{target=TARGET}", example.get("passes", "")
        ).replace("TARGET", str(target))
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["opt", str(path), *(("-p", passes) if passes else ())])
        return _sum(f"{code}\n{out.getvalue()}\n{err.getvalue()}".replace(folder, ""))


def _of_file(path: str, forms: Sequence[str]) -> dict[str, str]:
    found = sums(Path(path), forms)
    return found | {"opt": _printed(Path(path))} if path.endswith(".mlir") else found


def _of_case(case: tuple[str, int], forms: Sequence[str]) -> dict[str, str]:
    from matrix.run import case_of

    return sums(case_of(*case).model, forms)


def _cases(count: int) -> Iterator[tuple[str, int]]:
    from matrix import GENERATORS

    return ((name, number) for name in GENERATORS for number in range(count))


def _write(a: argparse.Namespace) -> int:
    of_folders = (path for folder in a.folders for path in Path(folder).rglob("*"))
    files = sorted(str(path) for path in of_folders if path.suffix in SUFFIXES)
    cases = list(_cases(a.matrix))
    with ProcessPoolExecutor(a.jobs) as pool:
        of_files = pool.map(partial(_of_file, forms=a.forms), files, chunksize=4)
        result = dict(zip((Path(f).name for f in files), of_files, strict=True))
        names = (f"{name}:{number}" for name, number in cases)
        result |= dict(zip(names, pool.map(partial(_of_case, forms=a.forms), cases, chunksize=16), strict=True))
    Path(a.out).write_text(json.dumps(result, indent=0, sort_keys=True))
    print(f"{len(result)} models, {sum(map(len, result.values()))} hashes")
    return 0


def _compare(a: argparse.Namespace) -> int:
    before, after = (json.loads(Path(path).read_text()) for path in (a.before, a.after))
    both = [
        (name, form, before[name][form], after[name][form])
        for name in sorted(before.keys() & after.keys())
        for form in sorted(before[name].keys() & after[name].keys())
    ]
    different = [f"{name} {form}: {was} → {sum_}" for name, form, was, sum_ in both if was != sum_]
    print("\n".join(different[:100]))
    missing = len(before.keys() ^ after.keys())
    print(f"{len(different)} of {len(both)} differ; {missing} models are in one of them only")
    return 1 if different or missing or not both else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    writing.add_argument("out")
    writing.add_argument("folders", nargs="*")
    writing.add_argument("--matrix", type=int, default=0)
    writing.add_argument("--jobs", type=int, default=2)
    writing.add_argument("--forms", nargs="+", choices=FORMS, default=tuple(FORMS))
    writing.set_defaults(run=_write)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before")
    comparing.add_argument("after")
    comparing.set_defaults(run=_compare)
    a = parser.parse_args()
    return int(a.run(a))


if __name__ == "__main__":
    sys.exit(main())
