"""`tflq.verify`: what it takes and checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

from tflq.errors import OptionError, Reason
from tflq.verification.comparison import compare_models
from tflq.verification.difference import Tolerance
from tflq.verification.expected import ReportLike
from tflq.verification.inputs import GivenInputs
from tflq.verification.options import Options, Source
from tflq.verification.outcome import Verification
from tflq.verification.runner import Resolver

__all__ = ["verify"]


def verify(
    a: Source,
    b: Source,
    *,
    inputs: GivenInputs | str | PathLike[str] | None = None,
    seeds: int = 2,
    seed: int = 0,
    layers: bool = False,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    resolver: Resolver = "reference",
    interface: bool = True,
    max_lsb: float = 0,
    atol: float | None = None,
    rtol: float | None = None,
    report: ReportLike | None = None,
    timeout: float = 600.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Runs models `a` (the original) and `b` on the same inputs and compares everything they give: TFLite files in the
    interpreter, TOSA files on the TOSA reference model.

    inputs: arrays by input name, an .npz file of them, or a folder of .npy files by input or of .npz files, one set
        each; else `seeds` random sets, then all minimum, maximum and zero point.
    seed: another one gives other random sets.
    layers: compare operator results too, by tensor name, on the first set of inputs of each signature and shape.
    batch: size of the first dim of inputs where the model leaves it open.
    shapes: whole shapes of inputs by name. Dims that are open and not given are run at two sizes, larger than any
        window of the model.
    resolver: the kernels: "reference", "optimized" (no delegate) or "default" (with delegates). Operators without a
        reference kernel, or with one that is known to be wrong, run on the optimized ones, in both models; the result
        lists them (`apart`).
    interface: compare names, shapes, types, quantization, signatures and metadata, too. Without it, inputs and outputs
        are taken by position: what came back from TOSA has neither signatures nor quantization parameters.
    max_lsb, atol, rtol: differences that are accepted: of integers, in counts; of floats, atol + rtol * |original|. If
        neither is given, floats of a TOSA file may differ by what TOSA leaves open, so many float32 ulps of the largest
        value of their tensor (docs/numerics.md, "Floats on TOSA"); the result's `tolerance` has the number.
    report: the report of the conversion (its JSON form, or a file): operators that it warns of as not reproduced may
        differ; what follows them is compared on the original's values.
    timeout: seconds that one run may take.
    progress: called with what is run, how many runs are done and how many there are.

    Each model runs in a process of its own: if the interpreter aborts, that is part of the result. TflqError if no
    interpreter (for a TOSA file, no reference model) is installed; FileError for a file that is missing or not
    readable; OptionError for options that make no sense and inputs that do not fit.

    A TOSA file is compared with the entry of a TFLite model that has its inputs and outputs, at the shapes of the file;
    quantization parameters are not compared, since TOSA has none.
    """
    _check(seeds=(seeds, 0), seed=(seed, 0), batch=(1 if batch is None else batch, 1))
    _check(max_lsb=(max_lsb, 0), atol=(atol or 0, 0), rtol=(rtol or 0, 0))
    for name, shape in (shapes or {}).items():
        _check(**{f"shapes['{name}']": (min(shape, default=0), 0)})
    tolerance = Tolerance.asked(max_lsb, atol, rtol)
    options: dict[str, Any] = {"inputs": inputs, "seeds": seeds, "seed": seed, "layers": layers, "batch": batch}
    options |= {"resolver": resolver, "interface": interface, "report": report, "timeout": timeout}
    options |= {"progress": progress} if progress else {}
    return compare_models(a, b, Options(**options, shapes=shapes or {}, tolerance=tolerance))


def _check(**options: tuple[float, float]) -> None:
    """OptionError for a number that is below the least that makes sense."""
    for name, (value, least) in options.items():
        if math.isnan(value) or value < least:
            raise OptionError(Reason(f"{name}={value:g} makes no sense", value=value, remedy=f"give {least:g} or more"))
