"""The site's page of the outcome of a conversion for each operator, on each signature, for three targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tflq.formats.backend import of_target
from tflq.formats.options import options_from_arguments
from tflq.tools.coverage import PATHS, CoverageRow
from tflq.tools.coverage.cached import rows_of

TARGETS: Final = ("integer", "kernels", "tosa")
HEAD: Final = """# Coverage

What becomes of each operator on each signature, as `tflq ops` says for the target at hand. Each row is a small model
that the engine was asked about, and a test converts and runs it.

- **kept**: the target's own kernel, or float and shape arithmetic without quantized tensors
- **integer**: plain integers, equal to the reference kernel bit for bit; where it has none, the real result, rounded
- **table**: the same, as a table of all values
- **float**: dequantized, computed in float, requantized: within one count of the real result
- **refused**: not converted, with the reason
- **none**: the operator has no quantized signature

Targets: `integer` and `kernels` are of TFLite files; `tosa` is TOSA 1.0, where "+ float" says that the result needs the
floating-point profile, be it for tensors of floats alone. A target's reason stands in brackets where it is its own.

Types: `qi8` one scale per tensor, `qi8/axis0` one per index of an axis, `qi4/blocks` one per block;
`f32` and `i32` plain.

`tflq ops --json` gives the rows of one target: a document of `format` "tflq.ops", `version` 2 and `target`, whose
`rows` have

- `operator`, and the types of `operands` and `results` as above
- `detail`: what else tells the row from others: scales, options
- `path`: one of the words above; `reason` for it, and a `warning` where the result may surprise
- `needs`: profiles and extensions of TOSA that the result takes
- `key`: a name that stays the same when types are written otherwise
"""


def page() -> str:
    """The page's text."""
    return page_of({name: table_of(name) for name in TARGETS})


def table_of(target: str) -> Sequence[CoverageRow]:
    """The rows of a target: those of the user's cache (`tflq ops`), if it has them."""
    return rows_of(target, options_from_arguments(of_target(target, static=True).name, target))


def page_of(tables: Mapping[str, Sequence[CoverageRow]]) -> str:
    """The page of the rows of each target."""
    lines = [HEAD, f"| rows | {' | '.join(PATHS)} |", "|---" * (1 + len(PATHS)) + "|"]
    for name, rows in tables.items():
        counts = Counter(row.path for row in rows)
        lines.append(f"| {name} | {' | '.join(str(counts[path]) for path in PATHS)} |")
    lines += ["", f"| operator | types | {' | '.join(TARGETS)} | why |", "|---" * (3 + len(TARGETS)) + "|"]
    lines.extend(map(_line, zip(*tables.values(), strict=True)))
    return "\n".join(lines) + "\n"


def _line(rows: tuple[CoverageRow, ...]) -> str:
    first = rows[0]
    types = f"{', '.join(first.operands)} → {', '.join(first.results)}" if first.path != "none" else ""
    words = ", ".join(filter(None, (types, first.detail)))
    return f"| {first.operator} | {words} | {' | '.join(map(_path, rows))} | {_why(rows)} |"


def _path(row: CoverageRow) -> str:
    return f"{row.path} + float" if "pro_fp" in row.needs and row.path != "float" else row.path


def _why(rows: tuple[CoverageRow, ...]) -> str:
    """The first target's reason, and those of others that refuse what it does not."""
    first, *others = rows
    why = first.warning or (first.reason if first.path in ("float", "refused", "none") else "")
    own = [f"[{row.reason}]" for row in others if row.path == "refused" and first.path != "refused"]
    return " ".join(filter(None, (why, *dict.fromkeys(own)))).replace("|", "/").replace("\n", " ")
