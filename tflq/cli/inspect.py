"""`tflq inspect`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.options import TARGETS, json_option, target_option
from tflq.cli.output import MODEL, Cell, name_of, source
from tflq.cli.report import COLOURS, arena, print_verdict, types, warnings

if TYPE_CHECKING:
    from tflq.inspection import FunctionSummary, Inspection, TensorSummary
    from tflq.passes.regions.state import QuantizationState
    from tflq.report import Report

_MOST = 20
"""Operators without parameters that are printed."""


@click.command()
@click.argument("model", type=MODEL)
@click.option("--ir", is_flag=True, help="Print the model as text, large constants left out.")
@click.option("--why", is_flag=True, help="Print what a conversion does with each operator, and why.")
@target_option(f"The target that --why and --format convert for: {TARGETS}")
@json_option("Print as JSON.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["model-explorer"]),
    help="Print a file that Model Explorer opens: the graphs before conversion, in the integer form, and after.",
)
def command(model: str, target: str | None, *, ir: bool, why: bool, as_json: bool, form: str | None) -> None:
    """Show what a model holds, whether it is quantized, and what of it is not. `-` is standard input."""
    if form and (ir or why or as_json):
        raise click.UsageError("--format is a form of its own: give it without --ir, --why and --json.")
    if ir and (why or as_json):
        raise click.UsageError("--ir is a form of its own: give it without --why and --json.")
    import tflq

    inspection = tflq.inspect(source(model), target=target)
    if form or why:
        with output.progress(f"converting {name_of(model)}", silent=as_json):
            _ = inspection.explored if form else inspection.report
    if form:
        click.echo(json.dumps(inspection.explored.stages, allow_nan=False))
        if inspection.explored.refused is not None:
            raise inspection.explored.refused
    elif why:
        output.print_json(inspection.report.to_json()) if as_json else print_why(inspection.report)
    elif ir:
        click.echo(inspection.text)
    else:
        output.print_json(inspection.to_json()) if as_json else print_summary(inspection)


def print_why(report: Report) -> None:
    print_verdict(report.rows)
    output.line()
    rows: list[list[Cell]] = [
        [
            row.number,
            row.name,
            types(row.operands, row.results),
            (row.path, COLOURS[row.outcome]),
            str(row.made or "-"),
            "; ".join(filter(None, (row.reason or row.note, row.not_kernel and f"no kernel: {row.not_kernel}"))),
        ]
        for row in report.rows
    ]
    output.table(["#", "operator", "types", "path", "made", "why"], rows, right=(0, 4))
    output.warnings(warnings(report))


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
    """How far a network is quantized, in words."""
    if not state.operators:
        return "no operator computes real numbers"
    if state.full:
        return f"fully, {state.operators} operator(s)"
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
        output.field("arena", arena(function.arena))
    output.line()
    rows: list[list[Cell]] = [[opcode, taken, str(count)] for opcode, taken, count in function.operators]
    rows.append(["total", "", str(sum(count for _, _, count in function.operators))])
    output.table(["operator", "types", "count"], rows, right=(2,), total=True)


def _tensor(tensor: TensorSummary) -> str:
    shape = "*" if tensor.shape is None else "x".join("?" if d is None else str(d) for d in tensor.shape) or "scalar"
    return ", ".join(part for part in (tensor.name, f"{shape} {tensor.type}", str(tensor.quantization or "")) if part)
