"""Conversion of a file to each form, for `scripts/fuzz.py --forms`: converted, refused by a `TflqError`, or a finding.

A finding is any other exception, over `SECONDS` of the processor and one more for each megabyte of the file, or over
`MEMORY` beyond the size of the file.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(ROOT),) if path not in sys.path]

import tflq  # noqa: E402
from scripts.c_matrix import WARNINGS  # noqa: E402
from tflq.formats.sources import is_text, read_any_form  # noqa: E402
from tflq.ir.module import Module  # noqa: E402
from tflq.tools.opt import parse_pipeline  # noqa: E402

SECONDS: Final = 10
LONGEST: Final = 20
"""Seconds of the processor after which a conversion is ended."""
MEMORY: Final = 500 << 20
MEGABYTE: Final = 1 << 20

FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "integer": {},
    "kernels": {"target": "kernels"},
    "float32": {"mac": "float32"},
    "portable": {"target": "portable"},
    "tosa": {"format": "tosa"},
    "mlir": {"format": "mlir"},
    "onnx": {"format": "onnx"},
    "qdq": {"format": "qdq"},
    "c": {"format": "c"},
    "real": {"semantics": "real"},
}
"""The options of each form."""
PIPELINES: Final = ("canonicalize", "fold,canonicalize", "strip-func-quant-types", "lower-quant-ops,cse,dce,fold")
"""Pipelines of `tflq opt`, through which texts go, too."""


class TooLongError(BaseException):
    """A conversion that took longer than `LONGEST`, which no handler of the code under test catches."""


def convert_all(data: bytes) -> tuple[Counter[str], list[str]]:
    """How many conversions of a file had which end, as "form converted"; and what was found."""
    logging.getLogger("tflq").setLevel(logging.ERROR)
    ends: Counter[str] = Counter()
    findings: list[str] = []

    def run(form: str, call: Callable[[], Any]) -> None:
        end, finding = _measured(call, len(data), may_break=form == "opt")
        ends[f"{form} {end}"] += 1
        if finding:
            findings.append(f"{form}: {finding}")

    modules: list[Module] = []
    run("read", lambda: modules.append(tflq.read(data)))
    if modules:
        for form, options in FORMS.items():
            run(form, partial(_convert, data, options))
    if is_text(data):
        for text in PIPELINES:
            run("opt", partial(_run_passes, data, text))
    return ends, findings


def compile_as_c(data: bytes) -> tuple[Counter[str], list[str]]:
    """The end of a conversion to C, of which all that is written must compile without a warning; and what was found."""
    logging.getLogger("tflq").setLevel(logging.ERROR)
    end, finding = _measured(lambda: _compile(data), len(data), may_break=False)
    return Counter({f"c {end}": 1}), [f"c: {finding}"] if finding else []


def _compile(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "net.c")
        tflq.convert(data, source)
        command = [os.environ.get("CC", "cc"), *WARNINGS, "-DNET_MAIN", "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(next((x for x in done.stderr.splitlines() if "error" in x), done.stderr[:200]))


def _convert(data: bytes, options: Mapping[str, Any]) -> None:
    _ = tflq.convert(data, **options).files


def _run_passes(data: bytes, pipeline: str) -> None:
    parse_pipeline(pipeline).run(read_any_form(data))


def _measured(call: Callable[[], Any], size: int, *, may_break: bool) -> tuple[str, str]:
    """The end of a call, and what is wrong with it. may_break: it may leave IR that breaks a rule, and say so."""

    def too_long(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGPROF, too_long)
    before = reset_peak()
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    end, finding = "converted", ""
    try:
        call()
    except tflq.TflqError as error:
        end = "refused"
        if isinstance(error, tflq.VerificationError) and not may_break:  # of a conversion, that is exit code 70
            end, finding = "failed", f"{type(error).__name__}: {str(error)[:200]} at {place_of(error)}"
    except TooLongError as error:
        end, finding = "ended", f"over {LONGEST} s at {place_of(error)}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
        end, finding = "failed", f"{type(error).__name__}: {str(error)[:200]} at {place_of(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds, grown = time.process_time() - started, peak() - before
    if not finding and seconds > SECONDS + size / MEGABYTE:
        finding = f"slow: {seconds:.0f} s for a file of {size} bytes"
    if not finding and grown > MEMORY + size:
        finding = f"memory: {grown >> 20} MiB for a file of {size} bytes"
    return end, finding


def reset_peak() -> int:
    """Resets the most memory that this process had, and returns the bytes that it has now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most bytes of memory that this process had since `reset_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def place_of(error: BaseException) -> str:
    """The innermost two lines of tflq that an exception went through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "tflq" in f.filename]
    return ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[-2:])
