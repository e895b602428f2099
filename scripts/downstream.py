"""Measure what tools downstream make of quantized networks, and of the forms that tflq gives them: writes
scripts/downstream.json, of which pages/downstream.py makes the site's page, and the summary in README.md.

    python scripts/downstream.py [FOLDER ...] [--environments FOLDER]

The networks are those of models/, and those of the folders; without folders those of the zoo, where it is (in
`TFLQ_CORPUS`, or in `shared` next to the checkout). A network has at least three operators and quantized inputs and
outputs of 8 bits, and the interpreter opens it. Each form of each runs in each tool, in the environments of
measure_target.py, beside the original on the interpreter's reference kernels. A tool that cannot be installed is
skipped, with a message and exit code 2. What is tried is in downstream_forms.py.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from benchmarks import costs  # noqa: E402
from scripts.downstream_forms import FORMS, TOOLS, Form, Row, Tool  # noqa: E402
from scripts.pages.downstream import DATA, Measurement, load, write  # noqa: E402
from scripts.target_running import (  # noqa: E402
    ENVIRONMENTS,
    REFERENCE,
    Job,
    Outcome,
    differing,
    environment,
    outcomes,
    words,
)
from tflq.ir.ops import Value  # noqa: E402
from tflq.ir.types import parameters  # noqa: E402
from tflq.tools.verify.inputs import generated_inputs  # noqa: E402

SEEDS: Final = 6
"""Random inputs; three more are all minimum, all maximum and all zero point."""
TIMED: Final = 10
"""Runs of which the fastest counts."""
LEAST_OPERATORS: Final = 3
"""Of a network."""
TYPES: Final = ("i8", "ui8")
"""Of the inputs and outputs of a network."""
WORDS: Final = 160
"""Characters that are kept of a reason."""


class Network(NamedTuple):
    """A network, its inputs, and what the reference kernels make of them."""

    path: Path
    inputs: Sequence[Mapping[str, np.ndarray]]
    want: Outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--only", metavar="TOOL", help="measure one tool, by its runner; the others stay as they are")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="folder of environments")
    a = parser.parse_args()
    tools = [tool for tool in TOOLS if a.only in (None, tool.runner)]
    pythons = {name: environment(name, a.environments) for name in dict.fromkeys(t.environment for t in tools)}
    chosen = networks([ROOT / "models", *a.folders] if a.folders else [])
    before = load(DATA.read_text(encoding="utf-8")).rows if a.only else []
    rows = [row for row in before if row.tool not in tools]
    rows += measured(chosen, [t for t in tools if pythons[t.environment]], pythons)
    rows.sort(key=lambda row: TOOLS.index(row.tool))
    write(Measurement([network.path.stem for network in chosen], rows))
    return 0 if all(pythons.values()) else 2


def networks(given: Sequence[Path]) -> list[Network]:
    """The networks among files, and what the reference kernels make of each."""
    found = [(path, inputs) for path in costs.networks(given) if (inputs := inputs_of(path))]
    jobs = [Job(path.read_bytes(), ".tflite", inputs) for path, inputs in found]
    wanted = outcomes(REFERENCE, Path(sys.executable), jobs)
    return [Network(*each, want) for each, want in zip(found, wanted, strict=True) if not isinstance(want, str)]


def inputs_of(path: Path) -> list[Mapping[str, np.ndarray]]:
    """Inputs for a network; none if it is not one."""
    try:
        graph = tflq.read(path).main
    except tflq.TflqError:
        return []
    ends = (*graph.inputs, *graph.outputs)
    if len(graph.ops) < LEAST_OPERATORS or not all(v.type.quantized and v.type.storage.name in TYPES for v in ends):
        return []
    side = [(value.name, _described(value)) for value in graph.inputs]
    return [
        dict(zip([v.name for v in graph.inputs], run, strict=True)) for _, run in generated_inputs(side, SEEDS, None)
    ]


def _described(value: Value) -> dict[str, Any]:
    """An input, as the interpreter would say it."""
    scale, zero_point = (np.reshape(array, -1).tolist() for array in parameters(value.type))
    shape = [dim or 1 for dim in value.type.shape or ()]
    return {"shape": shape, "dtype": value.type.storage.dtype.name, "scales": scale, "zero_points": zero_point}


def measured(
    chosen: Sequence[Network],
    tools: Sequence[Tool],
    pythons: Mapping[str, Path | None],
    forms: Sequence[str] = (*FORMS,),
) -> Iterator[Row]:
    """What tools make of the forms of networks."""
    wanted = [form for form in forms if any(form in tool.forms for tool in tools)]
    files = {(form, n.path): _file(FORMS[form], n.path) for form in wanted for n in chosen}
    known: dict[tuple[str, str], list[Outcome | str]] = {}
    for tool in tools:
        python = pythons[tool.environment]
        assert python is not None
        for form in (form for form in tool.forms if form in wanted):
            if (tool.runner, form) not in known:
                jobs = [
                    Job(d, FORMS[form].suffix, n.inputs) for n in chosen if isinstance(d := files[form, n.path], bytes)
                ]
                known[tool.runner, form] = outcomes(tool.runner, python, jobs, timed=TIMED)
            made = iter(known[tool.runner, form])
            for network in chosen:
                data = files[form, network.path]
                yield _row(tool, form, network, data, next(made) if isinstance(data, bytes) else data)


def _file(form: Form, path: Path) -> bytes | str:
    """A network in a form, the first entry of several; or why it has none. C is one text, with its header within."""
    if form.options is None:
        return path.read_bytes()
    try:
        files = costs.converted(path, form.options).files
        if ".h" in files:
            return re.sub(rb'#include ".*\.h"', lambda _: files[".h"], files[".c"], count=1)
        return next(iter(files.values()))
    except tflq.TflqError as error:
        first = error.reasons[0] if error.reasons else None
        where = f"operator {first.operator} ({first.opcode}): " if first and first.opcode else ""
        return f"not converted: {where}{first.what if first else str(error).splitlines()[0]}"


def _row(tool: Tool, form: str, network: Network, data: bytes | str, got: Outcome | str) -> Row:
    size = len(data) if isinstance(data, bytes) else 0
    place = tool, form, network.path.stem
    if isinstance(got, str):
        return Row(*place, words(got, WORDS), None, None, size)
    if tool.compiles:
        return Row(*place, "", None, None, size)
    found = differing(network.want, got, signless=tool.signless)
    if isinstance(found, str):
        return Row(*place, found, None, None, size)
    return Row(*place, "", found, got.seconds, size)


if __name__ == "__main__":
    sys.exit(main())
