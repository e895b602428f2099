"""Every pass by its name, and pipelines written as text: `canonicalize{semantics=interpreter},cse,dce`.

A pass has its name on its class, so a module is all that is listed here. Passes of packages and files of a user are
added to tflq's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tflq.arguments import nearest
from tflq.contract import Pass, Pipeline
from tflq.errors import OptionError, Reason
from tflq.extensions import extension_of, installed
from tflq.select import cost
from tflq.targets import load_target as load_kernels
from tflq.tosa.lowering import cost as tosa_cost
from tflq.tosa.target import load_target as load_tosa

__all__ = ["READERS", "described", "named_passes", "parse_pipeline"]

_MODULES: Final = (
    *("code_generation", "legalize.engine", "select.edges", "select.engine", "select.equal_tables", "select.legality"),
    *("select.naming", "select.sharing", "select.state", "select.strips", "shapes.binding", "shapes.settling"),
    *("shapes.stating", "tosa.check", "tosa.lowering.engine", "tosa.raising", "tosa_pipeline"),
    *("passes.canonicalize", "passes.cse", "passes.dce", "passes.fold", "passes.lower_quant_ops"),
    *("passes.lower_rounding", "passes.normalize_quant_types", "passes.regions.fusion", "passes.regions.inline"),
    *("passes.regions.materialize", "passes.regions.propagate", "passes.row_updates", "passes.runtime"),
    *("passes.source", "passes.spectra", "passes.stablehlo_conversions", "passes.stablehlo_hybrid"),
    *("passes.strip_func_quant_types", "passes.tabulate", "passes.through_floats"),
)
"""The modules of tflq that have passes."""

_ITEM = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")
_OPTION = re.compile(r"([\w-]+)=(\S+)")


def named_passes(*files: Path) -> Mapping[str, type[Pass]]:
    """Every pass by its name: those of tflq, of installed packages and of files. OptionError if two have one name."""
    own = [item for module in _MODULES for item in _passes_of(f"tflq.{module}")]
    others = [item for extension in (*installed(), *map(extension_of, files)) for item in extension.passes]
    passes: dict[str, type[Pass]] = {}
    for item in (*own, *others):
        if passes.setdefault(item.name, item) is not item:
            raise OptionError(f"there are two passes '{item.name}': {passes[item.name]} and {item}")
    return passes


def _passes_of(module: str) -> list[type[Pass]]:
    classes = [item for item in vars(import_module(module)).values() if isinstance(item, type)]
    return [item for item in classes if issubclass(item, Pass) and item.__module__ == module]


def parse_pipeline(text: str, passes: Mapping[str, type[Pass]] | None = None) -> Pipeline:
    """The pipeline that a text such as `cse,canonicalize{semantics=interpreter}` names. OptionError if it names none.
    `passes`: those that there are, by default `named_passes()`."""
    known = named_passes() if passes is None else passes
    found: list[Pass] = []
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            raise OptionError(f"pipeline '{text}': expected a pass at '{text[position:]}'")
        found.append(_make(item[1], item[2] or "", known))
        position = item.end()
    if not found:
        raise OptionError(f"the pipeline is empty; the passes are {', '.join(sorted(known))}")
    return Pipeline(found)


def described(kind: type[Pass]) -> tuple[str, str]:
    """What a pass does, in a sentence, and its options as text: "limit=int, semantics='interpreter' | 'real'"."""
    said = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    options = [f"{f.name.replace('_', '-')}={getattr(f.type, '__name__', f.type)}" for f in fields(kind)]
    return re.split(r"(?<=\.) ", said)[0], ", ".join(options)


def _make(name: str, options: str, passes: Mapping[str, type[Pass]]) -> Pass:
    kind = passes.get(name)
    if kind is None:
        remedy = nearest(name, passes) or f"the passes are {', '.join(sorted(passes))}"
        raise OptionError(Reason(f"there is no pass '{name}'", value=name, remedy=remedy))
    types = {field.name.replace("_", "-"): getattr(field.type, "__name__", str(field.type)) for field in fields(kind)}
    given: dict[str, Any] = {}
    for option in re.split(r"[\s,]+", options.strip()) if options.strip() else []:
        match = _OPTION.fullmatch(option)
        if match is None or match[1] not in types:
            known = ", ".join(f"{key}=" for key in types) or "none"
            raise OptionError(f"pass '{name}' has no option '{option}'; its options: {known}")
        reader = READERS.get(f"{name}.{match[1]}")
        value = _option(name, match[1], types[match[1]], match[2]) if reader is None else reader(match[2])
        given[match[1].replace("-", "_")] = value
    for field in fields(kind):
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise OptionError(f"pass '{name}' needs its option '{field.name.replace('_', '-')}='")
    return kind(**given)


def _option(name: str, option: str, kind: str, text: str) -> bool | int | str:
    words = tuple(word for word in re.findall(r"['\"](.*?)['\"]", kind) if word)
    if kind == "bool" and text in ("true", "false"):
        return text == "true"
    if kind.removesuffix(" | None") == "int" and text.isdigit():
        return int(text)
    if text in words or kind == "str":
        return text
    expected = "true or false" if kind == "bool" else f"one of {', '.join(words)}" if words else "a number"
    raise OptionError(f"pass '{name}': option '{option}' is {expected}, not '{text}'")


def _worth(text: str) -> Callable[..., float]:
    known = {"kernels": cost.table_pays, "tosa": tosa_cost.table_pays}
    if text not in known:
        raise OptionError(Reason(f"tables for '{text}' are not known", value=text, remedy="kernels or tosa"))
    return known[text]


def _tosa(text: str) -> object:
    return load_tosa(None if text == "tosa" else text)


def _tensors(text: str) -> tuple[str, ...]:
    return tuple(text.split(";"))


def _shapes(text: str) -> Mapping[str, tuple[int, ...]]:
    """`input:1x224x224x3;state:1x8`; `scale:` is a scalar."""
    found = {}
    for item in text.split(";"):
        name, _, dims = item.rpartition(":")
        sizes = dims.split("x") if dims else []
        if not name or not all(size.isdigit() for size in sizes):
            raise OptionError(Reason(f"'{item}' is no shape of an input", value=text, remedy="input:1x224x224x3"))
        found[name] = tuple(map(int, sizes))
    return found


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "bind-shapes.shapes": _shapes,
    "check-legality.target": load_kernels,
    "check-tosa.target": _tosa,
    "cut.tensors": _tensors,
    "legalize.target": load_kernels,
    "lower-to-tosa.target": _tosa,
    "tabulate.worth": _worth,
}
"""How an option is read from text, by pass and option, where it is not a word, a number or a truth value."""
