"""Commands that show a model: `tflq inspect` its contents, `tflq ops` the outcome for each operator of a conversion.

`tflq opt` prints a model as text, before or after passes.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from tflq.base.errors import OptionError, Reason, operators
from tflq.base.files import check_outputs, replace_file
from tflq.base.tables import Cell
from tflq.cli import output
from tflq.cli.options import KERNEL_SET, TARGETS, conversion_options, json_option, target_option
from tflq.cli.output import MODEL, name_of, source, stream_or_path

if TYPE_CHECKING:
    from tflq.tools.coverage import CoverageRow
    from tflq.tools.inspect import FunctionSummary, Inspection, TensorSummary
    from tflq.tools.quantize.regions.state import QuantizationState


_MOST = 20
"""Operators without parameters that are printed."""


@click.command(help="Show what a model holds, whether it is quantized, and what of it is not. `-` is standard input.")
@click.argument("model", type=MODEL)
@click.option("--ir", is_flag=True, help="Print the model as text, large constants left out.")
@click.option("--why", is_flag=True, help="Print what a conversion does with each operator, and why.")
@click.option("--tensors", is_flag=True, help="Print every tensor: number, name, type, parameters.")
@target_option(f"The target that --why and --format convert for: {TARGETS}")
@conversion_options("kernel_set")
@click.option(
    "--against",
    type=KERNEL_SET,
    metavar="NAME",
    help="Print the operators that compute something else under this kernel set than under --kernel-set.",
)
@json_option("Print as JSON.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["model-explorer"]),
    help="Print a file that Model Explorer opens: the graphs before conversion, in the integer form, and after.",
)
def inspect(
    model: str,
    target: str | None,
    kernel_set: str,
    against: str | None,
    *,
    ir: bool,
    why: bool,
    tensors: bool,
    as_json: bool,
    form: str | None,
) -> None:
    if form and (ir or why or tensors or as_json):
        raise click.UsageError("--format is a form of its own: give it without --ir, --why, --tensors and --json.")
    if against and (ir or why or tensors or form):
        raise click.UsageError("--against is a form of its own: give it without --ir, --why, --tensors and --format.")
    if ir + why + tensors > 1 or (ir and as_json):
        raise click.UsageError("--ir, --why and --tensors are forms of their own: give one; --ir without --json.")
    import tflq

    inspection = tflq.inspect(source(model), target=target, kernel_set=kernel_set)
    if form or why:
        from tflq.cli.conversion_report import print_why

        with output.progress(f"converting {name_of(model)}", silent=as_json):
            _ = inspection.explored if form else inspection.report
    if form:
        click.echo(json.dumps(inspection.explored.stages, allow_nan=False))
        if inspection.explored.refused is not None:
            raise inspection.explored.refused
    elif against:
        _print_against(inspection, against, as_json=as_json)
    elif why:
        output.print_json(inspection.report.to_json()) if as_json else print_why(inspection.report)
    elif tensors:
        _print_tensors(inspection, as_json=as_json)
    elif ir:
        click.echo(inspection.text)
    else:
        output.print_json(inspection.to_json()) if as_json else print_summary(inspection)


def _print_against(inspection: Inspection, other: str, *, as_json: bool) -> None:
    rows = inspection.against(other)
    if as_json:
        document = {"format": "tflq.kernel_sets", "version": JSON_VERSION, "source": inspection.module.source}
        listed = [{"subgraph": f, "operator": n, "opcode": name} for f, n, name in rows]
        output.print_json({**document, "kernel_set": inspection.kernel_set, "against": other, "operators": listed})
        return
    verb = "differs" if len(rows) == 1 else "differ"
    output.heading(f"{operators(len(rows))} {verb} under {other} from {inspection.kernel_set}")
    output.table(["subgraph", "#", "operator"], [[str(f), str(n), name] for f, n, name in rows], right=(0, 1))


def _print_tensors(inspection: Inspection, *, as_json: bool) -> None:
    if as_json:
        document = {"format": "tflq.tensors", "version": JSON_VERSION, "source": inspection.module.source}
        output.print_json({**document, "subgraphs": [list(map(asdict, each)) for each in inspection.tensors]})
        return
    for index, (function, tensors) in enumerate(zip(inspection.module.functions, inspection.tensors, strict=True)):
        output.heading(f"subgraph {index}" + (f": {function.name}" if function.name else ""))
        rows: list[list[Cell]] = [
            [str("" if t.number is None else t.number), t.name, t.role, _shaped(t), str(t.quantization or "")]
            for t in tensors
        ]
        output.table(["#", "name", "role", "type", "quantization"], rows, right=(0,))


def print_summary(inspection: Inspection) -> None:
    summary, state = inspection.summary, inspection.quantization
    output.heading(summary.source)
    output.field("size", f"{output.size(inspection.bytes)}, constants {output.size(summary.constants)}")
    if state is not None:
        output.field("quantized", _extent(state))
    if summary.description:
        output.field("description", summary.description)
    for signature in summary.signatures:
        names = f"({', '.join(signature.inputs)}) -> ({', '.join(signature.outputs)})"
        output.field("signature", f"{signature.key}{names}, subgraph {signature.subgraph}")
    if summary.metadata:
        output.field("metadata", ", ".join(summary.metadata))
    for index, function in enumerate(summary.functions):
        output.line()
        output.heading(f"subgraph {index}" + (f": {function.name}" if function.name else ""))
        _print_function(function)
    if state is not None and state.quantized and not state.full:
        _print_unquantized(state)
    output.warnings(summary.warnings)


def _extent(state: QuantizationState) -> str:
    """Quantized part of a network, in words."""
    if not state.operators:
        return "no operator computes real numbers"
    if state.full:
        return f"fully, {operators(state.operators)}"
    what = "partly" if state.quantized else "no"
    return f"{what}, {state.quantized} of {state.operators} operators"


def _print_unquantized(state: QuantizationState) -> None:
    """The operators that lack parameters, with what has none."""
    lacking: dict[tuple[int, int, str], list[str]] = {}
    for each in state.unquantized:
        shown = f"{each.port} ({each.tensor})" if each.tensor else each.port
        lacking.setdefault((each.subgraph, each.operator, each.opcode), []).append(shown)
    rows: list[list[Cell]] = [
        [str(subgraph), str(operator), opcode, ", ".join(ports)]
        for (subgraph, operator, opcode), ports in list(lacking.items())[:_MOST]
    ]
    output.line()
    output.table(["subgraph", "#", "operator", "not quantized"], rows, right=(0, 1))
    if len(lacking) > _MOST:
        output.line(f"and {len(lacking) - _MOST} more operators: --json has all")


def _print_function(function: FunctionSummary) -> None:
    for kind, tensors in (("input", function.inputs), ("output", function.outputs)):
        for tensor in tensors:
            output.field(kind, _tensor(tensor))
    if function.arena is not None:
        from tflq.cli.conversion_report import arena

        output.field("arena", arena(function.arena))
    output.line()
    rows: list[list[Cell]] = [[opcode, signature, str(count)] for opcode, signature, count in function.operators]
    rows.append(["total", "", str(sum(count for _, _, count in function.operators))])
    output.table(["operator", "types", "count"], rows, right=(2,), total=True)


def _shaped(tensor: TensorSummary) -> str:
    shape = "*" if tensor.shape is None else "x".join("?" if d is None else str(d) for d in tensor.shape) or "scalar"
    return f"{shape} {tensor.type}"


def _tensor(tensor: TensorSummary) -> str:
    return ", ".join(filter(None, (tensor.shown_name, _shaped(tensor), str(tensor.quantization or ""))))


JSON_VERSION = 2
_OF_PATHS = {"integer": "green", "table": "green", "float": "yellow", "refused": "red"}


@click.command(
    help="""Show what becomes of each operator, on each signature.

    The first table of a target takes half a minute to a minute of a core, with --operator its share of that. Then it is
    in the folder of caches, ~/.cache/tflq.
    """
)
@target_option(
    "integer (the default), kernels, portable, tflm, tosa, ethos-u55, ethos-u65, ethos-u85, onnx, qdq, or a target "
    "file.",
    metavar="NAME|PATH.toml",
)
@click.option("--operator", metavar="NAME", help="Only operators whose name contains this.")
@click.option(
    "--fresh",
    is_flag=True,
    help="Compute the table anew, whatever the folder of caches has.",
)
@json_option("Print as JSON.")
def ops(target: str | None, operator: str | None, *, fresh: bool, as_json: bool) -> None:
    from tflq.formats.backend import of_target
    from tflq.formats.options import options_from_arguments
    from tflq.tools.coverage.cached import rows_of

    form = of_target(target, static=True)
    options = options_from_arguments(form.name, target)
    with output.progress("asking the engine", silent=as_json):
        rows = rows_of(target, options, operator or "", fresh=fresh)
    name = options.kernels.name if form.builtins else str(target)
    if not rows:
        raise OptionError(
            Reason(f"no operator's name contains '{operator}'", value=operator, remedy="tflq ops lists all")
        )
    if as_json:
        document = {"format": "tflq.ops", "version": JSON_VERSION, "target": name}
        output.print_json({**document, "rows": [asdict(row) for row in rows]})
        return
    if output.width() is not None:
        output.table(["operator", "path", "why"], list(_by_operator(rows)))
    else:
        output.table(
            ["operator", "types", "path", "why"], [[row.operator, _signature(row), *_outcome(row)] for row in rows]
        )
    counts = Counter(row.path for row in rows)
    output.field("rows", f"{len(rows)}: " + ", ".join(f"{count} {path}" for path, count in counts.items()))


def _by_operator(rows: Sequence[CoverageRow]) -> Iterator[list[Cell]]:
    """A line for each operator, then its signatures: a table that 80 columns hold."""
    for name, group in groupby(rows, lambda row: row.operator):
        yield [(name, "bold"), "", ""]
        for row in group:
            yield [f"  {_signature(row)}".rstrip(), *_outcome(row)]


def _signature(row: CoverageRow) -> str:
    from tflq.cli.conversion_report import types

    sides = types(row.operands, row.results) if row.results or row.operands else ""
    return ", ".join(filter(None, (sides, row.detail)))


def _outcome(row: CoverageRow) -> list[Cell]:
    return [(row.path, _OF_PATHS.get(row.path, "")), row.reason or row.warning]


RULES = output.PathPlace(exists=True, dir_okay=False)


def complete_passes(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the last pass of `-p`."""
    from tflq.tools.opt import named_passes

    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + name) for name in sorted(named_passes()) if name.startswith(last)]


