"""Count names and docstrings that CONTRIBUTING.md forbids: `tests/test_words.py` holds each number to a limit.

    python scripts/words.py [--list]     the counts; with --list each place, too

A limit only falls: lower it in LIMITS when a folder is done.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PARTICIPLES: Final = frozenset(
    ["made", "found", "own", "kept", "stated", "held", "taken", "given", "asked", "said", "told", "met", "lost"]
)
OPENINGS: Final = re.compile(r"(What|The same|Those|That|As|How|Which)\b")
MOST_WORDS: Final = 25
LIMITS: Final = {"participle": 15, "opening": 0, "sentence": 1}
Place = tuple[str, int, str]
"""A file, a line, and the name or the docstring."""


def _names(node: ast.AST) -> Iterator[str]:
    """Names that a node binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name


def _faults(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The kind of each fault of a node, and its text."""
    for name in _names(node):
        parts = {part.lower() for part in re.split(r"_|(?<=[a-z])(?=[A-Z])", name) if part}
        if parts & PARTICIPLES:
            yield "participle", name
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and (text := ast.get_docstring(node)):
        if OPENINGS.match(text):
            yield "opening", text.partition("\n")[0]
        for sentence in re.split(r"(?<=[.:])\s", text.partition("\n\n")[0]):
            if len(sentence.split()) > MOST_WORDS:
                yield "sentence", sentence


def places(folder: Path = ROOT / "tflq") -> dict[str, list[Place]]:
    """The places of each kind of fault, below a folder."""
    found: dict[str, list[Place]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for kind, text in _faults(node):
                found[kind].append((path.relative_to(ROOT).as_posix(), getattr(node, "lineno", 1), text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print each place")
    arguments = parser.parse_args()
    for kind, found in places().items():
        print(f"{len(found):5} {kind}, at most {LIMITS[kind]}")
        if arguments.list:
            print(*(f"  {file}:{line}: {text}" for file, line, text in found), sep="\n")


if __name__ == "__main__":
    main()
