"""Which module's import waits for which other's: read from the sources, for what holds in threads.

An import holds the lock of its module until it is complete. It waits for each module that it imports, and, before it
runs, for the packages that the module is in, unless they are imported already: those that the importing module is in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def modules() -> dict[str, Path]:
    """The files of all modules, by name."""
    found = {}
    for path in sorted((ROOT / "tflq").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def waits() -> dict[str, set[str]]:
    """For each module those that its import may wait for."""
    imports = {name: _imports(name) for name in modules()}
    graph = {name: {other for other, at_once in found if at_once} for name, found in imports.items()}
    entered: set[str] = set()
    for name, found in imports.items():
        for other, _ in found:
            around = set(_packages(other)) - {name, *_packages(name)}
            if around and not name.startswith("tflq.cli"):  # a command starts with one thread
                graph[other] |= around
                entered |= reached(graph, other)
    for name in graph.keys() - entered:  # only its package imports it, and has its own lock
        graph[name] -= set(_packages(name))
    return graph


def imports_at_once() -> dict[str, set[str]]:
    """For each module those that it imports when it is imported itself."""
    return {name: {other for other, at_once in _imports(name) if at_once} for name in modules()}


def all_imports() -> dict[str, set[str]]:
    """For each module all those that it imports: in functions and for the type checker, too."""
    trees = {name: ast.parse(path.read_text()) for name, path in modules().items()}
    return {name: {each for node in ast.walk(tree) for each in _named(node)} - {name} for name, tree in trees.items()}


def reached(graph: Mapping[str, set[str]], *names: str) -> set[str]:
    """The modules that a graph leads to, those it starts from among them."""
    found: set[str] = set()
    open_ = [*names]
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_ += graph[name]
    return found


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """A circle of a graph; empty if there is none."""
    done: set[str] = set()

    def search(name: str, path: dict[str, None]) -> list[str]:
        if name in path:
            return [*list(path)[list(path).index(name) :], name]
        if name in done:
            return []
        done.add(name)
        return next((found for each in sorted(graph[name]) if (found := search(each, path | {name: None}))), [])

    return next((found for name in graph if (found := search(name, {}))), [])


def _packages(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


@cache
def _imports(name: str) -> list[tuple[str, bool]]:
    """The modules that a module imports, and whether at once, when it is imported itself; one named in a text is
    imported late."""
    known = modules()
    found = []
    for node, at_once in _nodes(ast.parse(known[name].read_text()), at_once=True):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = _named(node)
            late = isinstance(node, ast.ImportFrom) and not at_once
            found += [(each, at_once) for each in (names[:1] if late else names) if each != name]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known:
            found.append((node.value, False))
    return found


def _named(node: ast.AST) -> list[str]:
    """The modules that an import names: the one that names are from, and those that are modules themselves."""
    known = modules()
    if isinstance(node, ast.ImportFrom) and node.module in known:
        return [node.module, *(each for alias in node.names if (each := f"{node.module}.{alias.name}") in known)]
    return [alias.name for alias in node.names if alias.name in known] if isinstance(node, ast.Import) else []


def _nodes(node: ast.AST, *, at_once: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            if "not" in ast.unparse(child.test):
                yield from _nodes(child, at_once=at_once)
            continue
        yield child, at_once
        yield from _nodes(child, at_once=at_once and not isinstance(child, ast.FunctionDef | ast.Lambda))
