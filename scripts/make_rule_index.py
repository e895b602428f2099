"""Writes tflq/legalize/rule_index.py from the `@rule` decorators: the rules of each operator, in order.

python scripts/make_rule_index.py
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tflq.legalize  # noqa: E402
from tflq.legalize.rule import DECLARED  # noqa: E402

INDEX = ROOT / "tflq" / "legalize" / "rule_index.py"
HEAD = '''"""The rules of each operator, in the order in which they are tried. Made by scripts/make_rule_index.py."""

from __future__ import annotations

from typing import Final

__all__ = ["RULES"]

RULES: Final[dict[str, tuple[str, ...]]] = {
'''


def collected() -> dict[str, tuple[str, ...]]:
    """The rules of each operator, as declared. ValueError if two rules of an operator have the same order."""
    for found in pkgutil.walk_packages(tflq.legalize.__path__, "tflq.legalize."):
        import_module(found.name)
    rules: dict[str, dict[int, str]] = {}
    for function, kinds, order in DECLARED:
        if not function.__module__.startswith("tflq.legalize."):
            continue
        place = f"{function.__module__.removeprefix('tflq.legalize.')}:{function.__name__}"
        for kind in kinds:
            known = rules.setdefault(kind.op_name, {}).setdefault(order, place)  # type: ignore[attr-defined]
            if known != place:
                raise ValueError(f"{known} and {place} are both rules of {kind.__name__} with order {order}")
    return {name: tuple(rules[name][order] for order in sorted(rules[name])) for name in sorted(rules)}


def written() -> str:
    """The text of the index."""
    lines = [f"    {name!r}: {places!r},\n" for name, places in collected().items()]
    text = HEAD + "".join(lines) + "}\n"
    command = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(INDEX), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    INDEX.write_text(written(), encoding="utf-8")
