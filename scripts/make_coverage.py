"""Write docs/coverage.md: what becomes of each operator on each signature, for the targets of `rules/`.

python scripts/make_coverage.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tflq.coverage import CoverageRow, coverage  # noqa: E402
from tflq.targets import load_target  # noqa: E402

PAGE = ROOT / "docs" / "coverage.md"
TARGETS = ("integer", "kernels")
HEAD = """# Coverage

What becomes of each operator on each signature, as `tflq ops` says for the target at hand. Made by
`scripts/make_coverage.py`: each row is a small model that the engine was asked about, and a test converts and runs it.

- **kept**: the target's own kernel, or float and shape arithmetic without quantized tensors
- **integer**: builtins on plain integers, equal to the reference kernel bit for bit
- **table**: likewise, as a table of all values
- **float**: dequantized, computed in float, requantized: within one count of the real result
- **refused**: not converted, with the reason

Types: `qi8` one scale per tensor, `qi8/axis0` one per index of an axis, `f32` and `i32` plain.
"""


def page() -> str:
    """The page's text."""
    tables = [list(coverage(load_target(name))) for name in TARGETS]
    lines = [HEAD, f"| operator | types | {' | '.join(TARGETS)} | why |", "|---" * (3 + len(TARGETS)) + "|"]
    lines.extend(map(_line, zip(*tables, strict=True)))
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _line(rows: tuple[CoverageRow, ...]) -> str:
    first = rows[0]
    types = f"{', '.join(first.operands)} → {', '.join(first.results)}"
    scales = ", other scales" if first.key.endswith("other scales") else ""
    why = first.warning or (first.reason if first.path in ("float", "refused") else "")
    return f"| {first.operator} | {types}{scales} | {' | '.join(r.path for r in rows)} | {why.replace('|', '/')} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
