"""`tflq quantize`, and what is run on samples before and after it: `tflq calibrate`, for the ranges of values, and
`tflq debug`, for the operators that are far from the float ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from tflq.cli import output
from tflq.cli.main import GroupOfRun, SectionedCommand
from tflq.cli.options import DATA, image_options, json_option, labels_option, metric_options
from tflq.cli.output import DOCUMENT, FILE

if TYPE_CHECKING:
    from tflq.analysis.statistics import FileFormat
    from tflq.tools.quantize.calibration.calibrate import Calibration
    from tflq.tools.quantize.debugging.outcome import Debugging, DebugRow
    from tflq.tools.quantize.debugging.pairing import Unpaired
    from tflq.tools.quantize.fidelity import Metric
    from tflq.tools.quantize.report import Quantization


SCHEMES = ("int8", "int16x8", "dynamic", "weight-only", "float16")
WEIGHTS = ("int8", "int4", "int2")
METHODS = ("minmax", "mse", "octav", "gptq", "reconstruct")
EDGES = ("float", "int8", "uint8", "int16")
INTERRUPTED = 128 + 2
"""The exit code where an interrupted search has not come within its bounds: that of SIGINT."""
PLACE = click.Path(dir_okay=False, path_type=Path)

_SIGNATURE = click.option(
    "--signature", metavar="KEY", help="Run this signature; by default the only one, else the first subgraph."
)
_SAMPLES = click.option(
    "--samples", type=click.IntRange(1), metavar="N", help="At most so many samples: the first ones."
)
_SEED = click.option(
    "--seed", type=int, metavar="N", help="Draw the samples at random instead; the same seed, the same ones."
)
_FORCE = click.option("--force", is_flag=True, help="Replace the file; what is read is never replaced.")


class _Quantize(SectionedCommand):
    sections: ClassVar = {
        "What becomes of the network": ("scheme", "io", "target", "keep_float", "recipe"),
        "What becomes of weights": ("weights", "blocks"),
        "How weights are rounded": ("weight_method",),
        "Bounds, within which operators are searched that get more bits": (
            *("min_snr", "max_drop", "max_bytes", "max_time", "metric", "labels", "save_recipe"),
        ),
        "Where ranges of activations come from": ("statistics", "calibration", "range", "mean", "scale"),
    }


@click.command(
    cls=_Quantize,
    help="""Quantize the float network MODEL, and say what became of each operator.

    Activations need ranges: from statistics, or from samples, on which the signal-to-noise ratio of the outputs is
    measured, too.
    """,
)
@click.argument("model", type=FILE)
@click.argument("destination", metavar="OUT.tflite", type=PLACE)
@click.option(
    "--scheme",
    type=click.Choice(SCHEMES),
    show_default="int8",
    help="What is quantized, and to how many bits.",
)
@click.option("--io", type=click.Choice(EDGES), default="float", show_default=True, help="What inputs and outputs are.")
@click.option(
    "--target",
    metavar="NAME|PATH.toml",
    help="The kernels that decide: int8, int16x8, uint8 or a device's; by default those of the scheme.",
)
@click.option("--keep-float", metavar="PATTERN", multiple=True, help="Operators that make such a tensor stay float.")
@click.option(
    "--recipe",
    metavar="FILE",
    type=DOCUMENT,
    help="What is asked of single operators: TOML, or JSON of litert-quantizer.",
)
@click.option("--weights", type=click.Choice(WEIGHTS), show_default="int8", help="Bits of weights.")
@click.option("--blocks", type=int, metavar="32|64|128|256", help="Weights of FULLY_CONNECTED that share a scale.")
@click.option(
    "--weight-method",
    type=click.Choice(METHODS),
    show_default="minmax",
    help="The range of weights; gptq and reconstruct fit them to samples.",
)
@click.option("--weight-range", type=click.Choice(METHODS), hidden=True, help="The former name of --weight-method.")
@click.option(
    "--statistics",
    metavar="FILE.json",
    multiple=True,
    type=DOCUMENT,
    help="What `tflq calibrate` saw of each signature.",
)
@click.option("--calibration", metavar="DATA", type=DATA, help="Samples instead (docs/data.md).")
@click.option(
    "--range",
    metavar="METHOD",
    default="auto",
    show_default=True,
    help="minmax, ema, percentile:99.9, mse; or auto: the best on the last quarter of --calibration, "
    "and channels are equalized and biases corrected where that is better there.",
)
@image_options
@click.option("--min-snr", type=float, metavar="DB", help="The least signal to noise of the outputs.")
@click.option(
    "--max-drop",
    type=float,
    metavar="N",
    help="By how much the metric, top-1 where labels are, may be less than the float network's.",
)
@click.option("--max-bytes", type=click.IntRange(1), metavar="N", help="The most bytes of the file.")
@click.option("--max-time", type=float, metavar="MS", help="The longest time of a run here, on one thread.")
@click.option(
    "--metric",
    metavar="NAME|FILE.py",
    help="top-1 or top-5 of labels, agreement, cosine, kl, mae; or `metric` of a file, in place of decibels.",
)
@labels_option()
@click.option(
    "--save-recipe",
    metavar="FILE.toml",
    type=PLACE,
    help="Write the recipe that repeats the result with the same samples, --io and --target.",
)
@_FORCE
@json_option()
def quantize(
    model: Path,
    destination: Path,
    *,
    metric: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    import tflq

    with output.progress(f"quantizing {model}", silent=as_json):
        judge = _metric_of(Path(metric), destination, options) if metric and metric.endswith(".py") else metric
        result = tflq.quantize(model, destination, metric=judge, **options)
    output.print_json(result.to_json()) if as_json else print_quantization(result, destination)
    return INTERRUPTED if result.search is not None and not result.search.reached else 0


def _metric_of(path: Path, destination: Path, options: Mapping[str, Any]) -> Metric:
    """The function of a file that says how near outputs are. FileError if the file would be replaced."""
    from tflq.base.errors import OptionError, Reason
    from tflq.base.files import check_outputs
    from tflq.conversion.extensions import attribute_of

    outputs = [("OUT", destination), ("--save-recipe", options["save_recipe"])]
    check_outputs(outputs, inputs=[path], force=options["force"])
    metric: Metric = attribute_of(path, "metric")
    if not callable(metric):
        raise OptionError(
            Reason("the file has no function metric", str(path), remedy="define metric(floats, quantized)")
        )
    return metric


def print_quantization(result: Quantization, destination: Path) -> None:
    from tflq.tools.quantize.debugging.outcome import decibels

    ratio = result.decibels
    first, *others = result.summary().split("\n")
    output.field("operators", first)
    for line in (*others, *(result.search.lines() if result.search else ())):
        click.echo(f"  {line}")
    output.field("size", f"{result.bytes_in / 1024:.1f} → {result.bytes_out / 1024:.1f} KiB")
    agreement = "" if result.agreement is None else f", agreement {result.agreement:.1%}"
    output.field("outputs", f"signal to noise {'not measured' if ratio is None else decibels(ratio)}{agreement}")
    for score in result.scores:
        output.field("metric", str(score))
    for trial in result.trials:
        output.field("tried", f"{trial.name}: {decibels(trial.decibels)}{', chosen' if trial.chosen else ''}")
    for warning in result.warnings:
        output.field("warning", warning)
    output.field("written to", str(destination))


# `tflq calibrate`.


WIDEST = 10

_FORMAT = click.option(
    "--format",
    type=click.Choice(("tflq", "ai-edge-quantizer")),
    default="tflq",
    show_default=True,
    help="What the file is; `tflq quantize` takes both.",
)
_RANGE = click.option(
    "--range",
    metavar="METHOD",
    default="minmax",
    show_default=True,
    help="With --format ai-edge-quantizer, which keeps one range per tensor: how it is computed: minmax, "
    "ema, percentile:99.9 or mse.",
)


@click.group(
    cls=GroupOfRun,
    help="""Run a model on samples, and keep the ranges of its values: `tflq calibrate MODEL DATA -o STATISTICS`.

    A model named as a command is written `./merge`.
    """,
)
def calibrate() -> None:
    """The commands of calibration."""


@calibrate.command(
    "run",
    help="""Run MODEL on the samples in DATA, and write the ranges of all float tensors.

    DATA is an .npz file (arrays by input name, whose first dims count samples), an .npy file, or a folder of such files
    or of images: docs/data.md.
    """,
)
@click.argument("model", type=FILE)
@click.argument("data", type=DATA)
@click.option("-o", "--output", "destination", metavar="FILE.json", type=PLACE, required=True)
@_SIGNATURE
@_SAMPLES
@_SEED
@click.option(
    "--histogram/--no-histogram",
    default=True,
    show_default=True,
    help="Count values in bins, which the ranges percentile and mse need.",
)
@click.option("--ignore-nonfinite", is_flag=True, help="Count NaN and infinity, and go on: else they are an error.")
@image_options
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that run the model.")
@click.option(
    "--resume", is_flag=True, help="Go on with a run that was interrupted, or measure again what has changed."
)
@_FORMAT
@_RANGE
@_FORCE
@json_option()
def run(
    model: Path,
    data: Path,
    destination: Path,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    import tflq

    with output.progress(f"calibrating {model}", silent=as_json, total=0) as show:
        calibration = tflq.calibrate(
            model,
            data,
            destination,
            observer=lambda done, count: show("", done, count),
            **options,
        )
    _print_calibration(calibration, destination, as_json=as_json)


@calibrate.command(
    "merge",
    help="""Put the statistics of several runs of one model together, in this order, as if it had been one run. Of one
    file: write it in another format.""",
)
@click.argument("files", metavar="FILE.json...", nargs=-1, required=True, type=DOCUMENT)
@click.option("-o", "--output", "destination", metavar="FILE.json", type=PLACE, required=True)
@_FORMAT
@_RANGE
@_FORCE
@json_option()
def merge(
    files: tuple[Path, ...], destination: Path, *, format: FileFormat, range: str, force: bool, as_json: bool
) -> None:
    from tflq.analysis.statistics import merge_files, write_in_form
    from tflq.base.files import check_outputs
    from tflq.tools.quantize.calibration.calibrate import Calibration

    check_outputs([("the statistics", destination)], inputs=files, force=force)
    merged = merge_files(files)
    write_in_form(destination, merged, format, range, force=force)
    _print_calibration(Calibration(merged), destination, as_json=as_json)


def _print_calibration(calibration: Calibration, destination: Path, *, as_json: bool) -> None:
    if as_json:
        output.print_json(calibration.to_json() | {"statistics": str(destination)})
        return
    if output.quiet():
        return
    from tflq.tools.quantize.debugging.outcome import shortened

    points = calibration.statistics.points
    output.field("samples", str(len(calibration.statistics.samples)))
    output.field("points", f"{len(points)} tensors, {len(calibration.reused)} of them from earlier statistics")
    seen = [(key, p) for key, p in points.items() if p.minimum is not None and p.maximum is not None]
    widest = sorted(seen, key=lambda pair: -max(abs(pair[1].minimum or 0), abs(pair[1].maximum or 0)))[:WIDEST]
    rows = [[shortened(key), f"{p.minimum:.6g}", f"{p.maximum:.6g}"] for key, p in widest]
    if rows:
        output.table(["widest", "least", "largest"], rows)
    output.field("written to", str(destination))


# `tflq debug`.


SHOWN = 20


@click.command(
    help="""Find the operators of QUANTIZED that are far from those of FLOAT, on the samples in DATA.

    The two can come from any tool: operators are matched by the names of their results. Of each operator there is its
    own error, on the numbers that it gets, and the error that has reached it. DATA is as `tflq calibrate` takes
    it: docs/data.md.
    """
)
@click.argument("floats", metavar="FLOAT", type=FILE)
@click.argument("quantized", metavar="QUANTIZED", type=FILE)
@click.argument("data", type=DATA)
@click.option("--csv", metavar="FILE.csv", type=PLACE, help="Write all rows as CSV, too.")
@click.option("--html", metavar="FILE.html", type=PLACE, help="Write a page, with ranges and histograms of the worst.")
@_SIGNATURE
@_SAMPLES
@_SEED
@image_options
@metric_options
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that run the models.")
@click.option("--force", is_flag=True, help="Replace files; what is read is never replaced.")
@json_option()
def debug(floats: Path, quantized: Path, data: Path, *, as_json: bool, **options: Any) -> None:
    import tflq

    with output.progress(f"comparing {quantized}", silent=as_json, total=0) as show:
        result = tflq.debug(
            floats,
            quantized,
            data,
            observer=lambda done, count: show("", done, count),
            **options,
        )
    output.print_json(result.to_json()) if as_json else print_debugging(result)


def print_debugging(result: Debugging) -> None:
    from tflq.tools.quantize.debugging.outcome import decibels, shortened

    output.field("samples", str(result.samples))
    output.field("outputs", "no reals" if result.decibels is None else f"signal to noise {decibels(result.decibels)}")
    for score in result.scores:
        output.field("metric", str(score))
    if result.left_out:
        output.field("left out", f"{result.left_out} elements that are NaN or infinite in one of the networks")
    head = ["#", "operator", "result", "own SNR", "RMSE/step", "reached SNR", "clipped", "bits unused"]
    output.table(head, [_debugged(row) for row in result.rows[:SHOWN]], right=(0, 3, 4, 5, 6, 7))
    if len(result.rows) > SHOWN:
        click.echo(f"  and {len(result.rows) - SHOWN} more: --csv, --json")
    for each in result.advice[:SHOWN]:
        what = "keep it in float" if each.action == "float" else "give it 16 bits"
        output.field("advice", f"{each.operator} '{shortened(each.tensor)}': {what}, about +{each.gain_db:.1f} dB")
    _print_unpaired("only in the float network", result.only_float)
    _print_unpaired("only in the quantized network", result.only_quantized)


def _debugged(row: DebugRow) -> list[str]:
    from tflq.tools.quantize.debugging.outcome import texts

    shown = texts(row, "-")
    numbers = [shown[key] for key in ("name", "own", "step", "reached", "clipped", "unused")]
    return ["" if row.number < 0 else str(row.number), row.operator, *numbers]


def _print_unpaired(where: str, unpaired: tuple[Unpaired, ...]) -> None:
    from tflq.tools.quantize.debugging.outcome import shortened

    if unpaired:
        named = ", ".join(f"{each.operator} '{shortened(each.tensor)}'" for each in unpaired[:SHOWN])
        more = f" and {len(unpaired) - SHOWN} more" if len(unpaired) > SHOWN else ""
        output.field("no partner", f"{where}: {named}{more}")
