"""`tflq.verify`: two models on the same inputs, and how far apart they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from tflq.base.arguments import check_choice, check_flags, check_number, check_numbers, check_shapes, check_source
from tflq.base.errors import OptionError, Reason
from tflq.tools.samples.files import Images, Level
from tflq.tools.samples.reading import check_data
from tflq.tools.verify.comparison import compare_models
from tflq.tools.verify.difference import Tolerance
from tflq.tools.verify.inputs import Options, Source
from tflq.tools.verify.interface import ReportLike
from tflq.tools.verify.metrics import check_metrics
from tflq.tools.verify.outcome import Verification
from tflq.tools.verify.runner import Resolver, Runtime


def verify(
    a: Source,
    b: Source,
    *,
    inputs: Any = None,
    mean: Level | None = None,
    scale: Level | None = None,
    seeds: int = 2,
    seed: int = 0,
    layers: bool = False,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    resolver: Resolver | None = None,
    runtime: Runtime | None = None,
    interface: bool = True,
    max_lsb: float = 0,
    atol: float | None = None,
    rtol: float | None = None,
    report: ReportLike | None = None,
    time: bool = False,
    timeout: float = 600.0,
    cc: str | None = None,
    labels: Any = None,
    metric: str | Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Run two models on the same inputs and compare everything they return.

    TFLite files run in the interpreter, TOSA files on the TOSA reference model, ONNX files in ONNX Runtime; C is
    compiled. Each model runs in a process of its own: if it aborts, that is part of the result. Such a file is compared
    with the entry of a TFLite model that has the same inputs and outputs, at the shapes of the file; quantization
    parameters are not compared, because TOSA has none, and ONNX files have them as metadata.

    Args:
        a: The original: a path, bytes or a binary file object.
        b: The other model, in the same forms.
        inputs: Samples, in any form of docs/data.md: the path of an .npz or .npy file or of a folder; arrays by input
            name whose first dims count samples; an iterable of arrays, of mappings by input name, or of lists in the
            order of the inputs; or a function that returns one. By default `seeds` random sets, then all minimum,
            maximum and zero point. Each run starts with the initial state. If a model holds state, ten random sets also
            run in a row.
        mean: For images: subtracted from each pixel (0 to 255), a number or one for each channel.
        scale: For images: multiplies the difference, a number or one for each channel.
        seeds: Number of sets of random inputs.
        seed: Another seed gives other random sets.
        layers: Also compare the results of operators, by tensor name, on the first set of inputs of each signature and
            shape. Of C they always are, and so are results within it on all inputs, and those of products for sums on
            both sides of each step of their requantization.
        batch: Size of the inputs' first dimension where the model leaves it open.
        shapes: Whole shapes of inputs, by name. Dimensions that stay open are run at two sizes, larger than any window
            of the model.
        resolver: Which kernels to run: "reference", "optimized" (no delegate) or "default" (with delegates). By default
            those of the kernel set that `b`, a TFLite file, names in its metadata, else "reference". Operators
            without a reference kernel, or with one known to be wrong, run on the optimized ones in both models; the
            result lists them (`apart`).
        runtime: What runs `b`: an ONNX file "onnxruntime", which it is without this, or "openvino"; a TFLite file
            "tflm", TFLite Micro, at the shapes that the file states. The original runs on the kernels of `resolver`.
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
        cc: The command that compiles C, with flags if need be. By default `CC` of the environment, or "cc".
        labels: Where the labels of `inputs` are: the key of an array in them, a file, or an array (docs/data.md).
        metric: Metrics of the outputs on `inputs`: "top-1" and "top-5" of labels, "agreement", "cosine", "kl", "mae".
        progress: Called with what is run, how many runs are done and how many there are.

    Returns:
        Every difference. The result is true only if the models are equal.

    Raises:
        TflqError: No interpreter is installed, or not what runs a TOSA or ONNX file, or the `runtime`.
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
    check_choice("resolver", resolver, get_args(Resolver), optional=True)
    check_choice("runtime", runtime, get_args(Runtime), optional=True)
    check_shapes(shapes)
    check_data("inputs", inputs)
    metrics = check_metrics(metric)
    if inputs is None and (labels is not None or metrics):
        raise OptionError(Reason("labels and metrics are of samples", remedy="give inputs"))
    tolerance = Tolerance.from_arguments(max_lsb, atol, rtol)
    options: dict[str, Any] = {"inputs": inputs, "seeds": seeds, "seed": seed, "layers": layers, "batch": batch}
    options |= {"interface": interface, "report": report, "time": time, "runtime": runtime}
    options |= {"images": Images.of(mean, scale), "timeout": timeout, **({"progress": progress} if progress else {})}
    options |= {"resolver": resolver or "reference", "cc": cc, "labels": labels, "metrics": metrics}
    checked = Options(**options, shapes=shapes or {}, tolerance=tolerance)
    return compare_models(a, b, checked, on_named_kernels=resolver is None)
