"""Every pass by its name, pipelines as text (`canonicalize{semantics=interpreter},cse,dce`), and the pass
that takes TFLite to TOSA.

A pass has its name on its class; `tflq/ir/index.py` lists the modules. Passes of packages and files of a user are added
to those of tflq.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from tflq.base.arguments import nearest
from tflq.base.errors import InvalidModelError, OptionError, Reason, VerificationError
from tflq.conversion.extensions import extension_of, installed
from tflq.dialects.forms import verify_form
from tflq.dialects.quant import Scast
from tflq.dialects.registry import description
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.options import Options
from tflq.formats.pipeline import to_integer_form
from tflq.formats.tflite.lowering import cost
from tflq.formats.tosa.backend import Tosa, to_tosa
from tflq.formats.tosa.lowering import engine as tosa_cost
from tflq.formats.tosa.rules import Target
from tflq.formats.tosa.rules import load_target as load_tosa
from tflq.formats.tosa.text import with_stored_rescales
from tflq.ir.index import PASSES
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.targets.load import load_target as load_kernels
from tflq.transforms.pass_manager import Pass, PassResult, Pipeline

_ITEM = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")
_OPTION = re.compile(r"([\w-]+)=(\S+)")


def named_passes(*files: Path) -> Mapping[str, type[Pass]]:
    """Every pass by its name: those of tflq, of installed packages and of files. OptionError if two have the same."""
    builtins = [item for module in PASSES for item in _passes_of(f"tflq.{module}")]
    others = [item for extension in (*installed(), *map(extension_of, files)) for item in extension.passes]
    passes: dict[str, type[Pass]] = {}
    for item in (*builtins, *others):
        if passes.setdefault(item.name, item) is not item:
            raise OptionError(f"there are two passes '{item.name}': {passes[item.name]} and {item}")
    return passes


def _passes_of(module: str) -> list[type[Pass]]:
    classes = [item for item in vars(import_module(module)).values() if isinstance(item, type)]
    return [item for item in classes if issubclass(item, Pass) and item.__module__ == module]


def parse_pipeline(text: str, passes: Mapping[str, type[Pass]] | None = None) -> Pipeline:
    """The pipeline of a text such as `cse,canonicalize{semantics=interpreter}`. OptionError if it is not valid.
    passes: those that it may name, by default `named_passes()`."""
    known = named_passes() if passes is None else passes
    items: list[Pass] = []
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            raise OptionError(f"pipeline '{text}': expected a pass at '{text[position:]}'")
        items.append(_make(item[1], item[2] or "", known))
        position = item.end()
    if not items:
        raise OptionError(f"the pipeline is empty; the passes are {', '.join(sorted(known))}")
    return Pipeline(items)


def described(kind: type[Pass]) -> tuple[str, str]:
    """A sentence on the effect of a pass, and its options as `-p` takes them: "limit=N, semantics=interpreter|real"."""
    paragraph = " ".join(description(kind).split("\n\n")[0].split())
    forms = {option: _form(f"{kind.name}.{option}", of) for option, of in _option_types(kind).items()}
    options = ", ".join(f"{option}={form}" for option, form in forms.items() if form)
    return re.split(r"(?<=\.) ", paragraph)[0], options


def _form(option: str, kind: str) -> str:
    """Form of an option's value; "" if text cannot state it."""
    if option in READERS:
        return _FORMS.get(option, "NAME|PATH")
    if words := _words(kind):
        return "|".join(words)
    return {"bool": "true|false", "int": "N", "str": "TEXT"}.get(kind.removesuffix(" | None"), "")


def _words(kind: str) -> tuple[str, ...]:
    """The words that an option of a type can be."""
    return tuple(word for word in re.findall(r"['\"](.*?)['\"]", kind) if word)


def _parameters(kind: type[Pass]) -> list[tuple[str, Any, bool]]:
    """The options of a pass: name, type, and whether it must be there."""
    parameters = signature(kind).parameters.values()
    return [(each.name, each.annotation, each.default is Parameter.empty) for each in parameters]


def _option_types(kind: type[Pass]) -> dict[str, str]:
    """The type of each option of a pass, as text."""
    return {name.replace("_", "-"): getattr(of, "__name__", str(of)) for name, of, _ in _parameters(kind)}


def _make(name: str, options: str, passes: Mapping[str, type[Pass]]) -> Pass:
    kind = passes.get(name)
    if kind is None:
        remedy = nearest(name, passes) or f"the passes are {', '.join(sorted(passes))}"
        raise OptionError(Reason(f"there is no pass '{name}'", value=name, remedy=remedy))
    types = _option_types(kind)
    values: dict[str, Any] = {}
    for option in re.split(r"[\s,]+", options.strip()) if options.strip() else []:
        match = _OPTION.fullmatch(option)
        if match is None or match[1] not in types:
            known = ", ".join(f"{key}=" for key in types) or "none"
            raise OptionError(f"pass '{name}' has no option '{option}'; its options: {known}")
        reader = READERS.get(f"{name}.{match[1]}")
        value = _option(name, match[1], types[match[1]], match[2]) if reader is None else reader(match[2])
        values[match[1].replace("-", "_")] = value
    for option, _, needed in _parameters(kind):
        if needed and option not in values:
            raise OptionError(f"pass '{name}' needs its option '{option.replace('_', '-')}='")
    return kind(**values)


