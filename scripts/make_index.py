"""Writes tflq/index.py: the module that declares each op, those that say what each stage does with it, and the passes.

    python scripts/make_index.py

All modules of tflq's dialects and stages are imported; the index is what they declare and register.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

INDEX = ROOT / "tflq" / "index.py"
CORE = ("arith", "math", "tensor", "linalg", "shape", "func")
ORDER = ("tfl", "tosa", "quant", "ext", "fxpmath", "onnx", "stablehlo", *CORE, "tf")
TEXT = '''"""Which module declares each op, says what a stage does with it, has a pass. Made by `make index`.

A module of a dialect or of a stage is imported when the first op is met that it is needed for.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANY", "DIALECTS", "FOLDERS", "PASSES", "ROOMS"]

ANY: Final = "*"
"""Stands for ops from outside: the modules that have a function for a trait."""

DIALECTS: Final[dict[str, dict[str, str]]] = {{
{dialects}}}
"""The ops of each dialect, by the module that declares them."""

FOLDERS: Final = frozenset({{{folders}}})
"""Dialects whose modules are in a package of their own."""

ROOMS: Final[dict[str, dict[str, dict[str, str]]]] = {{
{rooms}}}
"""By package and dialect: the ops that each module has a function for. Rules of legalization are tried in this
order."""

PASSES: Final[dict[str, str]] = {{
{passes}}}
"""The passes of each module."""
'''


def rooms() -> list[str]:
    """The packages that declare ops or say what a stage does with them: the stages are those that stand side by side on
    the floor of `legalize`, in the import contracts."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    floors = [floor.split(" | ") for contract in linter["contracts"] for floor in contract.get("layers", ())]
    (found,) = [floor for floor in floors if "legalize" in floor]
    return ["dialects", "evaluate", *found]


def import_everything() -> None:
    """Imports all modules that declare ops or say what a stage does with them."""
    for room in rooms():
        package: ModuleType = import_module(f"tflq.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(found.name)
    import_module("tflq.named_passes")


def dialects() -> dict[str, dict[str, str]]:
    """By dialect and module, the names of the ops in the order in which they are declared."""
    from tflq.ir.core import declared

    found: dict[str, dict[str, list[str]]] = {name: {} for name in ORDER}
    for name, kind in declared().items():
        dialect, _, short = name.partition(".")
        if kind.__module__.startswith("tflq.dialects."):
            found[dialect].setdefault(kind.__module__.rpartition(".")[2], []).append(short)
    return {name: {module: " ".join(ops[module]) for module in sorted(ops)} for name, ops in found.items()}


def _joined(by_module: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {module: " ".join(names) for module, names in by_module.items()}


def stages() -> dict[str, dict[str, str]]:
    """By package and module, the ops that it has a function for, its own or that of a trait."""
    from tflq.index import ANY
    from tflq.ir.core import declared
    from tflq.registering import REGISTRIES

    found: dict[str, dict[str, set[str]]] = {}
    for registry in REGISTRIES:
        if not registry.package.startswith("tflq."):
            continue
        places = [(name, registry.place(kind)) for name, kind in declared().items()]
        for name, place in (*places, *((ANY, place) for place in registry.places_of_traits())):
            if place is not None and place.startswith(f"{registry.package}."):
                module = place.removeprefix(f"{registry.package}.")
                found.setdefault(registry.package, {}).setdefault(module, set()).add(name)
    return {p: _joined({m: sorted(found[p][m]) for m in sorted(found[p])}) for p in sorted(found)}


def rules() -> dict[str, str]:
    """The modules that have rules of legalization, with their operators. The rules of an operator are tried in the
    order of the modules, those of one module by their own. ValueError if that is not the order that they declare."""
    from tflq.legalize.rule import DECLARED

    package = "tflq.legalize."
    orders: dict[str, list[tuple[int, str]]] = {}
    for (module, kind), declared in DECLARED.items():
        if module.startswith(package):
            numbers = [order for order, _ in declared]
            if len(set(numbers)) < len(numbers):
                raise ValueError(f"two rules of {kind.__name__} in {module} have the same order")
            orders.setdefault(kind.op_name, []).extend((n, module.removeprefix(package)) for n in numbers)  # type: ignore[attr-defined]
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(orders):
        places = sorted(orders[name])
        for (one, before), (other, after) in pairwise(places):
            if one == other:
                raise ValueError(f"{before} and {after} both have a rule of {name} with order {one}")
            if before != after:
                sorter.add(after, before)
        sorter.add(places[0][1])
    try:
        modules: Sequence[str] = list(sorter.static_order())
    except CycleError as error:
        raise ValueError(f"no order of the modules is that of their rules: {' → '.join(error.args[1])}") from None
    return _joined({m: sorted(n for n, places in orders.items() if any(m == o for _, o in places)) for m in modules})


def passes() -> dict[str, str]:
    """The modules that have passes, with their names."""
    from tflq.contract import Pass

    found: dict[str, set[str]] = {}
    kinds = [Pass]
    for kind in kinds:
        kinds += kind.__subclasses__()
        home = sys.modules.get(kind.__module__)  # a test can plant a class that no module has
        own = kind.__module__.startswith("tflq.") and getattr(home, kind.__name__, None) is kind
        if own and "name" in vars(kind) and not kind.__abstractmethods__:
            found.setdefault(kind.__module__.removeprefix("tflq."), set()).add(kind.name)
    return _joined({module: sorted(found[module]) for module in sorted(found)})


def _of_dialects(modules: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The same, by dialect, of ops by their names in it."""
    found: dict[str, dict[str, list[str]]] = {}
    for module, names in modules.items():
        for name in names.split():
            dialect, _, short = name.rpartition(".")
            found.setdefault(dialect or name, {}).setdefault(module, []).append(short)
    return {dialect: _joined(found[dialect]) for dialect in sorted(found)}


def _entries(table: Mapping[str, Mapping[str, str]], indent: int) -> str:
    """The rows of a table of tables."""
    return "".join(f"{name!r}: {{\n{_rows(modules, indent + 4)}}},\n" for name, modules in table.items())


def _rows(modules: Mapping[str, str], indent: int) -> str:
    """The rows of a table, in lines of at most 120 columns."""
    found = []
    for module, names in modules.items():
        row = f'"{module}": "{names}"'
        if len(row) > 119 - indent:
            row = f'"{module}": """{names}"""'
        lines = textwrap.wrap(row, 119 - indent, subsequent_indent="    ", break_on_hyphens=False)
        found.append(f"\n{' ' * indent}".join(lines))
    return ",\n".join(found) + (",\n" if len(found) > 1 else "")


def written() -> str:
    """The text of the index."""
    import_everything()
    functions = stages()
    functions["tflq.legalize"] = {**rules(), **functions["tflq.legalize"]}
    rooms = "".join(f"{package!r}: {{{_entries(_of_dialects(functions[package]), 8)}}}," for package in functions)
    folders = ", ".join(f'"{name}"' for name in sorted(ORDER) if (ROOT / f"tflq/dialects/{name}/__init__.py").is_file())
    text = TEXT.format(dialects=_entries(dialects(), 4), folders=folders, rooms=rooms, passes=_rows(passes(), 4))
    command = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(INDEX), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    INDEX.write_text(written(), encoding="utf-8")
