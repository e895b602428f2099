"""Verification of a converted model against the original, in a form for results, and kept by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tflq.backends import of_target
from tflq.errors import TflqError
from tflq.processes import die_with_parent
from tflq.sweep.cache import Cache, Originals
from tflq.sweep.fingerprint import by_content
from tflq.sweep.task import Task
from tflq.verification import Tolerance, Verification
from tflq.verification.comparison import compare_models
from tflq.verification.options import Options
from tflq.verification.outcome import Divergence
from tflq.verification.runner import forked_ahead

__all__ = ["REPORT", "layers_of", "verified"]

REPORT: Final = "report.json"
"""The report of the conversion, in the folder of a task."""

COMPARING: Final = 2
"""Which way of comparing it is: what another one found is not taken from the cache."""
LISTED: Final = 50  # outputs, layers: the first of them


def verified(
    task: Task,
    original: str,
    converted: Mapping[str, Any],
    places: Mapping[str, Path],
    folder: Path,
    batch: int | None = None,
) -> dict[str, Any]:
    """The status that verification gives, with what it found: `verification` on made inputs, `given` on the user's,
    `xnnpack` on made ones with the interpreter's default kernels (both models), `layers` of a model that differs,
    `run_time` of both models if the sweep measures it.

    original, converted: hashes of the content. batch: what the converted model has where the original's first dims are
    open: then interfaces are not compared. The runs with the default kernels say how the two models fare there; the
    status is that of the reference kernels.
    """
    report = hashlib.sha256((folder / REPORT).read_bytes()).hexdigest()
    options = json.dumps(by_content(task.settings.convert), sort_keys=True)
    shapes = sorted(task.shapes.items())
    contents = f"{COMPARING} {original} {converted['sha256']} {report} {shapes} {task.settings.tolerance} {options}"
    one = _Verifier(task, original, f"{contents} {batch}", places, folder, {"batch": batch, "interface": batch is None})
    timed: dict[str, Any] = {"time": True} if task.settings.time and of_target(task.target).builtins else {}
    found: dict[str, Any] = {"verification": one("made", seeds=task.settings.seeds, **timed)}
    if timed:
        found["run_time"] = found["verification"].pop("time")
    if task.inputs:
        inputs = Path(task.inputs)
        try:
            digest = hashlib.sha256(inputs.read_bytes()).hexdigest()
        except OSError as error:
            return found | {"status": "unavailable", "why": f"the inputs {inputs}: {error.strerror}"}
        try:
            found["given"] = one("given", digest, inputs=inputs)
        except TflqError as error:
            return found | {"status": "refused", "why": f"the inputs do not fit: {error}"}
    outcome = _status([found[name] for name in ("verification", "given") if name in found])
    if task.settings.xnnpack and outcome["status"] in ("ok", "differs") and of_target(task.target).builtins:
        found["xnnpack"] = one("xnnpack", seeds=1, resolver="default")
    if task.layers and outcome["status"] == "differs":
        found["layers"] = one("layers", seeds=1, layers=True)["layers"]
    return found | outcome | {"cached": one.cached, "recorded": one.recorded}


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
        self._cache = Cache(Path(task.cache, "verified")) if task.cache else None
        self._originals = Originals(Path(task.cache, "outputs"), original) if task.cache else None

    def __call__(self, name: str, inputs_digest: str = "", **options: Any) -> dict[str, Any]:
        """The verification of every file, in short; found in the cache if all is as it was before, and no time is to
        be measured."""
        cache = None if "time" in options else self._cache
        key = f"{self._contents} {inputs_digest} {json.dumps({k: str(v) for k, v in sorted(options.items())})}"
        known = cache.get(key) if cache else None
        if known is not None:
            self.cached.append(name)
            return known
        done = [self._verify(place, options) for place in self._places.values()]
        found = _short(done)
        self._keep(name, done)
        if cache and found["verdict"] != "failed":
            cache.put(key, found)
        return found

    @property
    def recorded(self) -> int:
        """How many runs of the original were spared, since their outputs are kept."""
        return self._originals.hits if self._originals else 0

    def _verify(self, place: Path, options: Mapping[str, Any]) -> Verification:
        settings = self._task.settings
        with forked_ahead(2, die_with_parent):
            return compare_models(
                self._task.path,
                place,
                Options(
                    shapes=self._task.shapes,
                    tolerance=Tolerance.asked(settings.max_lsb, settings.atol or None, settings.rtol or None),
                    report=self._folder / REPORT,
                    recorded=self._originals,
                    timeout=self._task.seconds,
                    **self._same,
                    **options,
                ),
            )

    def _keep(self, name: str, done: list[Verification]) -> None:
        """The whole of it in a file, where it says more than that all is equal."""
        if not all(verification.equal for verification in done):
            document = [verification.to_json() for verification in done]
            (self._folder / f"verification-{name}.json").write_text(json.dumps(document, indent=1))


def _short(done: list[Verification]) -> dict[str, Any]:
    """Verifications of the files of one model, together."""
    verdicts = [verification.verdict for verification in done]
    outputs = [output for verification in done for output in verification.to_json()["outputs"]]
    runs = [run for verification in done for run in verification.runs]
    failures = [
        (failure.startswith(f"{v.a}"), failure.removeprefix(v.a).removeprefix(v.b))
        for v in done
        for failure in v.failures
    ]
    times = [each.to_json() for verification in done for each in verification.time or ()]
    return {
        **({"time": times} if done[0].time is not None else {}),
        "verdict": next((v for v in ("failed", "differs", "accepted") if v in verdicts), "equal"),
        "interpreter": done[0].interpreter,
        "resolver": done[0].resolver,
        "inputs": list(dict.fromkeys(run.inputs for run in runs if not run.skipped)),
        "skipped": list(dict.fromkeys(run.skipped for run in runs if run.skipped)),
        "outputs": outputs[:LISTED],
        "interface": [text for verification in done for text in verification.interface],
        "original_failures": [text.lstrip(":, ") for of_original, text in failures if of_original],
        "failures": [text.lstrip(":, ") for of_original, text in failures if not of_original],
        "cut": done[0].cut,
        "kernels": [each.to_json() for verification in done for each in verification.kernels],
        "top1": [each.to_json() for verification in done for each in verification.top1],
        "expected": [each.to_json() for verification in done for each in verification.expected],
        "apart": [each.to_json() | {"model": _which(each.model, v)} for v in done for each in v.apart],
        "layers": layers_of(done),
    }


def _which(path: str, verification: Verification) -> str:
    """A model without its path, which is no part of the result."""
    return "original" if path == verification.a else "converted"


def layers_of(done: list[Verification]) -> dict[str, Any] | None:
    """Results of operators that differ, each once: over all shapes of the inputs that it was compared at."""
    parts = [verification.layers for verification in done if verification.layers is not None]
    if not parts:
        return None
    found: dict[tuple[int, str, int, str], Divergence] = {}
    for i, part in enumerate(parts):
        for each in part.diverging:
            key = i, each.entry, each.operator, each.tensor
            known = found.get(key)
            found[key] = each if known is None else replace(each, difference=known.difference + each.difference)
    diverging = [each.to_json() for each in found.values()]
    return {
        "results": sum(part.results for part in parts),
        "compared": sum(part.compared for part in parts),
        "differing": len(diverging),
        "first": diverging[0] if diverging else None,
        "diverging": diverging[:LISTED],
    }


def _status(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Status and cause of what verifications found."""
    for part in parts:
        if part["original_failures"]:
            return {"status": "original-fails", "why": part["original_failures"][0]}
        for failure in part["failures"]:
            status = "timeout" if failure.rpartition(": ")[2].startswith("no answer in") else "differs"
            return {"status": status, "why": f"the converted model does not run: {failure}"}
        if part["interface"]:
            return {"status": "differs", "why": f"interface: {part['interface'][0]}"}
        if part["verdict"] == "failed":
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