def list_passes(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Prints the passes and ends."""
    if not value or context.resilient_parsing:
        return
    from tflq.tools.opt import described, named_passes

    passes = named_passes(*map(Path, context.params.get("rules") or ()))
    output.table(["pass", "what it does", "options"], [[name, *described(passes[name])] for name in sorted(passes)])
    context.exit()


@click.command(
    help="""Run passes on a model, or on the text form of one, and print the text form of the result.

    Without passes it prints the model as it is. The text holds the whole model: `tflq opt` and `tflq convert` read it.
    """
)
@click.argument("file", type=MODEL)
@click.option(
    "-p",
    "--passes",
    "pipeline",
    shell_complete=complete_passes,
    help="Passes in order, such as 'legalize{target=kernels},cse,dce'.",
)
@click.option(
    "--rules",
    multiple=True,
    type=RULES,
    is_eager=True,
    help="A Python file with more passes, as its EXTENSION.",
)
@click.option(
    "-o", "--output", "destination", metavar="FILE", type=click.Path(), help="Write the text to this file instead."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists; what is read is never replaced.")
@click.option(
    "--list-passes",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=list_passes,
    help="Show the passes, what each does, and its options; then exit.",
)
def opt(file: str, pipeline: str | None, rules: tuple[Path, ...], destination: str | None, *, force: bool) -> None:
    check_outputs([("-o", destination)], inputs=(stream_or_path(file, 0), *rules), force=force)
    from tflq.formats.sources import read_any_form
    from tflq.ir.text.printer import print_module
    from tflq.tools.opt import named_passes, parse_pipeline
    from tflq.transforms.pass_manager import Summaries

    passes = parse_pipeline(pipeline, named_passes(*rules)) if pipeline is not None else None
    module = read_any_form(source(file))
    if passes is not None:
        with output.progress(f"running passes on {name_of(file)}"):
            module = passes.run(module).module
        for line in () if output.quiet() else Summaries.of(module):
            output.line(line, err=True)
    if destination is None:
        sys.stdout.write(print_module(module))
    else:
        replace_file(destination, [print_module(module).encode()], force=force)
