"""The job of a sweep: one model under one target, read, converted, verified and measured, in a process of its own."""

from __future__ import annotations

import hashlib
import json
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from tflq.base.errors import InvalidModelError, Reason, TflqError, VerificationError, plain_numbers
from tflq.base.processes import die_with_parent
from tflq.conversion.convert import Conversion, convert, entries_of
from tflq.conversion.report import Report
from tflq.formats.backend import backend, of_target
from tflq.formats.sources import Source, read, reusable_source
from tflq.ir.module import Module
from tflq.tools.sweep.fields import Summarized
from tflq.tools.sweep.task import Cache, Originals, Task, by_content
from tflq.tools.verify.comparison import compare_models
from tflq.tools.verify.difference import Tolerance
from tflq.tools.verify.inputs import Options
from tflq.tools.verify.outcome import Divergence, Verification
from tflq.tools.verify.runner import forked_ahead

# Verification of a converted model against the original, in a form for results, and kept by content.


REPORT: Final = "report.json"
"""The report of the conversion, in the folder of a task."""
COMPARING: Final = 4
"""The version of comparing: the cache gives only what this one found."""
VERIFYING_LISTED: Final = 50  # outputs, layers: the first of them


def verified(
    task: Task,
    original: str,
    converted: Mapping[str, Any],
    places: Mapping[str, Path],
    folder: Path,
    batch: int | None = None,
) -> dict[str, Any]:
    """The status by verification, with its results.

    `verification`: on generated inputs; `given`: on the user's; both on the kernels of the set that the converted model
    names. `xnnpack`: on generated ones with the interpreter's default kernels (both models). `layers`: of a model that
    differs. `run_time`: of both models, if measured.

    original, converted: hashes of the content. batch: what the converted model has where the original's first dims are
    open: then interfaces are not compared. The status is that of the named kernels; `xnnpack` only says how the two
    models differ there.
    """
    report = hashlib.sha256((folder / REPORT).read_bytes()).hexdigest()
    options = json.dumps(by_content(task.settings.convert), sort_keys=True)
    shapes = sorted(task.shapes.items())
    contents = f"{COMPARING} {original} {converted['sha256']} {report} {shapes} {task.settings.tolerance} {options}"
    one = _Verifier(task, original, f"{contents} {batch}", places, folder, {"batch": batch, "interface": batch is None})
    timed: dict[str, Any] = {"time": True} if task.settings.time and of_target(task.target).interpreted else {}
    result: dict[str, Any] = {"verification": one("random", seeds=task.settings.seeds, **timed)}
    if timed:
        result["run_time"] = result["verification"].pop("time")
    if task.inputs:
        inputs = Path(task.inputs)
        try:
            digest = hashlib.sha256(inputs.read_bytes()).hexdigest()
        except OSError as error:
            return result | {"status": "unavailable", "why": f"the inputs {inputs}: {error.strerror}"}
        try:
            result["given"] = one("given", digest, inputs=inputs)
        except TflqError as error:
            return result | {"status": "refused", "why": f"the inputs do not fit: {error}"}
    outcome = _status([result[name] for name in ("verification", "given") if name in result])
    if task.settings.xnnpack and outcome["status"] in ("ok", "differs") and of_target(task.target).interpreted:
        result["xnnpack"] = one("xnnpack", seeds=1, resolver="default")
    if task.layers and outcome["status"] == "differs":
        result["layers"] = one("layers", seeds=1, layers=True)["layers"]
    return result | outcome | {"cached": one.cached, "recorded": one.recorded}


