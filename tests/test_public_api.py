"""What users may rely on: names, keywords, and what `import tflq` costs. A change here changes the interface."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import tflq

NAMES = {
    *(
        "Conversion",
        "Extension",
        "FileError",
        "InvalidModelError",
        "Module",
        "OptionError",
        "Reason",
        "TflqError",
        "UnsupportedError",
        "Verification",
        "VerificationError",
    ),
    *("__version__", "convert", "read", "verify", "write"),
}
KEYWORDS = {
    "convert": [
        *("format", "target", "mac", "prefer", "fallback", "semantics", "state", "reset_signature", "batch", "shapes"),
        *("signature", "cut", "cut_before_custom", "rules", "cache", "force"),
    ],
    "verify": [
        *("inputs", "seeds", "seed", "layers", "batch", "shapes", "resolver", "interface", "max_lsb", "atol", "rtol"),
        *("report", "time", "timeout", "progress"),
    ],
}
HEAVY = ("numpy", "flatbuffers", "tflite", "rich", "tflq.ir", "tflq.conversion")


def test_public_names() -> None:
    assert set(tflq.__all__) == NAMES
    for name in NAMES:
        assert getattr(tflq, name) is not None


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords(name: str) -> None:
    parameters = inspect.signature(getattr(tflq, name)).parameters.values()
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == KEYWORDS[name]


def test_errors_are_one_family() -> None:
    for name in ("FileError", "InvalidModelError", "OptionError", "UnsupportedError", "VerificationError"):
        assert issubclass(getattr(tflq, name), tflq.TflqError)
    assert issubclass(tflq.OptionError, ValueError)
    assert issubclass(tflq.FileError, OSError)


def test_dir_shows_the_names() -> None:
    assert set(dir(tflq)) == NAMES


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'convrt'"):
        _ = tflq.convrt


@pytest.mark.parametrize("code", ["import tflq", "from tflq.cli.main import run; run(['--version'])"])
def test_nothing_heavy_is_imported_early(code: str) -> None:
    check = f"{code}\nimport sys\nassert not (heavy := set({HEAVY!r}) & set(sys.modules)), heavy"
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)
