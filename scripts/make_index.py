"""Writes tflq/ir/index.py: which module declares each op, which say what a stage does with it, and has each pass.

    python scripts/make_index.py

All modules of tflq's dialects and stages are imported; the index is what they declare and register.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

INDEX = ROOT / "tflq" / "ir" / "index.py"
CORE = ("arith", "math", "tensor", "linalg", "shape", "func")
ORDER = ("tfl", "tosa", "quant", "ext", "fxpmath", "onnx", "stablehlo", *CORE, "tf")
TEXT = '''"""Modules of each op: of its declaration, of the stages, and of passes. Written by `make index`.

A module of a dialect or of a stage is imported when the first op is met that it is needed for.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANY", "DIALECTS", "PACKAGES", "PASSES", "ROOMS"]

ANY: Final = "*"
"""Stands for ops from outside: the modules that have a function for a trait."""

DIALECTS: Final[dict[str, dict[str, str]]] = {{
{dialects}}}
"""The ops of each dialect, by the module that declares them."""

PACKAGES: Final[dict[str, str]] = {{
{packages}}}
"""The package of each dialect's modules."""

ROOMS: Final[dict[str, dict[str, dict[str, str]]]] = {{
{rooms}}}
"""By stage and dialect: the ops that each module has a function for. Rules of legalization are tried in this order."""

PASSES: Final[dict[str, str]] = {{
{passes}}}
"""The passes of each module of `tflq`."""
'''


STAGES = ("dialects", "analysis", "transforms", "legalize", "formats", "tools.opt", "tools.quantize")
"""The packages that declare ops, say what a stage does with them, or have passes."""


def import_everything() -> None:
    """Imports all modules that declare ops or say what a stage does with them."""
    for stage in STAGES:
        if find_spec(f"tflq.{stage}") is None:  # scripts/without_products.py deletes some
            continue
        package: ModuleType = import_module(f"tflq.{stage}")
        for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
            import_module(found.name)


def dialects() -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """By dialect and module, the names of the ops in the order in which they are declared; the package of each."""
    from tflq.ir.ops import declared

    found: dict[str, dict[str, list[str]]] = {name: {} for name in ORDER}
    packages: dict[str, str] = dict.fromkeys(ORDER, "")
    for name, kind in declared().items():
        dialect, _, short = name.partition(".")
        package, _, module = kind.__module__.rpartition(".")
        if package.startswith("tflq."):
            found[dialect].setdefault(module, []).append(short)
            if packages[dialect] not in ("", package):
                raise ValueError(f"the dialect {dialect} is in two packages, {packages[dialect]} and {package}")
            packages[dialect] = package
    ops = {name: {module: " ".join(ops[module]) for module in sorted(ops)} for name, ops in found.items()}
    return ops, packages


def _joined(by_module: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {module: " ".join(names) for module, names in by_module.items()}


def stages() -> dict[str, dict[str, str]]:
    """By package and module, the ops that it has a function for, its own or that of a trait."""
    from tflq.dialects.registry import REGISTRIES
    from tflq.ir.index import ANY
    from tflq.ir.ops import declared

    found: dict[str, dict[str, set[str]]] = {}
    for registry in REGISTRIES:
        if not registry.package.startswith("tflq."):
            continue
        places = [(name, registry.place(kind)) for name, kind in declared().items()]
        for name, place in (*places, *((ANY, place) for place in registry.places_of_traits())):
            if place is not None and place.startswith("tflq.") and place != registry.package:
                found.setdefault(registry.package, {}).setdefault(place, set()).add(name)
    return {p: _joined({m: sorted(found[p][m]) for m in sorted(found[p])}) for p in sorted(found)}


def rules() -> dict[str, str]:
    """The modules that have rules of legalization, with their operators. The rules of an operator are tried in the
    order of the modules, those of one module by their own. ValueError if that is not the order that they declare."""
    from tflq.legalize.rule import DECLARED

    orders: dict[str, list[tuple[int, str]]] = {}
    for (module, kind), declared in DECLARED.items():
        if module.startswith("tflq."):
            numbers = [order for order, _ in declared]
            if len(set(numbers)) < len(numbers):
                raise ValueError(f"two rules of {kind.__name__} in {module} have the same order")
            orders.setdefault(kind.op_name, []).extend((n, module) for n in numbers)  # type: ignore[attr-defined]
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
    from tflq.transforms.pass_manager import Pass

    found: dict[str, set[str]] = {}
    kinds = [Pass]
    for kind in kinds:
        kinds += kind.__subclasses__()
        home = sys.modules.get(kind.__module__)  # a test can plant a class that no module has
        own = kind.__module__.startswith("tflq.") and getattr(home, kind.__name__, None) is kind
        if own and "name" in vars(kind) and kind.run is not Pass.run:
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
    functions["tflq.legalize"] = rules()
    rooms = "".join(f"{package!r}: {{{_entries(_of_dialects(functions[package]), 8)}}}," for package in functions)
    declared, packages = dialects()
    tables = {"dialects": _entries(declared, 4), "packages": _rows(packages, 4), "passes": _rows(passes(), 4)}
    text = TEXT.format(rooms=rooms, **tables)
    command = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(INDEX), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    INDEX.write_text(written(), encoding="utf-8")
