"""`tflq ops`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from tflq.cli import output

__all__ = ["command"]

JSON_VERSION = 1


@click.command()
@click.option(
    "--target", metavar="NAME|PATH.toml", help="integer (the default), kernels, tosa, or a file of TFLite kernels."
)
@click.option("--operator", metavar="NAME", help="Only operators whose name contains this.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(target: str | None, operator: str | None, *, as_json: bool) -> None:
    """Show what becomes of each operator, on each signature."""
    from tflq.coverage import coverage
    from tflq.targets import load_target
    from tflq.tosa.target import load_target as load_tosa

    chosen = load_tosa() if target == "tosa" else load_target(target)
    name = getattr(chosen, "name", "tosa")
    with output.progress("asking the engine", quiet=as_json):
        rows = list(coverage(chosen, operator or ""))
    if not rows:
        raise click.UsageError(f"no operator's name contains '{operator}'")
    if as_json:
        document = {"format": "tflq.ops", "version": JSON_VERSION, "target": name}
        output.print_json({**document, "rows": [asdict(row) for row in rows]})
        return
    table = [
        [
            row.operator,
            ", ".join(filter(None, (f"{', '.join(row.operands)} -> {', '.join(row.results)}", row.detail))),
            row.path,
            row.reason or row.warning,
        ]
        for row in rows
    ]
    output.table(["operator", "types", "path", "why"], table)
    counts = Counter(row.path for row in rows)
    output.field("rows", f"{len(rows)}: " + ", ".join(f"{count} {path}" for path, count in counts.items()))
