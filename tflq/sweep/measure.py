"""The job of a sweep: one model under one target, read, converted, verified and measured, in a process of its own."""

from __future__ import annotations

import hashlib
import json
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import tflq
from tflq.backends import backend, of_target
from tflq.conversion import Conversion
from tflq.errors import InvalidModelError, Reason, TflqError, VerificationError
from tflq.ir.core import Module
from tflq.plain_numbers import plain_numbers
from tflq.report import Report
from tflq.sweep.task import Task
from tflq.sweep.verifying import REPORT, verified

__all__ = ["CONVERT_ONLY", "JOB", "convert_only", "measure"]

JOB: Final = "tflq.sweep.measure:measure"
CONVERT_ONLY: Final = "tflq.sweep.measure:convert_only"
LISTED: Final = 20  # reasons, warnings: the first of them


def measure(document: Mapping[str, Any], folder: Path, stage: Callable[[str], None]) -> dict[str, Any]:
    """What a model under a target gives: `status`, `why`, and every measure that was taken until then.

    Files are left in the folder: `converted.tflite` (or .tosa), and what explains a failure.
    """
    task = Task.of_json(document)
    times = _Times(stage)
    found, places = _converted(task, folder, times)
    if "status" in found:
        return found
    with times("verify"):
        found |= verified(task, found["model"]["sha256"], found["converted"], places, folder, found.get("batch"))
    first = next(iter(places.values()))
    if first.suffix == ".tflite" and found["status"] in ("ok", "differs"):
        with times("allocate"):
            found["static"] = _static(Path(task.path), first)
    return found


def convert_only(document: Mapping[str, Any], folder: Path, stage: Callable[[str], None]) -> dict[str, Any]:
    """What `measure` gives until it verifies: for times."""
    return _converted(Task.of_json(document), folder, _Times(stage))[0]


def _converted(task: Task, folder: Path, times: _Times) -> tuple[dict[str, Any], dict[str, Path]]:
    """A model read and converted: what was found, with a `status` if that failed, and the files."""
    found: dict[str, Any] = {"cpu": times.cpu}
    path = Path(task.path)
    with times("read"):
        data = path.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        found["model"] = {"sha256": sha256, "bytes": len(data)}
        if task.sha256 not in ("", sha256):
            return found | {"status": "checksum", "why": f"its SHA-256 is {sha256}, pinned is {task.sha256}"}, {}
        del data
        try:
            module = tflq.read(path)
        except TflqError as error:
            return found | _failure(error), {}
    try:
        with times("convert"):
            batch = _batch(task, module)
            del module
            conversion = _convert(task, batch)
            places = _write(conversion, folder)
            report = json.dumps(plain_numbers(conversion.report.to_json()), indent=1).encode()
            (folder / REPORT).write_bytes(report)
    except VerificationError:
        raise  # a pass left invalid IR behind: a bug
    except TflqError as error:
        return found | _failure(error), {}
    bound = {} if batch is None else {"batch": batch}
    return found | bound | _described(conversion, places) | {"peak_convert": _peak()}, places


class _Times:
    """CPU seconds of each stage, children included; the stage is told when it starts."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.cpu: dict[str, float] = {}
        self._tell = tell

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._tell(name)
        start = _cpu()
        try:
            yield
        finally:
            self.cpu[name] = round(_cpu() - start, 4)


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _peak() -> int:
    """Bytes of memory that this process had at most, until now."""
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes << 10


def _failure(error: TflqError) -> dict[str, Any]:
    """An error of the library, as a status with reasons."""
    status = "invalid" if isinstance(error, InvalidModelError) else "refused"
    reasons = [_plain(reason) for reason in error.reasons[:LISTED]]
    first = error.reasons[0]
    place = f"{first.opcode}: " if first.opcode else ""
    return {"status": status, "why": place + first.what, "reasons": reasons, "reason_count": len(error.reasons)}


def _plain(reason: Reason) -> dict[str, Any]:
    """A reason without the path, which is no part of the result."""
    return {key: value for key, value in reason.to_json().items() if value not in (None, "") and key != "path"}


def _batch(task: Task, module: Module) -> int | None:
    """What inputs whose first dim is open are bound to, if they are: as the sweep says, for TOSA to 1 otherwise."""
    entries = {0, *(signature.function for signature in module.signatures or ())}
    inputs = [value.type.shape for entry in entries for value in module.functions[entry].inputs]
    if task.shapes or not any(shape and shape[0] is None for shape in inputs):
        return None
    batch: int | None = task.settings.convert.get("batch")
    return 1 if batch is None and of_target(task.target, static=True).static else batch


def _convert(task: Task, batch: int | None) -> Conversion:
    options: dict[str, Any] = {**task.settings.convert, "target": task.target, "shapes": task.shapes or None}
    options["format"] = of_target(task.target, static=True).name
    return tflq.convert(task.path, **{**options, "batch": batch})


def _write(conversion: Conversion, folder: Path) -> dict[str, Path]:
    """The converted files, by the key of their signature."""
    places = {}
    for i, (key, data) in enumerate(conversion.files.items()):
        places[key] = folder / f"converted{f'-{i}' if i else ''}.{backend(conversion.format).suffixes[0]}"
        places[key].write_bytes(data)
    return places


def _described(conversion: Conversion, places: Mapping[str, Path]) -> dict[str, Any]:
    digest = hashlib.sha256()
    for data in conversion.files.values():
        digest.update(data)
    report = conversion.report
    size = sum(len(data) for data in conversion.files.values())
    return {
        "converted": {"sha256": digest.hexdigest(), "bytes": size, "files": [place.name for place in places.values()]},
        "operators": {
            "counts": report.counts,
            "paths": _paths(report),
            "before": dict(sorted(Counter(row.opcode for row in report.rows).items())),
            "after": dict(sorted(Counter(op.name for op in conversion.module.ops()).items())),
            "reasons": _reasons(report),
        },
        "cost": conversion.cost.to_json(),
        "warnings": report.warnings[:LISTED],
        "warning_count": len(report.warnings),
        "exceptions": sorted({row.exception for row in report.rows if row.exception}),
    }


def _paths(report: Report) -> dict[str, dict[str, int]]:
    """Operators of the original per opcode and path."""
    found: dict[str, Counter[str]] = {}
    for row in report.rows:
        found.setdefault(row.opcode, Counter())[row.path] += 1
    return {opcode: dict(sorted(counts.items())) for opcode, counts in sorted(found.items())}


def _reasons(report: Report) -> dict[str, int]:
    """Why operators were not lowered to integers: the commonest reasons, and how many operators each concerns."""
    texts = Counter(f"{row.opcode}: {row.reason}" for row in report.rows if row.path != "integer" and row.reason)
    return dict(texts.most_common(LISTED))


def _static(original: Path, converted: Path) -> dict[str, Any]:
    """Whether what the interpreter allocates before it runs is all allocated in the converted model, too."""
    from tflq.verification.static_memory import first_dynamic

    found = {}
    for name, path in (("original", original), ("converted", converted)):
        try:
            found[name] = first_dynamic(path)
        except (LookupError, RuntimeError, ValueError) as error:
            return {"error": f"{name}: {error}"}
    return {**found, "kept": found["original"] is not None or found["converted"] is None}
