"""Every pass by its name, and pipelines written as text: `canonicalize{semantics=interpreter},cse,dce`.

A pass has its name on its class; `tflq/index.py` lists the modules. Passes of packages and files of a user are added to
tflq's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from tflq.contract import Pass, PassResult, Pipeline
from tflq.errors import InvalidModelError, OptionError, Reason, VerificationError, nearest
from tflq.extensions import extension_of, installed
from tflq.index import PASSES
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ElementType
from tflq.passes.canonicalize import Canonicalize, DeadCodeElimination
from tflq.passes.regions.materialize import QuantMaterialize, of_tflite
from tflq.passes.regions.merged_rescales import merge_rescales
from tflq.select import cost
from tflq.targets.load import load_target as load_kernels
from tflq.tosa.lowering import engine as tosa_cost
from tflq.tosa.operands import load_target as load_tosa

_ITEM = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")
_OPTION = re.compile(r"([\w-]+)=(\S+)")


def named_passes(*files: Path) -> Mapping[str, type[Pass]]:
    """Every pass by its name: those of tflq, of installed packages and of files. OptionError if two have one name."""
    own = [item for module in PASSES for item in _passes_of(f"tflq.{module}")]
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


# tfl-to-tosa-pipeline: a module of TFLite's operators → TOSA's, in one pass.
#
# Function headers keep their quantized types, which `tosa.rescale` reads and writes as they are; elsewhere a
# `quant.scast` stands between them and the stored integers. `target-compilation-backend=true` leaves the storage
# types alone, as a backend takes them: all that the types say stands in attributes by then.


@dataclass(frozen=True)
class TflToTosa(Pass):
    """Lowers operators of TFLite to TOSA. `fallback`: by way of floats where no integer algorithm covers one.
    `semantics`: what the parameters say (real), or what TFLite's kernels compute where they disregard some
    (interpreter). UnsupportedError lists every operator refused."""

    name: ClassVar[str] = "tfl-to-tosa-pipeline"
    makes: ClassVar[Literal["any"]] = "any"
    fallback: bool = True
    target_compilation_backend: bool = False
    semantics: Literal["real", "interpreter"] = "real"

    def run(self, module: Module) -> PassResult:
        from tflq.backends.tosa import Tosa
        from tflq.dialects.forms import verify_form
        from tflq.options import Options
        from tflq.pipelines import to_integer_form, to_tosa
        from tflq.tosa.operands import Target

        try:
            verify_form(module, "tfl")
        except VerificationError as error:
            raise InvalidModelError("", str(error), path=module.source) from error
        options = Options(Tosa(), target=Target(), fallback=self.fallback, semantics=self.semantics)
        passes = [*to_integer_form(options, "tfl"), *to_tosa(options)]
        lowered = Pipeline(passes, "tfl").run(module).module
        for function in lowered.functions:
            if self.target_compilation_backend:
                _forget(function)
            else:
                _restate(lowered, function)
        return PassResult(lowered, True)


def _stated(value: Value) -> ElementType | None:
    """The quantized type that a tensor had, if it is known."""
    found: ElementType | None = value.info.get("quantized")
    return found


def _without(value: Value) -> None:
    value.info = {key: item for key, item in value.info.items() if key != "quantized"}


def _forget(function: Function) -> None:
    for value in (*function.values(), *function.tensors):
        if _stated(value) is not None:
            _without(value)


def _restate(module: Module, function: Function) -> None:
    """Quantized types in the header."""
    users = function.users()
    before: list[Op] = []
    for value in dict.fromkeys(function.inputs):
        element = _stated(value)
        if element is None:
            continue
        if _of_rescales(users.get(value, ())) and value not in function.outputs:
            value.type = value.type.with_element(element)
        elif value.type.storage.kind != "uint":
            inner = Value(value.type)
            function.replace({value: inner})
            value.type = value.type.with_element(element)
            before.append(Op("quant.scast", [value], [inner]))
        else:
            continue
        _without(value)
    function.ops = [*before, *function.ops]
    replacements: dict[Value, Value] = {}
    for value in dict.fromkeys(function.outputs):
        element = _stated(value)
        if element is None or value.producer is None or value.type.element == element:
            continue
        if value.producer.name == "tosa.rescale" and value not in users:
            value.type = value.type.with_element(element)
        elif value.type.storage.kind != "uint":
            outer = Value(value.type.with_element(element), value.name)
            value.name = ""
            function.ops.append(Op("quant.scast", [value], [outer]))
            replacements[value] = outer
        else:
            continue
        _without(value)
    function.outputs = [replacements.get(value, value) for value in function.outputs]
    module.signatures = module.signatures and [s.with_outputs(replacements) for s in module.signatures]


def _of_rescales(users: Sequence[Op]) -> bool:
    return bool(users) and all(op.name == "tosa.rescale" for op in users)


# quant-codegen: regions become ops on integers, the parameters of their ports multiplications and shifts.
#
# Each region whose ports all have parameters is inlined as quantized operators (`quant-materialize`), which are
# lowered to the integer form: what a parameter means is `tosa.rescale`, a multiplication and a shift. Casts between
# reals and integers stay at the ends. What has no parameters stays in floats. Then rescales are pushed forward and
# merged, one for each output (`tflq.passes.regions.merged_rescales`).


@dataclass(frozen=True)
class QuantCodegen(Pass):
    """Lowers regions to integers. `target`: only the kernels that a target's file lists; without one all. `rescales`:
    which are merged: none (`kernel`), where the results stay what the kernel makes (`exact`), or also where they are
    one step off at most (`merged`). Errors as of `quant-materialize` and `tfl-to-tosa-pipeline`."""

    name: ClassVar[str] = "quant-codegen"
    target: str = ""
    rescales: Literal["kernel", "exact", "merged"] = "exact"

    def run(self, module: Module) -> PassResult:
        for item in (QuantMaterialize(self.target), Canonicalize(), DeadCodeElimination()):
            module = item.run(module).module
        of_tflite(module)
        module = TflToTosa().run(module).module
        if self.rescales != "kernel":
            for function in module.functions:
                merge_rescales(function, step=self.rescales == "merged")
        return PassResult(module, True)
