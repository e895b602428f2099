"""Write the table of README.md's "What it costs": run time, file and arena of converted networks, compared
with the original's.

python benchmarks/costs.py [MODEL.tflite | FOLDER ...]

Without arguments it takes the networks of models/ and, where they are, those of the zoo (in `TFLQ_CORPUS`, or in
`shared` next to the checkout). A network has at least five operators, most of them quantized. Each is converted
to each form; times are those of `tflq.verify(..., time=True)`, file and arena those of `Conversion.cost`. A row per
network goes to standard output, and the table between the marks of README.md.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from scripts.marked import replaced  # noqa: E402

README = ROOT / "README.md"
LEAST_OPERATORS: Final = 5
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "`integer`, the default": {},
    "`--mac float32`": {"mac": "float32"},
    "`--target kernels`": {"target": "kernels"},
    "TOSA": {"format": "tosa"},
}


class Ratios(NamedTuple):
    """What a form of a network takes, as multiples of the original's; None where it is not known."""

    time: float | None
    file: float | None
    arena: float | None


def networks(given: Sequence[Path]) -> Iterator[Path]:
    """The files that may be networks."""
    corpus = Path(os.environ.get("TFLQ_CORPUS", ROOT.parent / "shared"))
    for path in given or (ROOT / "models", corpus / "zoo"):
        yield from sorted(path.rglob("*.tflite")) if path.is_dir() else [path]


def measured(model: Path) -> dict[str, Ratios] | str:
    """The ratios of each form of a network, or why it has none."""
    found: dict[str, Ratios] = {}
    for name, options in FORMS.items():
        try:
            conversion = converted(model, options)
        except tflq.TflqError as error:
            if not found:
                return f"not converted: {error}".splitlines()[0]
            continue
        cost, counts = conversion.cost, conversion.report.counts
        if not found and (sum(counts.values()) < LEAST_OPERATORS or counts["integer"] <= sum(counts.values()) / 2):
            return "no quantized network"
        tflite = conversion.format == "tflite"
        found[name] = Ratios(time_ratio(model, conversion.data) if tflite else None, cost.file_ratio, cost.arena_ratio)
    return found


def converted(model: Path, options: Mapping[str, Any]) -> tflq.Conversion:
    """A network in one form; for a form without open dims, of batch 1 where the model leaves it open."""
    try:
        return tflq.convert(model, **options)
    except tflq.TflqError as reason:
        try:
            return tflq.convert(model, **options, batch=1)
        except tflq.OptionError:
            raise reason from None  # it has no open batch


def time_ratio(model: Path, result: bytes) -> float | None:
    """How many times as long a run takes, in the first entry. What the models give is not looked at."""
    verification = tflq.verify(
        model,
        result,
        seeds=1,
        resolver="default",
        interface=False,
        max_lsb=math.inf,
        atol=math.inf,
        time=True,
    )
    return verification.time[0].ratio if verification.time else None


def block(rows: Sequence[Mapping[str, Ratios]]) -> str:
    """The table: of each form and measure the median, and the worst."""
    lines = [
        f"What a result takes compared with its original: the median of {len(rows)} quantized networks, and the worst.",
        "Times are those of TFLite's default kernels (XNNPACK) on one thread; `tflq verify --time` measures yours.",
        "",
        "| form | time of a run | file | arena (memory while it runs) |",
        "|---|---|---|---|",
    ]
    for name in FORMS:
        of_form = [row[name] for row in rows if name in row]
        cells = [_cell(getattr(ratios, measure) for ratios in of_form) for measure in Ratios._fields]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines) + "\n"


def _cell(ratios: Iterable[float | None]) -> str:
    from tflq.cli.output import times

    known = [ratio for ratio in ratios if ratio is not None]
    return f"{times(median(known))}, worst {times(max(known))}" if known else "its compiler's"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    rows: list[Mapping[str, Ratios]] = []
    for model in networks(parser.parse_args().models):
        found = measured(model)
        if isinstance(found, str):
            print(f"{model.name[:48]:48} {found}", flush=True)
            continue
        rows.append(found)
        for name, ratios in found.items():
            cells = (f"{'-' if ratio is None else f'{ratio:.2f}':>8}" for ratio in ratios)
            print(f"{model.name[:48]:48} {name:24} {' '.join(cells)}", flush=True)
    made = block(rows)
    README.write_text(replaced(README.read_text(encoding="utf-8"), "costs", made), encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
