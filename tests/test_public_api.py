"""What users may rely on: names, keywords, and what `import tflq` costs. A change here changes the interface."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import tflq
from tflq.cli.main import group

ROOT = Path(__file__).resolve().parents[1]

NAMES = {
    *(
        "Arena",
        "Bisection",
        "Calibration",
        "Conversion",
        "Cost",
        "DebugRow",
        "Debugging",
        "Difference",
        "Extension",
        "Inspection",
        "Module",
        "Quantization",
        "QuantizedRow",
        "Reason",
        "Reduction",
    ),
    *("Report", "Row", "RuleBuilder", "Run", "RunTime", "Verification"),
    *("FileError", "InvalidModelError", "NotApplicable", "OptionError", "TflqError", "UnsupportedError"),
    *(
        "MissingPackageError",
        "VerificationError",
        "__version__",
        "bisect",
        "calibrate",
        "convert",
        "debug",
        "inspect",
        "quantize",
    ),
    *("read", "reduce", "run_sweep", "verify", "write"),
}
KEYWORDS = {
    "bisect": [
        *("target", "mac", "fallback", "semantics", "kernel_set", "state", "signature", "batch", "shapes"),
        *("seeds", "seed", "resolver", "max_lsb", "atol", "rtol", "timeout", "progress"),
    ],
    "convert": [
        *("format", "target", "mac", "prefer", "fallback", "semantics", "kernel_set", "state", "reset_signature"),
        *("batch", "shapes", "signature", "cut", "cut_before_custom", "rules", "cache", "choices", "force"),
    ],
    "calibrate": [
        *("signature", "samples", "seed", "histogram", "ignore_nonfinite", "mean", "scale", "workers", "resume"),
        *("format", "range", "force", "observer"),
    ],
    "debug": [
        *("signature", "samples", "seed", "mean", "scale", "labels", "metric", "workers", "csv", "html", "force"),
        "observer",
    ],
    "inspect": ["target", "kernel_set"],
    "quantize": [
        *(
            "scheme",
            "statistics",
            "calibration",
            "mean",
            "scale",
            "range",
            "io",
            "target",
            "keep_float",
            "recipe",
            "weights",
            "blocks",
        ),
        *("weight_method", "weight_range", "min_snr", "labels", "metric", "max_drop", "max_bytes", "max_time"),
        *("save_recipe", "force"),
    ],
    "reduce": ["target", "mac", "fallback", "kernel_set", "inputs", "seeds", "timeout", "force", "predicate"],
    "run_sweep": [
        *("targets", "mac", "prefer", "fallback", "semantics", "kernel_set", "state", "reset_signature", "rules"),
        *("cut_before_custom", "batch", "seeds", "xnnpack", "time", "max_lsb", "atol", "rtol", "workers"),
        *(
            "scheduler",
            "timeout",
            "memory",
            "only",
            "failed_from",
            "shard",
            "baseline",
            "fail_on",
            "cache",
            "no_cache",
            "offline",
        ),
        *("pin", "resume", "force", "observer", "stop"),
    ],
    "verify": [
        *(
            "inputs",
            "mean",
            "scale",
            "seeds",
            "seed",
            "layers",
            "batch",
            "shapes",
            "resolver",
            "runtime",
            "interface",
            "max_lsb",
        ),
        *("atol", "rtol"),
        *("report", "time", "timeout", "cc", "labels", "metric", "progress"),
    ],
}
OF_COMMANDS = {
    "bisect": {"json"},
    "convert": {"output-dir", "skip-existing", "workers", "report", "dump-ir", "timings", "json", "data", "name"},
    "inspect": {"ir", "why", "tensors", "format", "json", "against"},
    "reduce": {"output", "json"},
    "verify": {"html", "force", "json"},
}
"""Options that say where something goes or what is printed: these are attributes of what a call returns. `data` and
`name` are `choices` of a format."""
HEAVY = ("numpy", "flatbuffers", "tflite", "rich", "tflq.ir", "tflq.conversion")


def test_public_names() -> None:
    assert set(tflq.__all__) == NAMES
    for name in NAMES:
        assert getattr(tflq, name) is not None


def test_no_module_hides_a_public_name() -> None:
    code = (
        "import importlib, pkgutil, tflq\n"
        "for module in pkgutil.walk_packages(tflq.__path__, 'tflq.'):\n"
        "    if module.name not in ('tflq.__main__', 'tflq.tools.explorer.main'):\n"
        "        importlib.import_module(module.name)\n"
        "print(*(name for name in tflq.__all__ if type(getattr(tflq, name)).__name__ == 'module'))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "\n"


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords(name: str) -> None:
    parameters = inspect.signature(getattr(tflq, name)).parameters.values()
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == KEYWORDS[name]


def test_errors_are_one_family() -> None:
    for name in (
        "FileError",
        "InvalidModelError",
        "MissingPackageError",
        "OptionError",
        "UnsupportedError",
        "VerificationError",
    ):
        assert issubclass(getattr(tflq, name), tflq.TflqError)
    assert issubclass(tflq.OptionError, ValueError)
    assert issubclass(tflq.FileError, OSError)


def test_dir_shows_the_names() -> None:
    assert set(dir(tflq)) == NAMES


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'convrt'"):
        getattr(tflq, "convrt")  # noqa: B009 a type checker would see it


USE = """
import tflq
conversion: tflq.Conversion = tflq.convert("m.tflite", cut=["x"])
row: tflq.Row = conversion.report.rows[0]
found: tflq.Bisection = tflq.bisect("m.tflite", target="kernels")
part: tflq.Reduction | None = tflq.reduce("m.tflite", "part.tflite")
looked: tflq.Inspection = tflq.inspect("m.tflite")
def rule(op: object, b: tflq.RuleBuilder) -> None: raise tflq.NotApplicable("no")
tflq.{last}
"""


@pytest.mark.parametrize(("last", "errors"), [("verify('a', 'b')", ""), ("covnert('a')", '"covnert"')])
def test_who_checks_types_sees_what_is_misspelt(last: str, errors: str, tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="needs mypy: pip install '.[dev]'")
    path = tmp_path / "use.py"
    path.write_text(USE.format(last=last))
    out, _, _ = api.run(["--strict", "--follow-imports=silent", f"--cache-dir={ROOT / '.mypy_cache'}", str(path)])
    assert errors in out if errors else "Success" in out, out


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_every_option_of_a_command_is_a_keyword_of_its_call(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    options = {max(p.opts, key=len).lstrip("-") for p in command.params if isinstance(p, click.Option)}
    said = {*OF_COMMANDS[name], "verbose", "quiet", "help-all"}
    assert not {o.replace("-", "_") for o in options - said} - {*KEYWORDS[name], "shape"}


@pytest.mark.parametrize("code", ["import tflq", "from tflq.cli.main import run; run(['--version'])"])
def test_nothing_heavy_is_imported_early(code: str) -> None:
    check = f"{code}\nimport sys\nassert not (heavy := set({HEAVY!r}) & set(sys.modules)), heavy"
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("call", [tflq.convert, tflq.read, tflq.inspect, tflq.quantize])
def test_a_path_with_nul_is_refused(call: Callable[[str], object]) -> None:
    with pytest.raises(tflq.OptionError, match="a path, which has no NUL"):
        call("a\0b")


def test_quantize_takes_a_path() -> None:
    with pytest.raises(tflq.OptionError, match=r"source=.*: expected a path"):
        tflq.quantize((Path(__file__).parents[1] / "models/cnn_int8.tflite").read_bytes())  # type: ignore[arg-type]
