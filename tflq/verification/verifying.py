"""`tflq.verify`: what it takes and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, get_args

from tflq.arguments import check_choice, check_flags, check_number, check_numbers, check_shapes, check_source
from tflq.verification.comparison import compare_models
from tflq.verification.difference import Tolerance
from tflq.verification.expected import ReportLike
from tflq.verification.inputs import GivenInputs, check_inputs
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
    time: bool = False,
    timeout: float = 600.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Run two models on the same inputs and compare everything they return.

    TFLite files run in the interpreter, TOSA files on the TOSA reference model. Each model runs in a process of its
    own: if the interpreter aborts, that is part of the result. A TOSA file is compared with the entry of a TFLite model
    that has the same inputs and outputs, at the shapes of the file; quantization parameters are not compared, because
    TOSA has none.

    Args:
        a: The original: a path, bytes or a binary file object.
        b: The other model, likewise.
        inputs: Arrays by input name, an .npz file of them, or a folder: one set from .npy files named after inputs, or
            one set from each .npz file. By default `seeds` random sets, then all minimum, maximum and zero point. Each
            run starts with the initial state. If a model holds state, ten random sets also run in a row.
        seeds: Number of sets of random inputs.
        seed: Another seed gives other random sets.
        layers: Also compare the results of operators, by tensor name, on the first set of inputs of each signature and
            shape.
        batch: Size of the inputs' first dimension where the model leaves it open.
        shapes: Whole shapes of inputs, by name. Dimensions that stay open are run at two sizes, larger than any window
            of the model.
        resolver: Which kernels to run: "reference", "optimized" (no delegate) or "default" (with delegates). Operators
            without a reference kernel, or with one known to be wrong, run on the optimized ones in both models; the
            result lists them (`apart`).
        interface: Also compare names, shapes, types, quantization, signatures and metadata. Without it, inputs and
            outputs are matched by position: a model that came back from TOSA has neither signatures nor quantization
            parameters.
        max_lsb: Accepted difference of integers, in counts.
        atol: Accepted difference of floats: atol + rtol * |original|. If neither `atol` nor `rtol` is set, floats of a
            TOSA file may differ by what TOSA leaves open: so many float32 ulps of the largest value of their tensor
            (docs/numerics.md, "Floats on TOSA"). The result's `tolerance` has the number.
        rtol: Accepted difference of floats relative to the original: see `atol`.
        report: The conversion's report (`Conversion.report`, its JSON form, or a file). Operators that it warns about
            as not reproduced may differ; what follows them is compared on the original's values.
        time: Measure how long a run of each entry takes in both models, in turns (`Verification.time`): in the
            interpreter as users have it, with its default delegate and one thread, whatever `resolver` says. For TFLite
            files.
        timeout: Seconds that one run may take.
        progress: Called with what is run, how many runs are done and how many there are.

    Returns:
        Every difference. The result is true only if the models are equal.

    Raises:
        TflqError: No interpreter is installed, or for a TOSA file, no reference model.
        FileError: A file is missing or cannot be read.
        OptionError: An option makes no sense, or the inputs do not fit.

    Example:
        ```python
        result = tflq.verify("in.tflite", "out.tflite", layers=True)
        print(result.verdict, result.outputs)
        ```
    """
    check_source("a", a)
    check_source("b", b)
    check_numbers(0, whole=True, seeds=seeds, seed=seed)
    check_numbers(0, max_lsb=max_lsb, timeout=timeout)
    check_number("atol", atol, 0, optional=True)
    check_number("rtol", rtol, 0, optional=True)
    check_number("batch", batch, 1, whole=True, optional=True)
    check_flags(layers=layers, interface=interface, time=time)
    check_choice("resolver", resolver, get_args(Resolver))
    check_shapes(shapes)
    check_inputs(inputs)
    tolerance = Tolerance.asked(max_lsb, atol, rtol)
    options: dict[str, Any] = {"inputs": inputs, "seeds": seeds, "seed": seed, "layers": layers, "batch": batch}
    options |= {"resolver": resolver, "interface": interface, "report": report, "time": time}
    options |= {"timeout": timeout, **({"progress": progress} if progress else {})}
    return compare_models(a, b, Options(**options, shapes=shapes or {}, tolerance=tolerance))
