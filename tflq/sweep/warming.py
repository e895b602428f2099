"""Loading what tasks need before there are any: what is loaded here, no child loads again."""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from importlib import import_module
from typing import Final

__all__ = ["warm"]

PACKAGES: Final = (
    "tflq.evaluate",
    "tflq.flatbuffer",
    "tflq.ir",
    "tflq.legalize",
    "tflq.numerics",
    "tflq.passes",
    "tflq.select",
    "tflq.shapes",
    "tflq.targets",
    "tflq.tosa",
    "tflq.verification",
)
DIALECTS: Final = ("quant", "tfl", "tosa")


def warm() -> None:
    """Imports the compiler, numpy, the interpreter and TOSA's reference model, and reads the files of rules."""
    import_module("tflq.sweep.measure")
    for name in PACKAGES:
        package = import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            import_module(module.name)
    from tflq.ir.registry import dialect
    from tflq.sweep.cache import surroundings
    from tflq.targets import load_target
    from tflq.verification.static_memory import interpreter_name

    interpreter_name()
    surroundings()
    with suppress(ImportError):
        import_module("tosa_reference_model")
    for name in DIALECTS:
        if (declared := dialect(name)) is not None:
            declared.classes()
    load_target("kernels")
