"""`tflq debug`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output
from tflq.cli.options import json_option
from tflq.cli.output import FILE

if TYPE_CHECKING:
    from tflq.debugging.outcome import Debugging, DebugRow
    from tflq.debugging.pairing import Unpaired

SHOWN = 20
PLACE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("floats", metavar="FLOAT", type=FILE)
@click.argument("quantized", metavar="QUANTIZED", type=FILE)
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.option("--csv", metavar="FILE.csv", type=PLACE, help="Write all rows as CSV, too.")
@click.option("--html", metavar="FILE.html", type=PLACE, help="Write a page, with ranges and histograms of the worst.")
@click.option(
    "--signature", metavar="KEY", help="Run this signature; by default the only one, else the first subgraph."
)
@click.option("--samples", type=click.IntRange(1), metavar="N", help="At most so many samples: the first ones.")
@click.option("--seed", type=int, metavar="N", help="Draw the samples at random instead; the same seed, the same ones.")
@click.option("--mean", metavar="N[,N,N]", help="For images: subtracted from each pixel (0 to 255), or each channel.")
@click.option("--scale", metavar="N[,N,N]", help="For images: what the difference is multiplied by.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that run the models.")
@click.option("--force", is_flag=True, help="Replace files; what is read is never replaced.")
@json_option()
def command(
    floats: Path, quantized: Path, data: Path, *, mean: str | None, scale: str | None, as_json: bool, **options: Any
) -> None:
    """Find the operators of QUANTIZED that are far from those of FLOAT, on the samples in DATA.

    The two can come from any tool: operators are matched by the names of their results. Of each operator there is its
    own error, on the numbers that it gets, and the error that has reached it. DATA is as `tflq calibrate` takes it.
    """
    import tflq
    from tflq.cli.calibrate import images_of

    with output.progress(f"comparing {quantized}", silent=as_json, total=0) as show:
        result = tflq.debug(
            floats,
            quantized,
            data,
            images=images_of(mean, scale),
            observer=lambda done, count: show("", done, count),
            **options,
        )
    output.print_json(result.to_json()) if as_json else print_debugging(result)


def print_debugging(result: Debugging) -> None:
    from tflq.debugging.outcome import decibels, shortened

    output.field("samples", str(result.samples))
    output.field("outputs", "no reals" if result.decibels is None else f"signal to noise {decibels(result.decibels)}")
    if result.left_out:
        output.field("left out", f"{result.left_out} elements that are NaN or infinite in one of the networks")
    head = ["#", "operator", "result", "own SNR", "RMSE/step", "reached SNR", "clipped", "bits unused"]
    output.table(head, [_cells(row) for row in result.rows[:SHOWN]], right=(0, 3, 4, 5, 6, 7))
    if len(result.rows) > SHOWN:
        click.echo(f"  and {len(result.rows) - SHOWN} more: --csv, --json")
    for each in result.advice[:SHOWN]:
        what = "keep it in float" if each.action == "float" else "give it 16 bits"
        output.field("advice", f"{each.operator} '{shortened(each.tensor)}': {what}, about +{each.gain_db:.1f} dB")
    _print_unpaired("only in the float network", result.only_float)
    _print_unpaired("only in the quantized network", result.only_quantized)


def _cells(row: DebugRow) -> list[str]:
    from tflq.debugging.outcome import decibels, shortened

    own = row.own
    step = None if own is None else own.rmse_per_scale
    return [
        "" if row.number < 0 else str(row.number),
        row.operator,
        shortened(row.tensor),
        row.why if own is None else decibels(own.snr_db),
        "-" if step is None else f"{step:.3g}",
        decibels(row.reached.snr_db),
        f"{row.clipped:.2%}" if row.range else "-",
        "-" if row.bits_unused is None else f"{row.bits_unused:.1f}",
    ]


def _print_unpaired(where: str, unpaired: tuple[Unpaired, ...]) -> None:
    from tflq.debugging.outcome import shortened

    if unpaired:
        named = ", ".join(f"{each.operator} '{shortened(each.tensor)}'" for each in unpaired[:SHOWN])
        more = f" and {len(unpaired) - SHOWN} more" if len(unpaired) > SHOWN else ""
        output.field("no partner", f"{where}: {named}{more}")
