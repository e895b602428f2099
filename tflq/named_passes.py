"""Every pass by the name that a command line says: tflq's own, and those of packages and files of a user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tflq.code_generation import QuantCodegen
from tflq.contract import Pass
from tflq.errors import OptionError
from tflq.extensions import extension_of, installed
from tflq.passes.pipeline_text import PASSES
from tflq.steps import STEPS
from tflq.tosa_pipeline import TflToTosa

__all__ = ["named_passes"]


def named_passes(*files: Path) -> Mapping[str, type[Pass]]:
    """Every pass by its name: those of tflq, of installed packages and of files. OptionError if two have one name."""
    own = {item.name: item for item in (QuantCodegen, TflToTosa)}
    passes: dict[str, type[Pass]] = {**PASSES, **STEPS, **own}
    for extension in (*installed(), *map(extension_of, files)):
        for item in extension.passes:
            if passes.setdefault(item.name, item) is not item:
                raise OptionError(f"there are two passes '{item.name}': {passes[item.name]} and {item}")
    return passes
