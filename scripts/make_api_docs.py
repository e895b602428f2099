"""Write docs/api.md: what `import tflq` offers, from its signatures and docstrings.

python scripts/make_api_docs.py
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from tflq.bisection import Finding  # noqa: E402
from tflq.builder import Builder, Emitter  # noqa: E402
from tflq.sweep import Outcome  # noqa: E402
from tflq.verification import Layers  # noqa: E402

PAGE = ROOT / "docs" / "api.md"
HEAD = """# The Python API

What `import tflq` offers, and what its results have. Made by `scripts/make_api_docs.py` from the docstrings;
`docs/stability.md` says what stays as it is.

    import tflq

    conversion = tflq.convert("in.tflite", "out.tflite")
    print(conversion.report.counts)
    assert tflq.verify("in.tflite", "out.tflite").equal

The logger `tflq` has a line per stage (INFO) and pass (DEBUG), and what a report warns of (WARNING).
"""
ITEM = re.compile(r"^([a-z]\w*(?:, [a-z]\w*)*): ")
AGAIN = re.compile(r"(?<=[.;]) ([a-z]\w*(?:, [a-z]\w*)*): ")
REST = {
    Emitter: "what `RuleBuilder` has, too",
    Builder: "what `RuleBuilder` has, too",
    Finding: "`Bisection.finding`",
    Layers: "`Verification.layers`",
    Outcome: "what `run_sweep` returns",
}


def page() -> str:
    """The page's text."""
    names = [name for name in tflq.__all__ if not name.startswith("_")]
    functions = [name for name in names if inspect.isfunction(getattr(tflq, name))]
    errors = [n for n in names if inspect.isclass(getattr(tflq, n)) and issubclass(getattr(tflq, n), Exception)]
    classes = [name for name in names if name not in (*functions, *errors)]
    lines = [HEAD, "`tflq.__version__` is the version.", ""]
    lines += ["## Functions", "", *(line for n in functions for line in function(getattr(tflq, n)))]
    lines += ["## What they return", "", *(line for n in classes for line in described(getattr(tflq, n)))]
    lines += [line for kind, where in REST.items() for line in described(kind, where)]
    lines += ["## Errors", "", *(line for n in errors for line in described(getattr(tflq, n)))]
    return "\n".join(lines).rstrip() + "\n"


def function(which: Any) -> Iterator[str]:
    """Its signature, a parameter a line, and its docstring."""
    signature = inspect.signature(which)
    yield from (f"### tflq.{which.__name__}", "", "```python", f"{which.__name__}(")
    named = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            named = True
            yield "    *,"
        yield f"    {shown(parameter)},"
    yield from (f") -> {signature.return_annotation}", "```", "")
    yield from text(which)


def shown(parameter: inspect.Parameter) -> str:
    """A parameter as it stands in the code."""
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {parameter.annotation}{default}"


def described(kind: type, where: str = "") -> Iterator[str]:
    """A class: its docstring, and its public fields, properties and methods."""
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    yield from (f"### {kind.__name__}{f' ({bases})' if bases else ''}", "")
    if where:
        yield from (f"{where[:1].upper()}{where[1:]}.", "")
    yield from text(kind)
    rows = [*own_fields(kind), *own_members(kind)]
    if rows:
        yield from ("| | |", "|---|---|", *rows, "")


def own_fields(kind: type) -> Iterator[str]:
    """A row for each public field."""
    if is_dataclass(kind):
        yield from (row(f"{each.name}: {each.type}") for each in fields(kind) if not each.name.startswith("_"))


def own_members(kind: type) -> Iterator[str]:
    """A row for each public property and method of the class."""
    for name, member in vars(kind).items():
        if isinstance(member, (property, cached_property)):
            found = member.fget if isinstance(member, property) else member.func
        else:
            found = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(found):
            continue
        signature = inspect.signature(found)
        called = name
        if not isinstance(member, (property, cached_property)):
            called += f"({', '.join(map(shown, list(signature.parameters.values())[1:]))})"
        yield row(f"{called} -> {signature.return_annotation}", inspect.getdoc(found) or "")


def row(code: str, said: str = "") -> str:
    """A row of a table: a name with its type, and what it is."""
    cells = (cell.replace("|", "\\|") for cell in (code, " ".join(said.split())))
    return "| `{}` | {} |".format(*cells)


def text(which: Any) -> Iterator[str]:
    """A docstring as Markdown: lines that begin with the name of a field or a parameter become a list."""
    for paragraph in (inspect.getdoc(which) or "").split("\n\n"):
        lines: list[str] = []
        for line in paragraph.splitlines():
            if ITEM.match(line):
                lines.append(ITEM.sub(lambda m: f"- `{m[1]}`: ", line))
            elif lines and lines[-1].startswith("- "):
                lines[-1] += " " + line.strip()
            else:
                lines.append(line)
        yield from (*(part for line in lines for part in items_of(line)), "")


def items_of(line: str) -> list[str]:
    """An item in which fields follow each other, as one item for each."""
    return AGAIN.sub(r"\n- `\1`: ", line).split("\n") if line.startswith("- `") else [line]


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