class _Verifier:
    """Verifies one pair of models in several ways."""

    def __init__(
        self,
        task: Task,
        original: str,
        contents: str,
        places: Mapping[str, Path],
        folder: Path,
        same: Mapping[str, Any],
    ) -> None:
        """same: options of every verification."""
        self.cached: list[str] = []
        self._same = same
        self._task = task
        self._contents = contents
        self._places = places
        self._folder = folder
        self._cache = Cache(Path(task.cache, "verified"), Summarized) if task.cache else None
        self._originals = Originals(Path(task.cache, "outputs"), original) if task.cache else None

    def __call__(self, name: str, inputs_digest: str = "", **options: Any) -> dict[str, Any]:
        """The verification of every file, in short; from the cache if all is as it was before, and no time is to be
        measured."""
        cache = None if "time" in options else self._cache
        key = f"{self._contents} {inputs_digest} {json.dumps({k: str(v) for k, v in sorted(options.items())})}"
        known = cache.get(key) if cache else None
        if known is not None:
            self.cached.append(name)
            return known
        done = [self._verify(place, options) for place in self._places.values()]
        summary = _short(done)
        self._keep(name, done)
        if cache and summary["verdict"] not in ("failed", "nothing comparable"):
            cache.put(key, summary)
        return summary

    @property
    def recorded(self) -> int:
        """Number of runs of the original that were not needed, because their outputs are in the cache."""
        return self._originals.hits if self._originals else 0

    def _verify(self, place: Path, options: Mapping[str, Any]) -> Verification:
        settings = self._task.settings
        with forked_ahead(2, die_with_parent):
            return compare_models(
                self._task.path,
                place,
                Options(
                    shapes=self._task.shapes,
                    tolerance=Tolerance.from_arguments(settings.max_lsb, settings.atol or None, settings.rtol or None),
                    report=self._folder / REPORT,
                    recorded=self._originals,
                    timeout=self._task.seconds,
                    **self._same,
                    **options,
                ),
                on_named_kernels="resolver" not in options,
            )

    def _keep(self, name: str, done: list[Verification]) -> None:
        """Writes all of it to a file, if it says more than that all is equal."""
        if not all(verification.equal for verification in done):
            document = [verification.to_json() for verification in done]
            (self._folder / f"verification-{name}.json").write_text(json.dumps(document, indent=1))


_WORST: Final = ("failed", "nothing comparable", "differs", "accepted")


def _short(done: list[Verification]) -> dict[str, Any]:
    """Verifications of the files of one model, together."""
    verdicts = [verification.verdict for verification in done]
    outputs = [output for verification in done for output in verification.to_json()["outputs"]]
    runs = [run for verification in done for run in verification.runs]
    failures = [failure.removeprefix(v.a).removeprefix(v.b) for v in done for failure in v.failures]
    of_original = [reason.removeprefix(v.a) for v in done for reason in v.incomparable]

    def every(name: str) -> list[dict[str, Any]]:
        return [item.to_json() for verification in done for item in getattr(verification, name)]

    return {
        **({"time": every("time")} if done[0].time is not None else {}),
        "verdict": next((v for v in _WORST if v in verdicts), "equal"),
        "interpreter": done[0].interpreter,
        "resolver": done[0].resolver,
        "inputs": list(dict.fromkeys(run.inputs for run in runs if not run.skipped)),
        "skipped": list(dict.fromkeys(run.skipped for run in runs if run.skipped)),
        "outputs": outputs[:VERIFYING_LISTED],
        "interface": [text for verification in done for text in verification.interface],
        "original_failures": [text.lstrip(":, ") for text in of_original],
        "other_kernels": next((v.other_kernels for v in done if v.other_kernels), ""),
        "failures": [text.lstrip(":, ") for text in failures],
        "uncompared": every("uncompared"),
        "operands": every("operands"),
        "cut": done[0].cut,
        "kernels": every("kernels"),
        "top1": every("top1"),
        "expected": every("expected"),
        "apart": [each.to_json() | {"model": _which(each.model, v)} for v in done for each in v.apart],
        "layers": layers_of(done),
    }


def _which(path: str, verification: Verification) -> str:
    """A model without its path, which does not belong to the result."""
    return "original" if path == verification.a else "converted"


