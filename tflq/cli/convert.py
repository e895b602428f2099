"""`tflq convert`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from tflq.cli import output
from tflq.cli.verdict import print_report, print_verdict
from tflq.errors import TflqError

__all__ = ["command"]

JSON_VERSION = 1

MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("source", metavar="IN", type=MODEL)
@click.argument("destination", metavar="OUT", type=FILE)
@click.option(
    "--target",
    metavar="NAME|PATH.toml",
    help="What the result may hold: integer or kernels (.tflite), tosa (.tosa, .mlir), or a file that says so.",
)
@click.option(
    "--mac",
    type=click.Choice(["integer", "float32"]),
    default="integer",
    show_default=True,
    help="Multiply-accumulate: int8 matrix products, or float32 convolutions proven exact.",
)
@click.option(
    "--fallback",
    type=click.Choice(["float", "error"]),
    default="float",
    show_default=True,
    help="What becomes of an operator without an integer form.",
)
@click.option(
    "--semantics",
    type=click.Choice(["interpreter", "real"]),
    default="interpreter",
    show_default=True,
    help="Equal the interpreter to the last bit, or honour the quantization parameters where it does not.",
)
@click.option(
    "--state",
    type=click.Choice(["kept", "variables"]),
    help="Operators that hold state, in a .tflite file. By default kept, unless a target's file does not list them.",
)
@click.option(
    "--reset-signature",
    is_flag=True,
    help="Add a signature 'tflq_reset' that resets state lowered into variables; the model's own need their keys then.",
)
@click.option("--batch", type=click.IntRange(1), help="Size of the inputs' first dim where the model leaves it open.")
@click.option(
    "--shape",
    "shapes",
    metavar="INPUT=1,224,224,3",
    multiple=True,
    callback=lambda _, __, given: _shapes(given),
    help="The whole shape of an input; may be repeated.",
)
@click.option("--signature", metavar="KEY", help="Convert this signature alone; TOSA has one file for each.")
@click.option(
    "--cut",
    metavar="TENSOR[,TENSOR]",
    multiple=True,
    callback=lambda _, __, given: tuple(name for text in given for name in text.split(",") if name),
    help="Convert the part up to these tensors, which become outputs.",
)
@click.option("--cut-before-custom", is_flag=True, help="Convert the part up to what custom operators read.")
@click.option("--report", "report_path", type=FILE, help="Write a JSON report: what became of each operator.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(
    source: Path, destination: Path, report_path: Path | None, *, force: bool, as_json: bool, **options: Any
) -> None:
    """Convert model IN, TFLite or TOSA, to OUT, whose suffix says the format: .tflite, .tosa or .mlir."""
    _check_paths(source, destination, report_path, force=force)
    from tflq import convert
    from tflq.conversion import destinations
    from tflq.files import replace_file

    with output.progress(f"converting {source}", quiet=as_json):
        start = time.perf_counter()
        conversion = convert(source, destination, force=force, **options)
        seconds = time.perf_counter() - start
    if report_path is not None:
        replace_file(report_path, [json.dumps(conversion.report.to_json(), indent=1).encode(), b"\n"])
    written = [place for place, _ in destinations(conversion, destination, force=True)]
    sizes = source.stat().st_size, sum(place.stat().st_size for place in written)
    if as_json:
        report = conversion.report.to_json()
        document = {
            "format": "tflq.conversion",
            "version": JSON_VERSION,
            "source": str(source),
            "destination": str(destination),
            "files": [str(place) for place in written],
        }
        measures = {"bytes_in": sizes[0], "bytes_out": sizes[1], "seconds": round(seconds, 4)}
        output.print_json({**document, "options": options, **measures, "report": report})
        return
    print_verdict(conversion.report)
    output.line(f"{source} -> {', '.join(map(str, written))}")
    output.line(f"{output.size(sizes[0])} -> {output.size(sizes[1])} in {seconds:.2f} s")
    output.line()
    print_report(conversion.report)


def _shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs by name."""
    found = {}
    for text in given:
        name, _, dims = text.rpartition("=")
        try:
            found[name] = tuple(int(d) for d in dims.split(",") if d)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"'{text}' is not INPUT=DIM,DIM,...")
    return found


def _check_paths(source: Path, destination: Path, report: Path | None, *, force: bool) -> None:
    for path in (destination, report):
        if path is None:
            continue
        if path.exists() and path.samefile(source):
            raise TflqError(f"{path} is the model to convert: give another name")
        if path.exists() and not force:
            raise TflqError(f"{path} exists already: --force replaces it")
        if not path.parent.is_dir():
            raise TflqError(f"{path}: there is no folder {path.parent}")
    if report is not None and report == destination:
        raise TflqError("OUT and --report are the same file")
