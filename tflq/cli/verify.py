"""`tflq verify`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tflq.cli import output
from tflq.cli import output as talk
from tflq.cli.conversion_options import shape_option
from tflq.cli.output import FILE, Cell
from tflq.files import check_outputs, replace_file

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.conversion import Timing
    from tflq.cost import Cost
    from tflq.report import Outcome, Report, Row
    from tflq.verification.difference import Difference
    from tflq.verification.outcome import Verification


DIFFERS = 5
COLOURS = {"equal": "green", "accepted": "yellow", "differs": "red", "failed": "red"}
SHOWN = 10


@click.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option(
    "--inputs",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE.npz|FOLDER",
    help="Run on these inputs: an .npz file of arrays by name, a folder of .npz files, or one .npy file per input.",
)
@click.option("--seeds", type=click.IntRange(0), default=2, show_default=True, help="How many sets of random inputs.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the random inputs.")
@click.option("--layers", is_flag=True, help="Compare operator results too: where do the models begin to differ?")
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
    default="reference",
    show_default=True,
    help="The interpreter's kernels: reference, optimized, or with its default delegate.",
)
@click.option(
    "--interface/--no-interface",
    default=True,
    help="Compare names, types, quantization and signatures, or only what the outputs hold, by position.",
)
@click.option(
    "--max-lsb", type=click.FloatRange(0), default=0, help="Accept integers that differ by at most this many counts."
)
@click.option(
    "--atol",
    type=click.FloatRange(0),
    help="Accept floats that differ by at most this ... Without both: 0, with a TOSA file what TOSA leaves open.",
)
@click.option("--rtol", type=click.FloatRange(0), help="... plus this share of the original's value.")
@click.option(
    "--report",
    type=FILE,
    metavar="FILE.json",
    help="The report of the conversion: operators that it warns of as not reproduced may differ.",
)
@click.option(
    "--time",
    is_flag=True,
    help="Measure what a run takes in each: in turns, with the default kernels and delegate, on one thread.",
)
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds that one run may take.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(a: Path, b: Path, *, as_json: bool, page: Path | None, force: bool, **options: Any) -> None:
    """Run models A and B, in the interpreter or (TOSA files) on the TOSA reference model, and compare them.

    Both get the same inputs: random ones, then all minimum, all maximum and all zero point. Compared are outputs,
    names, shapes, types, quantization, signatures and metadata. Exit code 5 if anything differs by more than is
    accepted, or a model does not run.
    """
    if page is not None and not options["layers"]:
        raise click.UsageError("--html shows operator results: give it with --layers.")
    if page is not None:
        from tflq.verification.inputs import files_of

        read = a, b, options["report"], *files_of(options["inputs"])
        check_outputs([("--html", page)], inputs=read, force=force)
    import tflq

    with talk.progress_talk("opening the models", silent=as_json, total=0) as display:

        def show(what: str, done: int, total: int) -> None:
            if display is not None:
                display.update(display.task_ids[0], description=what, completed=done, total=total)

        result = tflq.verify(a, b, progress=show, **options)
    if page is not None:
        from tflq.pages.layers import layers_page

        replace_file(page, [layers_page(a, result).encode()], force=force)
    output.print_json(result.to_json()) if as_json else print_verification(result)
    click.get_current_context().exit(0 if result.passed else DIFFERS)


def print_verification(result: Verification) -> None:
    output.heading(f"{result.a} <> {result.b}")
    if result.interpreter:
        output.field("run by", f"{result.interpreter}, {result.resolver} kernels")
    if result.cut:
        listed = ", ".join(f"'{name}'" for name in result.cut)
        output.field("cut", f"the second model ends at {listed} of the first: compared with its values there")
    _print_runs(result)
    for share in result.kernels:
        output.field("kernels", str(share))
    for agreement in result.top1:
        output.field("top-1", str(agreement))
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
    for failure in result.failures:
        click.echo(click.style("failed: ", fg="red", bold=True) + failure)
    click.secho(result.verdict.upper(), fg=COLOURS[result.verdict], bold=True)


def _print_runs(result: Verification) -> None:
    made = [run for run in result.runs if not run.skipped]
    if made:
        output.field("inputs", ", ".join(dict.fromkeys(run.inputs for run in made)))
    shapes = list(dict.fromkeys(run.shapes for run in made if run.shapes))
    if len(shapes) > len({run.entry for run in made}):
        listed = [", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in each) for each in shapes]
        output.field("shapes", "; ".join(listed))
    for run in result.runs:
        if run.skipped:
            where = f"signature '{run.entry}', " if run.entry else ""
            what = f"{where}inputs '{run.inputs}': the original does not run: {run.skipped}"
            output.warnings([f"{what}; give it others with --inputs"])
    if result.tolerance.ulps and any(found.unit == "absolute" for found in result.outputs.values()):
        far = f"{result.tolerance.ulps:g} float32 ulps of their tensor's largest value"
        output.field("tolerance", f"floats up to {far}: TOSA does not say them to the last bit")
    rows = [_row(f"{entry}: {name}" if entry else name, found) for (entry, name), found in result.outputs.items()]
    if rows:
        click.echo()
        head = ["output", "elements", "differing", "largest", "mean", "cosine", "SNR"]
        output.table(head, rows, right=(1, 2, 3, 4, 5, 6))
        click.echo()


def _row(name: str, found: Difference) -> list[str]:
    differing = f"{found.differing} ({found.share:.2%})"
    if found.problem:
        return [name, str(found.elements), differing, found.problem, "", "", ""]
    unit = f" {found.unit}" if found.unit == "LSB" else ""
    measures = ["-" if math.isnan(x) else text for x, text in _measures(found)]
    return [name, str(found.elements), differing, f"{found.largest:.4g}{unit}", *measures]


def _measures(found: Difference) -> list[tuple[float, str]]:
    """Mean, cosine, and signal to noise, with how they are shown."""
    ratio = "∞" if math.isinf(found.snr) else f"{found.snr:.1f} dB"
    return [(found.mean, f"{found.mean:.3g}"), (found.cosine, f"{found.cosine:.6f}"), (found.snr, ratio)]


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
    output.field("layers", f"{layers.compared} of {layers.results} operator results compared, {outcome}")
    for divergence in layers.diverging[:SHOWN]:
        click.echo(f"  {divergence}")
    if len(layers.diverging) > SHOWN:
        click.echo(f"  and {len(layers.diverging) - SHOWN} more")


# What `tflq convert` and `tflq inspect --why` say of a conversion, the verdict first.


LABELS: Final = {
    "float": "computed in float",
    "kept": "kept as they are",
    "kernel": "kernels of the target",
    "unquantized": "without quantized tensors",
}
VERDICT_COLOURS: Final = {"integer": "green", "float": "yellow", "kept": "yellow", "kernel": "green", "unquantized": ""}
UNKNOWN: Final = "unknown before a run"
"""An arena that depends on the values that are computed."""
KINDS, NUMBERS = 5, 8
"""So many kinds of operators, and numbers of operators, are listed."""
COUNTS = ("integer", "float", "kept")


def verdict(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What became of the operators, a label and what it holds of each way: the integer one first."""
    ways: dict[str, list[Row]] = {}
    for row in rows:
        ways.setdefault(row.outcome, []).append(row)
    total = len(rows)
    found = [("integer", f"{len(ways.get('integer', ()))} of {total} operator{'s' * (total != 1)}")]
    return found + [(LABELS[way], f"{len(ways[way])} ({_kinds(ways[way])})") for way in LABELS if way in ways]