def layers_of(done: list[Verification]) -> dict[str, Any] | None:
    """Results of operators that differ, each once, over all shapes of the inputs that it was compared at."""
    parts = [verification.layers for verification in done if verification.layers is not None]
    if not parts:
        return None
    by_place: dict[tuple[int, str, int, str], Divergence] = {}
    for i, part in enumerate(parts):
        for each in part.diverging:
            key = i, each.entry, each.operator, each.tensor
            known = by_place.get(key)
            by_place[key] = each if known is None else replace(each, difference=known.difference + each.difference)
    diverging = [each.to_json() for each in by_place.values()]
    return {
        "results": sum(part.results for part in parts),
        "compared": sum(part.compared for part in parts),
        "differing": len(diverging),
        "first": diverging[0] if diverging else None,
        "diverging": diverging[:VERIFYING_LISTED],
    }


def _status(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Status and cause of what verifications found."""
    for part in parts:
        if part["other_kernels"]:
            return {"status": "incomparable", "why": part["other_kernels"]}
        if part["original_failures"]:
            return {"status": "original-fails", "why": part["original_failures"][0]}
        for failure in part["failures"]:
            status = "timeout" if failure.rpartition(": ")[2].startswith("no answer in") else "differs"
            return {"status": status, "why": f"the converted model does not run: {failure}"}
        if part["interface"]:
            return {"status": "differs", "why": f"interface: {part['interface'][0]}"}
        if part["verdict"] == "nothing comparable":
            return {"status": "original-fails", "why": next(iter(part["skipped"]), "no run of it")}
    differing = [output for part in parts for output in part["outputs"] if not output["accepted"]]
    if not any(part["verdict"] == "differs" for part in parts):
        return {"status": "ok", "why": ""}
    if not differing:
        return {"status": "differs", "why": "an operator's result differs by more than is expected of it"}
    worst = max(differing, key=lambda d: float("inf") if d["largest"] is None else d["largest"])
    return {"status": "differs", "why": _how_much(worst)}


def _how_much(output: Mapping[str, Any]) -> str:
    if output["problem"]:
        return f"an output has {output['problem']}"
    largest = "infinity" if output["largest"] is None else f"{output['largest']:.3g}"
    return f"an output differs by up to {largest}{' LSB' if output['unit'] == 'LSB' else ''}"


JOB: Final = "tflq.tools.sweep.measure:measure"
CONVERT_ONLY: Final = "tflq.tools.sweep.measure:convert_only"
LISTED: Final = 20  # reasons, warnings: the first of them


def measure(document: Mapping[str, Any], folder: Path, stage: Callable[[str], None]) -> dict[str, Any]:
    """The result of a model under a target: `status`, `why`, and every measure that was taken until then.

    Files are left in the folder: `converted.tflite` (or .tosa), and what explains a failure.
    """
    task = Task.of_json(document)
    times = _Times(stage)
    result, places = _converted(task, folder, times)
    if "status" in result:
        return result
    with times("verify"):
        result |= verified(task, result["model"]["sha256"], result["converted"], places, folder, result.get("batch"))
    first = next(iter(places.values()))
    if of_target(task.target, static=True).interpreted and result["status"] in ("ok", "differs"):
        with times("allocate"):
            result["static"] = _static(Path(task.path), first)
    return result


def convert_only(document: Mapping[str, Any], folder: Path, stage: Callable[[str], None]) -> dict[str, Any]:
    """The first part of `measure`, before it verifies: for times."""
    return _converted(Task.of_json(document), folder, _Times(stage))[0]


def _converted(task: Task, folder: Path, times: _Times) -> tuple[dict[str, Any], dict[str, Path]]:
    """A model read and converted: what was found, with a `status` if that failed, and the files."""
    result: dict[str, Any] = {"cpu": times.cpu}
    path = Path(task.path)
    with times("read"):
        source = reusable_source(path, copy=True)  # whatever becomes of the file meanwhile
        sha256 = hashlib.sha256(source.data).hexdigest()
        result["model"] = {"sha256": sha256, "bytes": len(source.data)}
        if task.sha256 not in ("", sha256):
            return result | {"status": "checksum", "why": f"its SHA-256 is {sha256}, pinned is {task.sha256}"}, {}
        try:
            module = read(source)
        except TflqError as error:
            return result | _failure(error), {}
    try:
        with times("convert"):
            batch = _batch(task, module)
            del module
            conversion = _convert(task, source, batch)
            files = _write(conversion, folder)
            report = json.dumps(plain_numbers(conversion.report.to_json()), indent=1).encode()
            (folder / REPORT).write_bytes(report)
    except VerificationError:
        raise  # a pass left invalid IR behind: a bug
    except TflqError as error:
        return result | _failure(error), {}
    bound = {} if batch is None else {"batch": batch}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10  # kibibytes
    return result | bound | _described(conversion, files) | {"peak_convert": peak}, files.places


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


def _failure(error: TflqError) -> dict[str, Any]:
    """An error of the library, as a status with reasons."""
    status = "invalid" if isinstance(error, InvalidModelError) else "refused"
    reasons = [_plain(reason) for reason in error.reasons[:LISTED]]
    first = error.reasons[0]
    where = first.opcode or first.place
    why = f"{where}: {first.what}" if where else first.what
    return {"status": status, "why": why, "reasons": reasons, "reason_count": len(error.reasons)}


def _plain(reason: Reason) -> dict[str, Any]:
    """A reason without the path, which does not belong to the result."""
    return {key: value for key, value in reason.to_json().items() if value not in (None, "") and key != "path"}


def _batch(task: Task, module: Module) -> int | None:
    """The batch that open first dims of inputs get: the sweep's; without one 1 for TOSA."""
    entries = {0, *(signature.function for signature in module.signatures or ())}
    inputs = [value.type.shape for entry in entries for value in module.functions[entry].inputs]
    if task.shapes or not any(shape and shape[0] is None for shape in inputs):
        return None
    batch: int | None = task.settings.convert.get("batch")
    return 1 if batch is None and of_target(task.target, static=True).static else batch


def _convert(task: Task, source: Source, batch: int | None) -> Conversion:
    options: dict[str, Any] = {**task.settings.convert, "target": task.target, "shapes": task.shapes or None}
    options |= {"format": of_target(task.target, static=True).name, "batch": batch}
    return convert(source, **options)


class _Files(NamedTuple):
    """The converted files: places by the key of the signature, of an entry with several files that of the first, the
    SHA-256 of all, and their bytes."""

    places: dict[str, Path]
    sha256: str
    size: int


def _write(conversion: Conversion, folder: Path) -> _Files:
    places: dict[str, Path] = {}
    digest, size = hashlib.sha256(), 0
    for i, (key, function) in enumerate(entries_of(conversion.module, conversion.format)):
        stem = f"converted{f'-{i}' if i else ''}"
        for ending, pieces in conversion.files_of(function, stem):
            place = folder / f"{stem}{ending or f'.{backend(conversion.format).suffixes[0]}'}"
            data = b"".join(pieces)
            place.write_bytes(data)
            digest.update(data)
            size += len(data)
            places.setdefault(key, place)
    return _Files(places, digest.hexdigest(), size)


def _described(conversion: Conversion, files: _Files) -> dict[str, Any]:
    report, names = conversion.report, [place.name for place in files.places.values()]
    return {
        "converted": {"sha256": files.sha256, "bytes": files.size, "files": names},
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
    by_opcode: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in report.rows:
        by_opcode[row.opcode][row.path] += 1
    return {opcode: dict(sorted(counts.items())) for opcode, counts in sorted(by_opcode.items())}


def _reasons(report: Report) -> dict[str, int]:
    """Why operators were not lowered to integers: the commonest reasons, and how many operators each concerns."""
    texts = Counter(f"{row.opcode}: {row.reason}" for row in report.rows if row.path != "integer" and row.reason)
    return dict(texts.most_common(LISTED))


def _static(original: Path, converted: Path) -> dict[str, Any]:
    """Whether the interpreter still allocates a whole model before it runs, if it did so for the original."""
    from tflq.tools.verify.runner import first_dynamic

    first = {}
    for name, path in (("original", original), ("converted", converted)):
        try:
            first[name] = first_dynamic(path)
        except (LookupError, RuntimeError, ValueError) as error:
            return {"error": f"{name}: {error}"}
    return {**first, "kept": first["original"] is not None or first["converted"] is None}