def _option(name: str, option: str, kind: str, text: str) -> bool | int | str:
    words = _words(kind)
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
    shapes = {}
    for item in text.split(";"):
        name, _, dims = item.rpartition(":")
        sizes = dims.split("x") if dims else []
        if not name or not all(size.isdigit() for size in sizes):
            what = f"'{item}' is not the shape of an input"
            raise OptionError(Reason(what, value=text, remedy="write it as input:1x224x224x3"))
        shapes[name] = tuple(map(int, sizes))
    return shapes


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "bind-shapes.shapes": _shapes,
    "check-legality.target": load_kernels,
    "check-tosa.target": _tosa,
    "cut.tensors": _tensors,
    "legalize.target": load_kernels,
    "lower-to-tosa.target": _tosa,
    "tabulate.worth": _worth,
}
"""Readers, from text, of options that are not words, numbers or truth values."""
_FORMS: Final = {
    "bind-shapes.shapes": "INPUT:1x224x224x3;...",
    "cut.tensors": "TENSOR;...",
    "tabulate.worth": "kernels|tosa",
}
"""Forms of the values of those that are not targets."""


@dataclass(frozen=True)
class TflToTosa(Pass):
    """Lowers operators of TFLite to TOSA.

    Function headers keep their quantized types: `tosa.rescale` reads and writes these; elsewhere a `quant.scast` stands
    between them and the stored integers. target_compilation_backend: only storage types remain, as a backend takes
    them; attributes have all that the quantized types said. fallback: compute in floats what no integer algorithm
    covers. semantics: what the parameters say (real), or what TFLite's kernels compute even if they ignore some
    (interpreter).

    UnsupportedError lists every refused operator.
    """

    name: ClassVar[str] = "tfl-to-tosa-pipeline"
    makes: ClassVar[Literal["any"]] = "any"
    fallback: bool = True
    target_compilation_backend: bool = False
    semantics: Literal["real", "interpreter"] = "real"

    def run(self, module: Module) -> PassResult:
        with_stored_rescales(module)
        try:
            verify_form(module, "tfl")
        except VerificationError as error:
            raise InvalidModelError("", str(error), path=module.source) from error
        options = Options(Tosa(), target=Target(), fallback=self.fallback, semantics=self.semantics)
        passes = [*to_integer_form(options, "tfl"), *to_tosa(options)]
        lowered = Pipeline(passes, "tfl").run(module).module
        lowered.metadata = module.metadata  # which no TOSA file holds, but text does
        for function in lowered.functions:
            if self.target_compilation_backend:
                for value in (*function.values(), *function.tensors):
                    _forget(value)
            else:
                _restate(lowered, function)
        return PassResult(lowered, True)


def _forget(value: Value) -> None:
    """Drops the quantized type that a tensor had."""
    value.info = {key: item for key, item in value.info.items() if key != "quantized"}


def _restate(module: Module, function: Function) -> None:
    """Gives the inputs and outputs of a function the quantized types that they had."""
    users = function.users()
    before: list[Op] = []
    for value in dict.fromkeys(function.inputs):
        element = value.info.get("quantized")
        if element is None:
            continue
        readers = users.get(value, ())
        if readers and all(isinstance(op, Rescale) for op in readers) and value not in function.outputs:
            value.type = value.type.with_element(element)
        elif value.type.storage.kind != "uint":
            inner = Value(value.type)
            function.replace({value: inner})
            value.type = value.type.with_element(element)
            before.append(Scast(Scast.op_name, [value], [inner]))
        else:
            continue
        _forget(value)
    function.ops = [*before, *function.ops]
    replacements: dict[Value, Value] = {}
    for value in dict.fromkeys(function.outputs):
        element = value.info.get("quantized")
        if element is None or value.producer is None or value.type.element == element:
            continue
        if isinstance(value.producer, Rescale) and value not in users:
            value.type = value.type.with_element(element)
        elif value.type.storage.kind != "uint":
            outer = Value(value.type.with_element(element), value.name)
            value.name = ""
            function.ops.append(Scast(Scast.op_name, [value], [outer]))
            replacements[value] = outer
        else:
            continue
        _forget(value)
    function.outputs = [replacements.get(value, value) for value in function.outputs]
    module.signatures = module.signatures and [s.with_outputs(replacements) for s in module.signatures]