def print_verdict(rows: Sequence[Row], *, err: bool = False) -> None:
    lines = verdict(rows)
    surprises = {LABELS["float"], LABELS["kept"]}
    whole = surprises.isdisjoint(label for label, _ in lines)
    for label, text in lines:
        colour = "yellow" if label in surprises else "green" if whole else ""
        output.line((f"{label}: ", f"bold {colour}".strip()), (text, "bold"), err=err)


def arena(planned: Arena, before: Arena | None = None) -> str:
    """The memory of activations in words, and what it was before, if that is told."""
    if planned.bytes is None:
        text = f"{UNKNOWN}: {planned.dynamic} gives what it finds then"
    elif before is not None and before.bytes is not None:
        text = output.change(before.bytes, planned.bytes)
    else:
        text = output.size(planned.bytes)
    if before is not None and None in (before.bytes, planned.bytes) and before.bytes != planned.bytes:
        text = f"{UNKNOWN if before.bytes is None else output.size(before.bytes)} → {text}"
    if planned.bytes is not None and planned.kept:
        text += f", {output.size(planned.kept)} of it kept"
    return f"{text}, and what {', '.join(planned.beside)} needs" if planned.beside else text


def print_cost(cost: Cost, *, err: bool = False) -> None:
    """File and arena before and after, and whether an interpreter runs the result slower."""
    told = f"file {output.change(cost.bytes_in, cost.bytes_out)}"
    if cost.arena is not None:
        told += f", arena {arena(cost.arena, cost.arena_in)}"
    output.line(told, err=err)
    for text in filter(None, (cost.slower, cost.instead)):
        output.line((text, "yellow"), err=err)


