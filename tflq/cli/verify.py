"""Commands that check one model: `tflq verify`, `tflq reduce` to the part of it that fails, `tflq bisect` to the pass
that changed a result.
"""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tflq.base.files import check_outputs, replace_file, text_bytes
from tflq.base.tables import Cell
from tflq.cli import output
from tflq.cli.main import DIFFERS, INCOMPARABLE
from tflq.cli.options import (
    DATA,
    TARGETS,
    conversion_options,
    image_options,
    json_option,
    metric_options,
    seed_option,
    seeds_option,
    shape_option,
    target_option,
    timeout_option,
    tolerance_options,
)
from tflq.cli.output import DOCUMENT, FILE

if TYPE_CHECKING:
    from tflq.tools.debug.bisection import Bisection, Finding
    from tflq.tools.debug.reduction import Reduction
    from tflq.tools.verify.difference import Difference
    from tflq.tools.verify.outcome import Verification


COLOURS = {"equal": "green", "accepted": "yellow", "differs": "red", "failed": "red", "nothing comparable": "yellow"}
_CODES = {"equal": 0, "accepted": 0, "nothing comparable": INCOMPARABLE}
SHOWN = 10


@click.command(
    help="""Run models A and B and compare them: TFLite files in the interpreter, TOSA files on the TOSA reference
    model, ONNX files in ONNX Runtime. A source of C that tflq has written is compiled and executed, whatever is in it:
    verify none that you would not run.

    Both get the same inputs: random ones, then all minimum, all maximum and all zero point. Compared are outputs,
    names, shapes, types, quantization, signatures and metadata. Exit code 5 if anything differs by more than is
    accepted, or B does not run; 6 if there is nothing to compare with, since A does not run.
    """
)
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option(
    "--inputs",
    type=DATA,
    metavar="DATA",
    help="Run on these samples: an .npz or .npy file, or a folder of such files or of images (docs/data.md).",
)
@image_options
@metric_options
@seeds_option(2)
@seed_option()
@click.option(
    "--layers", is_flag=True, help="Compare operator results too (of C always): where do the models begin to differ?"
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="With --layers: a page of every operator result, with the operator's parameters and formula.",
)
@click.option("--force", is_flag=True, help="Let --html replace a file; what is read is never replaced.")
@click.option("--batch", type=click.IntRange(1), help="The batch size to run at where the model leaves it open.")
@shape_option(" Open dims are else run at two sizes above any window.")
@click.option(
    "--resolver",
    type=click.Choice(["reference", "optimized", "default"]),
    help="The interpreter's kernels: reference, optimized, or with its default delegate. By default those of the "
    "kernel set that B names, or reference.",
)
@click.option(
    "--runtime",
    type=click.Choice(["onnxruntime", "openvino", "tflm"]),
    help="What runs B: an ONNX file ONNX Runtime, which it is without this, or OpenVINO; a TFLite file TFLite Micro.",
)
@click.option(
    "--interface/--no-interface",
    default=True,
    help="Compare names, types, quantization and signatures, or only what the outputs hold, by position.",
)
@tolerance_options(None, None, " Without both: 0, with a TOSA or ONNX file what these leave open.")
@click.option(
    "--report",
    type=DOCUMENT,
    metavar="FILE.json",
    help="The report of the conversion: operators that it warns of as not reproduced may differ.",
)
@click.option(
    "--time",
    is_flag=True,
    help="Measure what a run takes in each: in turns, with the default kernels and delegate, on one thread.",
)
@click.option(
    "--cc", metavar="COMMAND", help="The compiler of C, with flags if need be; by default CC of the environment, or cc."
)
@timeout_option(600.0)
@json_option()
def verify(a: Path, b: Path, *, as_json: bool, page: Path | None, force: bool, **options: Any) -> None:
    if page is not None and not options["layers"]:
        raise click.UsageError("--html shows operator results: give it with --layers.")
    if page is not None:
        from tflq.tools.samples.files import files_of

        read = a, b, options["report"], options["labels"], *files_of(options["inputs"])
        check_outputs([("--html", page)], inputs=read, force=force)
    import tflq
    from tflq.formats.sources import reusable_source

    original = reusable_source(a)  # a pipe is read once, for the page, too
    with output.progress("opening the models", silent=as_json, total=0) as show:
        result = tflq.verify(original, b, progress=show, **options)
    if page is not None:
        from tflq.tools.pages import layers_page

        replace_file(page, [text_bytes(layers_page(original, result))], force=force)
    output.print_json(result.to_json()) if as_json else print_verification(result)
    click.get_current_context().exit(_CODES.get(result.verdict, DIFFERS))


