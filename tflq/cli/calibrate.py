"""`tflq calibrate`: what a model's values are on samples; `tflq calibrate merge`: several runs as one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tflq.cli import output
from tflq.cli.main import GroupOfRun
from tflq.cli.options import json_option
from tflq.cli.output import FILE

if TYPE_CHECKING:
    from tflq.analysis.calibration_result import Form
    from tflq.calibration.calibrating import Calibration
    from tflq.calibration.data import Images

WIDEST = 10
STATISTICS = click.Path(dir_okay=False, path_type=Path)
_F = TypeVar("_F", bound=Callable[..., Any])


def form_options(function: _F) -> _F:
    """--format and --range: what the file is."""
    function = click.option(
        "--range",
        metavar="METHOD",
        default="minmax",
        show_default=True,
        help="Of ai-edge-quantizer's file, which has no more: minmax, ema, percentile:99.9 or mse.",
    )(function)
    return click.option(
        "--format",
        type=click.Choice(("tflq", "ai-edge-quantizer")),
        default="tflq",
        show_default=True,
        help="What the file is; `tflq quantize` takes both.",
    )(function)


@click.group(cls=GroupOfRun)
def command() -> None:
    """Run a model on samples, and keep the ranges of its values: `tflq calibrate MODEL DATA -o STATISTICS`.

    A model named as a command is written `./merge`.
    """


@command.command("run")
@click.argument("model", type=FILE)
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", "destination", metavar="FILE.json", type=STATISTICS, required=True)
@click.option(
    "--signature", metavar="KEY", help="Run this signature; by default the only one, else the first subgraph."
)
@click.option("--samples", type=click.IntRange(1), metavar="N", help="At most so many samples: the first ones.")
@click.option("--seed", type=int, metavar="N", help="Draw the samples at random instead; the same seed, the same ones.")
@click.option(
    "--histogram/--no-histogram",
    default=True,
    show_default=True,
    help="Count values in bins, which the ranges percentile and mse need.",
)
@click.option("--ignore-nonfinite", is_flag=True, help="Count NaN and infinity, and go on: else they are an error.")
@click.option("--mean", metavar="N[,N,N]", help="For images: subtracted from each pixel (0 to 255), or each channel.")
@click.option("--scale", metavar="N[,N,N]", help="For images: what the difference is multiplied by.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that run the model.")
@click.option(
    "--resume", is_flag=True, help="Go on with a run that was interrupted, or measure again what has changed."
)
@form_options
@click.option("--force", is_flag=True, help="Replace the file; what is read is never replaced.")
@json_option()
def run(
    model: Path,
    data: Path,
    destination: Path,
    *,
    mean: str | None,
    scale: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run MODEL on the samples in DATA, and write the ranges of all float tensors.

    DATA is an .npz file (arrays by input name, whose first dim is samples), or a folder of .npz files (a sample each),
    .npy files (for a model of one input) or images.
    """
    import tflq

    images = images_of(mean, scale)
    with output.progress(f"calibrating {model}", silent=as_json, total=0) as show:
        calibration = tflq.calibrate(
            model,
            data,
            destination,
            images=images,
            observer=lambda done, count: show("", done, count),
            **options,
        )
    _print(calibration, destination, as_json=as_json)


@command.command("merge")
@click.argument("files", metavar="FILE.json...", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", "destination", metavar="FILE.json", type=STATISTICS, required=True)
@form_options
@click.option("--force", is_flag=True, help="Replace the file; what is read is never replaced.")
@json_option()
def merge(files: tuple[Path, ...], destination: Path, *, format: Form, range: str, force: bool, as_json: bool) -> None:
    """Put the statistics of several runs of one model together, in this order, as if it had been one run. Of one file:
    write it in another format."""
    from tflq.analysis.calibration_result import write_in_form
    from tflq.analysis.statistics import merge_statistics, read_statistics
    from tflq.calibration.calibrating import Calibration
    from tflq.files import check_outputs

    check_outputs([("the statistics", destination)], inputs=files, force=force)
    merged = merge_statistics([read_statistics(file) for file in files])
    write_in_form(destination, merged, format, range, force=force)
    _print(Calibration(merged), destination, as_json=as_json)


def images_of(mean: str | None, scale: str | None) -> Images | None:
    """How images become inputs, as the options say it; None without them."""
    from tflq.calibration.data import Images
    from tflq.errors import OptionError, Reason

    if mean is None and scale is None:
        return None
    try:
        means, scales = (tuple(float(part) for part in (text or "").split(",")) for text in (mean, scale))
    except ValueError:
        remedy = "state both: --mean 127.5 --scale 0.00784, or a number for each channel"
        raise OptionError(Reason("the mean and the scale of images are numbers", remedy=remedy)) from None
    return Images(means, scales)


def _print(calibration: Calibration, destination: Path, *, as_json: bool) -> None:
    if as_json:
        output.print_json(calibration.to_json() | {"statistics": str(destination)})
        return
    from tflq.debugging.outcome import shortened

    points = calibration.statistics.points
    output.field("samples", str(len(calibration.statistics.samples)))
    output.field("points", f"{len(points)} tensors, {len(calibration.reused)} of them from earlier statistics")
    seen = [(key, p) for key, p in points.items() if p.minimum is not None and p.maximum is not None]
    widest = sorted(seen, key=lambda pair: -max(abs(pair[1].minimum or 0), abs(pair[1].maximum or 0)))[:WIDEST]
    rows = [[shortened(key), f"{p.minimum:.6g}", f"{p.maximum:.6g}"] for key, p in widest]
    output.table(["widest", "least", "largest"], rows)
    output.field("written to", str(destination))