def print_timings(timings: Sequence[Timing], *, err: bool = False) -> None:
    """What each pass took, and the verifier after it; those that changed nothing are dim."""
    rows: list[list[Cell]] = []
    for row in timings:
        cells = [row.name, f"{row.ms:.1f}", f"{row.verifier_ms:.1f}" if row.modified else "-"]
        cells += [str(row.ops_before), str(row.ops_after)]
        rows.append([(cell, "" if row.modified else "dim") for cell in cells])
    sums = [f"{sum(row.ms for row in timings):.1f}", f"{sum(row.verifier_ms for row in timings):.1f}"]
    ends = [str(timings[0].ops_before), str(timings[-1].ops_after)] if timings else ["-", "-"]
    rows.append([*("total", *sums), *ends])
    head = ["pass", "ms", "verifier ms", "ops before", "after"]
    output.table(head, rows, right=(1, 2, 3, 4), total=True, err=err)


def print_report(report: Report, *, err: bool = False) -> None:
    """Operators by path, then why some are not integer, then the warnings."""
    opcodes: dict[str, Counter[str]] = {}
    for row in sorted(report.rows, key=lambda row: row.name):
        opcodes.setdefault(row.name, Counter()).update({row.path: 1, "made": row.made})
    if report.rows:
        rows = [_counted(name, counts) for name, counts in opcodes.items()]
        rows.append(_counted("total", sum(opcodes.values(), Counter())))
        output.table(["operator", *COUNTS, "made"], rows, right=(1, 2, 3, 4), total=True, err=err)
        output.line(("made: operators of the result that compute those on the left", "dim"), err=err)
    if report.requirements is not None:
        output.line(err=err)
        output.field("needs", str(report.requirements), err=err)
    _print_reasons(report.rows, err=err)
    output.warnings(warnings(report), err=err)


def warnings(report: Report) -> list[str]:
    """What is of the model, then what is of operators: the same words once, however many operators they are said of."""
    by_text: dict[str, list[Row]] = {}
    for row in report.rows:
        if row.warning:
            by_text.setdefault(row.advice, []).append(row)
    of_rows = sum(map(len, by_text.values()))
    of_model = report.warnings[: len(report.warnings) - of_rows]
    return [*dict.fromkeys(of_model), *(f"{_places(rows)}: {text}" for text, rows in by_text.items())]


def _print_reasons(rows: Iterable[Row], *, err: bool) -> None:
    """Why operators are not integer, those of one kind in one row."""
    kinds: dict[tuple[Outcome, str, str], list[Row]] = {}
    for row in rows:
        if row.outcome in ("float", "kept"):
            kinds.setdefault((row.outcome, row.name, row.reason), []).append(row)
    if not kinds:
        return
    table: list[list[Cell]] = [
        [name, _numbers(alike), (path, VERDICT_COLOURS[path]), why]
        for (path, name, why), alike in sorted(kinds.items())
    ]
    output.line(err=err)
    output.table(["operator", "number", "path", "why"], table, err=err)


def types(operands: Sequence[str], results: Sequence[str]) -> str:
    """What an operator takes and gives; long runs of one type are counted: "qi8, none x3 -> qi8"."""

    def listed(names: Sequence[str]) -> str:
        runs = [(name, len(list(run))) for name, run in groupby(names)]
        return ", ".join(f"{name} x{n}" if n > 2 else ", ".join([name] * n) for name, n in runs)

    return f"{listed(operands)} -> {listed(results)}"


def _counted(name: str, counts: Counter[str]) -> list[Cell]:
    return [name, *(str(counts[key] or "-") for key in (*COUNTS, "made"))]


def _kinds(rows: Sequence[Row]) -> str:
    """Names and how often: "CONV_2D x3, ADD"; custom operators first, then what there is most of."""
    counts = Counter((not row.custom_code, row.name) for row in rows)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
    listed = [f"{name} x{count}" if count > 1 else name for (_, name), count in ordered]
    return _and_more(listed, KINDS, "kind")


def _numbers(rows: Sequence[Row]) -> str:
    """The operators' numbers, of those in other subgraphs than the first behind theirs: "3, 7, 1:0"."""
    if len(rows) == 1 and rows[0].tensor:
        return f"{rows[0].number} '{rows[0].tensor}'"
    return _and_more([row.number for row in rows], NUMBERS, "")


def _places(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return rows[0].place
    return f"{len(rows)} operators ({_kinds(rows)}), the first of them {rows[0].place}"


def _and_more(texts: Sequence[str], most: int, what: str) -> str:
    rest = len(texts) - most
    if rest <= 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {rest} more{f' {what}s' if what else ''}"