def print_verification(result: Verification) -> None:
    if not output.quiet():
        _print_comparison(result)
    click.secho(result.verdict.upper(), fg=COLOURS[result.verdict], bold=True)


def _print_comparison(result: Verification) -> None:
    output.heading(f"{result.a} <> {result.b}")
    if result.interpreter:
        output.field("run by", f"{result.interpreter}, {result.resolver} kernels")
    if result.cut:
        listed = ", ".join(f"'{name}'" for name in result.cut)
        output.field("cut", f"the second model ends at {listed} of the first: compared with its values there")
    _print_runs(result)
    if result.inexact and result.outputs:
        largest = max(result.outputs.values(), key=lambda apart: apart.largest)
        count = "count" if largest.largest == 1 else "counts"
        far = f"{largest.largest:.4g} {count if largest.unit == 'LSB' else largest.unit}"
        output.field("inexact", f"{result.inexact}; largest difference {far}")
    for operand in result.operands:
        output.field("operand", str(operand))
    for share in result.kernels:
        output.field("kernels", str(share))
    for agreement in result.top1:
        output.field("top-1", str(agreement))
    for score in result.scores:
        output.field("metric", str(score))
    for apart in result.apart:
        output.field("apart", str(apart))
    if result.interpreter:
        output.field("interface", "equal" if not result.interface else "differs")
    for text in result.interface:
        click.echo(f"  {text}")
    _print_layers(result)
    _print_expected(result)
    _print_time(result)
    for note in result.notes:
        output.field("note", note)
    for left_out in result.uncompared:
        output.field("left out", str(left_out))
    for failure in result.failures:
        click.echo(click.style("failed: ", fg="red", bold=True) + failure)
    for reason in dict.fromkeys((*result.incomparable, *filter(None, [result.reason]))):
        click.echo(click.style("not compared: ", fg="yellow", bold=True) + reason)


