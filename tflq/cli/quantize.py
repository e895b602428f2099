"""`tflq quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from tflq.cli import output
from tflq.cli.main import SectionedCommand
from tflq.cli.options import json_option
from tflq.cli.output import FILE

if TYPE_CHECKING:
    from tflq.quantization.fidelity import Metric
    from tflq.quantization.report import Quantization

SCHEMES = ("int8", "int16x8", "dynamic", "weight-only", "float16")
WEIGHTS = ("int8", "int4")
RANGES = ("minmax", "mse", "octav", "gptq")
EDGES = ("float", "int8", "uint8", "int16")


class _Quantize(SectionedCommand):
    sections: ClassVar = {
        "What becomes of the network": ("scheme", "io", "target", "keep_float", "recipe"),
        "What becomes of weights, for dynamic and weight-only": ("weights", "blocks", "weight_range"),
        "How near the outputs have to be": ("min_snr", "metric"),
        "Where ranges of activations come from": ("statistics", "calibration", "range", "mean", "scale"),
    }


@click.command(cls=_Quantize)
@click.argument("model", type=FILE)
@click.argument("destination", metavar="OUT.tflite", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--scheme", type=click.Choice(SCHEMES), default="int8", show_default=True, help="Bits, and of what.")
@click.option("--io", type=click.Choice(EDGES), default="float", show_default=True, help="What inputs and outputs are.")
@click.option("--target", metavar="NAME|PATH.toml", help="The kernels that decide; by default those of the scheme.")
@click.option("--keep-float", metavar="PATTERN", multiple=True, help="Operators that make such a tensor stay float.")
@click.option("--recipe", metavar="FILE.toml", type=FILE, help="What is asked of single operators.")
@click.option(
    "--weights", type=click.Choice(("int8", "int4")), default="int8", show_default=True, help="Bits of weights."
)
@click.option(
    "--blocks", type=int, default=0, metavar="32|64|128|256", help="Weights of FULLY_CONNECTED that share a scale."
)
@click.option(
    "--weight-range",
    type=click.Choice(RANGES),
    default="minmax",
    show_default=True,
    help="Of weights.",
)
@click.option(
    "--statistics", metavar="FILE.json", multiple=True, type=FILE, help="What `tflq calibrate` saw of each signature."
)
@click.option("--calibration", metavar="DATA", type=click.Path(exists=True, path_type=Path), help="Samples instead.")
@click.option(
    "--range", metavar="METHOD", default="minmax", show_default=True, help="minmax, ema, percentile:99.9 or mse."
)
@click.option("--mean", metavar="N[,N,N]", help="For images: subtracted from each pixel (0 to 255), or each channel.")
@click.option("--scale", metavar="N[,N,N]", help="For images: what the difference is multiplied by.")
@click.option("--min-snr", type=float, metavar="DB", help="Operators go back to float until this holds.")
@click.option("--metric", metavar="FILE.py", type=FILE, help="Its `metric` instead of decibels.")
@click.option("--force", is_flag=True, help="Replace the file; what is read is never replaced.")
@json_option()
def command(
    model: Path,
    destination: Path,
    *,
    mean: str | None,
    scale: str | None,
    metric: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Quantize the float network MODEL, and say what became of each operator.

    Activations need ranges: from statistics, or from samples, on which the signal-to-noise ratio of the outputs is
    measured, too.
    """
    import tflq
    from tflq.cli.calibrate import images_of

    with output.progress(f"quantizing {model}", silent=as_json):
        judge = None if metric is None else _metric_of(metric)
        result = tflq.quantize(model, destination, images=images_of(mean, scale), metric=judge, **options)
    if as_json:
        output.print_json(result.to_json())
    else:
        print_quantization(result, destination)


def _metric_of(path: Path) -> Metric:
    """The function of a file that says how near outputs are."""
    from tflq.errors import OptionError, Reason
    from tflq.extensions import attribute_of

    found: Metric = attribute_of(path, "metric")
    if not callable(found):
        raise OptionError(
            Reason("the file has no function metric", str(path), remedy="define metric(floats, quantized)")
        )
    return found


def print_quantization(result: Quantization, destination: Path) -> None:
    from tflq.quantization.fidelity import shown

    first, *others = result.summary().split("\n")
    output.field("operators", first)
    for line in (*others, *(result.search.lines() if result.search else ())):
        click.echo(f"  {line}")
    output.field("size", f"{result.bytes_in / 1024:.1f} → {result.bytes_out / 1024:.1f} KiB")
    output.field("outputs", f"signal to noise {shown(result.decibels)}")
    output.field("written to", str(destination))