def _print_runs(result: Verification) -> None:
    done = [run for run in result.runs if not run.skipped]
    entries = list(dict.fromkeys(run.entry for run in done))
    if len(entries) > 1 or result.uncompared:
        named = (f"signature '{entry}'" if entry else "the first subgraph by position" for entry in entries)
        output.field("compared", ", ".join(named) or "nothing")
    if done:
        names = list(dict.fromkeys(run.inputs for run in done))
        shown = names if len(names) <= SHOWN else [*names[:2], "...", f"{names[-1]} ({len(names)} samples)"]
        output.field("inputs", ", ".join(shown))
    shapes = list(dict.fromkeys(run.shapes for run in done if run.shapes))
    if len(shapes) > len({run.entry for run in done}):
        listed = [", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in each) for each in shapes]
        output.field("shapes", "; ".join(listed))
    for run in result.runs:
        if run.skipped:
            where = f"signature '{run.entry}', " if run.entry else ""
            what = f"{where}inputs '{run.inputs}': the original does not run: {run.skipped}"
            output.warnings([f"{what}; give it others with --inputs"])
    if result.tolerance.ulps and any(difference.unit == "absolute" for difference in result.outputs.values()):
        far = f"{result.tolerance.ulps:g} float32 ulps of their tensor's largest value"
        output.field("tolerance", f"floats up to {far}: neither TOSA nor ONNX defines them to the last bit")
    rows = [_row(f"{entry}: {name}" if entry else name, apart) for (entry, name), apart in result.outputs.items()]
    if rows:
        click.echo()
        head = ["output", "elements", "differing", "largest", "mean", "cosine", "SNR"]
        output.table(head, rows, right=(1, 2, 3, 4, 5, 6))
        click.echo()


def _row(name: str, apart: Difference) -> list[str]:
    differing = f"{apart.differing} ({apart.share:.2%})"
    elements = f"{apart.elements} of {apart.elements + apart.unfilled}" if apart.unfilled else str(apart.elements)
    if apart.problem:
        return [name, elements, differing, apart.problem, "", "", ""]
    unit = f" {apart.unit}" if apart.unit == "LSB" else ""
    measures = ["-" if math.isnan(x) else text for x, text in _measures(apart)]
    return [name, elements, differing, f"{apart.largest:.4g}{unit}", *measures]


def _measures(apart: Difference) -> list[tuple[float, str]]:
    """Mean, cosine, and signal to noise, with how they are shown."""
    ratio = "∞" if math.isinf(apart.snr) else f"{apart.snr:.1f} dB"
    return [(apart.mean, f"{apart.mean:.3g}"), (apart.cosine, f"{apart.cosine:.6f}"), (apart.snr, ratio)]


def _print_expected(result: Verification) -> None:
    for each in result.expected:
        if each.difference.equal:
            continue
        verdict = "expected" if each.accepted else "more than expected"
        output.field(verdict, f"{each}: {each.reason}")
    if result.expected:
        output.field("fed", f"{len(result.expected)} results of the original, to compare what follows them")


def _print_time(result: Verification) -> None:
    for each in result.time or ():
        text = f"not measured: {each.problem}"
        if each.before is not None and each.after is not None and each.ratio is not None:
            unit, factor = ("ms", 1e3) if each.after >= 1e-3 else ("µs", 1e6)
            text = f"{each.before * factor:.3g} → {each.after * factor:.3g} {unit} ({output.times(each.ratio)})"
        output.field("time", f"signature '{each.entry}': {text}" if each.entry else text)


def _print_layers(result: Verification) -> None:
    if result.layers is None or not result.runs:
        return
    layers = result.layers
    accepted = sum(d.difference.accepted for d in layers.diverging)
    within = f" ({accepted} within what is accepted)" if accepted else ""
    outcome = f"{len(layers.diverging)} differ{within}, the first:" if layers.first else "all equal"
    steps = f" and {layers.steps} results within them" if layers.steps else ""
    output.field("layers", f"{layers.compared} of {layers.results} operator results{steps} compared, {outcome}")
    if layers.missing and not layers.steps:  # which have what these are computed from
        listed = ", ".join(layers.missing[:SHOWN])
        more = f" and {len(layers.missing) - SHOWN} more" if len(layers.missing) > SHOWN else ""
        click.echo(f"  not compared, as the second model has no tensor of that name: {listed}{more}")
    for divergence in layers.diverging[:SHOWN]:
        click.echo(f"  {divergence}")
    if len(layers.diverging) > SHOWN:
        click.echo(f"  and {len(layers.diverging) - SHOWN} more")


@click.command(
    help="""Find the smallest part of MODEL whose conversion still differs, fails or crashes.

    Parts are operators of the model on the tensors that they have there, recorded in the interpreter. The part and its
    inputs are written, ready for a bug report. Exit code 5 if there is one, 0 if the model's conversion does not fail.
    """
)
@click.argument("model", type=FILE)
@click.option(
    "-o",
    "--output",
    "destination",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the part goes (.tflite), with its inputs next to it (.npz). By default ./MODEL.reduced.tflite.",
)
@target_option(f"What the conversion is for: {TARGETS}")
@conversion_options("mac", "fallback", "kernel_set")
@click.option(
    "--inputs", type=DATA, metavar="DATA", help="Run on these samples (docs/data.md) instead of random inputs."
)
@seeds_option(2)
@timeout_option(120.0, "Seconds that a conversion or run may take.")
@click.option("--force", is_flag=True, help="Replace existing files; what is read is never replaced.")
@json_option()
def reduce(
    model: Path,
    destination: Path | None,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    import tflq
    from tflq.tools.debug.reduction import JSON_VERSION

    path = destination or Path(f"{model.stem}.reduced.tflite")
    with output.progress(f"reducing {model}", silent=as_json):
        reduction = tflq.reduce(model, path, **options)
    if reduction is None:
        nothing = {"format": "tflq.reduction", "version": JSON_VERSION, "kind": ""}
        output.print_json(nothing) if as_json else click.echo(_NO_FAILURE.format(model))
        return
    arrays = path.with_suffix(".npz")
    line = _line(path, arrays, options, verifies=reduction.kind in ("differs", "dies", "does not run"))
    if as_json:
        output.print_json(reduction.to_json() | {"model": str(path), "inputs": str(arrays), "command": line})
    else:
        print_reduction(reduction, path, arrays, line)
    click.get_current_context().exit(DIFFERS)


_NO_FAILURE: Final = "{}: nothing to reduce: its conversion neither fails nor differs from it on these inputs"


def print_reduction(reduction: Reduction, path: Path, arrays: Path, line: str) -> None:
    output.heading(f"{reduction.source}: {reduction.kind}")
    output.field("operators", f"{len(reduction.operators)} of {reduction.total}")
    for place in reduction.operators:
        click.echo(f"  {place}")
    output.field("found in", f"{reduction.seconds:.1f} s, {reduction.tried} parts tried")
    output.field("written to", f"{path}, inputs {arrays}")
    output.field("try it", line)


def _line(path: Path, arrays: Path, options: dict[str, Any], *, verifies: bool) -> str:
    """One line that shows the failure again."""
    from tflq.formats.backend import of_target
    from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET

    converted = path.with_suffix(f".converted.{of_target(options['target'], static=True).suffixes[0]}")
    words = [
        word
        for name, usual in (("target", None), ("mac", "integer"), ("fallback", "float"), ("kernel_set", DEFAULT_SET))
        if options[name] != usual
        for word in (f"--{name.replace('_', '-')}", str(options[name]))
    ]
    convert = shlex.join(["tflq", "convert", str(path), str(converted), "--force", *words])
    if not verifies:
        return convert
    return f"{convert} && {shlex.join(['tflq', 'verify', str(path), str(converted), '--inputs', str(arrays)])}"


@click.command(
    help="""Convert MODEL and find the pass that first changed a result.

    The model after each pass is run on the same inputs: by the interpreter as it was read and on the target's kernels,
    by tflq's evaluator in between. Exit code 5 if the results of the end differ: then the pass is named, the rule and
    the operator, and the first tensor that shows it. 0 if they do not.
    """
)
@click.argument("model", type=FILE)
@target_option(f"What the conversion is for: {TARGETS}")
@conversion_options("mac", "fallback", "semantics", "kernel_set", "state", "signature", "batch", "shapes")
@seeds_option(1)
@seed_option()
@tolerance_options(1e-6, 1e-5)
@timeout_option(600.0)
@json_option()
def bisect(model: Path, *, as_json: bool, **options: Any) -> None:
    import tflq

    with output.progress(f"bisecting {model}", silent=as_json, total=0) as show:
        result = tflq.bisect(model, progress=show, **options)
    output.print_json(result.to_json()) if as_json else print_bisection(result)
    click.get_current_context().exit(0 if result.finding is None else DIFFERS)


def print_bisection(result: Bisection) -> None:
    output.heading(result.source)
    output.field("original run by", result.interpreter)
    output.field("inputs", ", ".join(result.sets))
    output.line()
    words = {True: ("equal", "green"), False: ("differs", "red"), None: ("not run", "dim")}
    rows: list[list[Cell]] = [[str(s.number), s.name, s.by or "-", words[s.equal], s.note] for s in result.steps]
    output.table(["pass", "name", "run by", "results", ""], rows, right=(0,))
    output.line()
    if result.finding is None:
        output.line(("no pass changed a result", "bold green"))
    else:
        _print_finding(result.finding)


def _print_finding(finding: Finding) -> None:
    before = f", or one before it ({', '.join(finding.unchecked)})" if finding.unchecked else ""
    output.line(("first changed by: ", "bold red"), (f"pass {finding.number}, {finding.name}{before}", "bold"))
    if finding.rule:
        output.field("rule", finding.rule)
    if finding.operator is not None:
        subgraph = f"subgraph {finding.subgraph}, " if finding.subgraph else ""
        output.field("operator", f"{subgraph}operator {finding.operator} ({finding.opcode})")
    if finding.tensor:
        output.field("first tensor", f"'{finding.tensor}' on inputs '{finding.inputs}'")
    output.field("difference", finding.difference)
    for label, names in (("it was", finding.before), ("it is now", finding.after)):
        if names:
            output.field(label, ", ".join(names))
    if finding.path:
        output.field("converted", finding.path + (f": {finding.reason}" if finding.reason else ""))
    if finding.warning:
        output.field("warning", "; ".join(filter(None, (finding.warning, finding.remedy))))
