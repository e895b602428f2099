"""The formats that a conversion writes: a `Backend` for each, found by name, by suffix or by target.

tflq's own are here; their methods import what they need when they are called. An installed package adds one by an entry
point in the group `tflq.backends` that has the name of the format; it is imported when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tflq.errors import OptionError, Reason, check_choice
from tflq.files import FilePath, Pieces

if TYPE_CHECKING:
    from tflq.contract import Pass
    from tflq.dialects.forms import Form
    from tflq.ir.core import Module

DEFAULT: Final = "tflite"
"""The format of a result where neither a format nor a suffix nor a target names one."""

_GROUP: Final = "tflq.backends"


class Backend:
    """A format of results, and all that tflq asks of it.

    Attributes:
        name: As `--format` takes it.
        suffixes: Those of its files, without the dot; by default its name. Files that tflq names get the first one.
        form: The form of the modules that it writes.
        targets: The names of its targets.
        states: What can become of operators that hold state, as `--state` takes it.
        builtins: Whether TFLite's builtins compute the result: state, resizable inputs and operators without quantized
            tensors can stay as they are, and a target lists kernels.
        interpreted: Whether its files are TFLite's, which an interpreter allocates and runs.
        static: Whether it has no open dims.
        close: Whether it asks how close the bounds of a sum are, beyond what TOSA's RESCALE needs to know.
        one_entry: Whether a file has one entry, so that each signature becomes a file.
        text: Whether files are text.
        requires: What runs a file: modules of which one must be installed, the package that has it, and tflq's extra
            that installs it.
    """

    name: ClassVar[str]
    form: ClassVar[Form] = "integer"
    targets: ClassVar[tuple[str, ...]] = ()
    states: ClassVar[tuple[str, ...]] = ("variables",)
    builtins: ClassVar[bool] = False
    interpreted: ClassVar[bool] = False
    static: ClassVar[bool] = False
    close: ClassVar[bool] = True
    one_entry: ClassVar[bool] = True
    text: ClassVar[bool] = False
    requires: ClassVar[tuple[tuple[str, ...], str, str] | None] = None

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (self.name,)

    def owns(self, path: str) -> bool:
        """Whether a file of a target is for this format."""
        return False

    def target(self, asked: FilePath | None) -> Any:
        """What a target allows. OptionError for one of another format."""
        check_choice("target", asked, self.targets, optional=True)

    def check_options(self, **asked: Any) -> None:
        """OptionError for options of a conversion that do nothing for this format."""
        usual = {"mac": "integer", "prefer": "speed", "reset_signature": False, "cache": None}
        file, state = f"a .{self.suffixes[0]} file", asked["state"]
        if state not in (None, *self.states):
            whose = "ONNX" if state == "inputs" else "TFLite"
            remedy = f"{file} takes {' or '.join(map(repr, self.states))}"
            raise OptionError(Reason(f"state '{state}' is for {whose} files", value=state, remedy=remedy))
        if self.builtins:
            return
        for name, value in asked.items():
            if name in usual and value != usual[name]:
                shown = f"{name} '{value}'" if isinstance(value, str) else name
                what = f"{shown} is for TFLite files; {file} has no use for it"
                raise OptionError(Reason(what, value=value if isinstance(value, (bool, str)) else str(value)))

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        """The passes from the integer form to the result, and its check. form: that of the source."""
        raise NotImplementedError

    def lowering(self, options: Any, form: str) -> list[Pass]:
        """The passes from the source to the result, by default through the integer form."""
        from tflq.pipelines import to_integer_form

        return [*to_integer_form(options, form), *self.passes(options, form)]  # type: ignore[arg-type]

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        """For the report of a result: notes on operators, and what the result requires of a device."""
        return (), None

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        """The file of an entry, in pieces. function: the entry's index in the module."""
        raise NotImplementedError

    def reads(self, path: str) -> bool:
        """Whether `tflq verify` should run this file as one of the format."""
        return os.path.splitext(path)[1][1:] in self.suffixes

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        """What runs a file: for all formats but TFLite a `FileRunner` of `tflq.verification.runner`."""
        raise OptionError(Reason(f"there is nothing that runs .{self.name} files", path))


# tflq's own.


class _Tflite(Backend):
    """TFLite flatbuffers."""

    name = "tflite"
    form = "kernels"
    targets = ("integer", "kernels", "portable", "tflm")
    states = ("kept", "variables")
    builtins = True
    interpreted = True
    one_entry = False
    requires = (("ai_edge_litert", "tensorflow"), "ai-edge-litert", "verify")

    def target(self, asked: FilePath | None) -> Any:
        if asked in (None, "integer"):
            from tflq.targets.target import INTEGER

            return INTEGER
        from tflq.targets.load import load_target

        return load_target(asked)

    def lowering(self, options: Any, form: Any) -> list[Pass]:
        from tflq.passes.source import RecordNames

        return [RecordNames(), *super().lowering(options, form)]

    def passes(self, options: Any, form: Any) -> Sequence[Pass]:
        from tflq.pipelines import to_kernels

        return to_kernels(options, form)

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        from tflq.flatbuffer import writer

        return writer.pieces(module)

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.tflite_runner import TfliteRunner

        return TfliteRunner(path, resolver, timeout)


class Tosa(Backend):
    """What TOSA flatbuffers and text share."""

    form = "tosa"
    close = False
    requires = (("tosa_reference_model",), "tosa-tools", "tosa")

    @property
    def targets(self) -> tuple[str, ...]:  # type: ignore[override]
        from tflq.targets.load import DEVICES

        return "tosa", *DEVICES

    def owns(self, path: str) -> bool:
        from tflq.targets.load import is_of_tosa

        return is_of_tosa(path)

    def target(self, asked: FilePath | None) -> Any:
        from tflq.tosa.rules import load_target

        if asked in ("integer", "kernels"):
            what = f"target '{asked}' is for TFLite files"
            raise OptionError(Reason(what, value=asked, remedy=f"a .{self.name} file has the target 'tosa'"))
        return load_target(None if asked in (None, "tosa") else str(asked))

    def lowering(self, options: Any, form: Any) -> list[Pass]:
        return [self._check(options)] if form == "tosa" else super().lowering(options, form)

    def passes(self, options: Any, form: Any) -> Sequence[Pass]:
        from tflq.pipelines import to_tosa

        return [*to_tosa(options), self._check(options)]

    def _check(self, options: Any) -> Pass:
        from tflq.tosa.check import CheckTosa

        return CheckTosa(options.target, static=self.static)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.contract import Notes
        from tflq.tosa.check import Requirements

        return Notes.of(module, real=options.semantics == "real"), module.record.find(Requirements)


class _TosaFlatbuffer(Tosa):
    """TOSA flatbuffers, which have no open dims."""

    name = "tosa"
    static = True

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        from tflq.tosa.write import tosa_pieces

        return tosa_pieces(module, function)

    def reads(self, path: str) -> bool:
        from tflq.flatbuffer.layout import TOSA
        from tflq.flatbuffer.structure import identify

        return identify(path) is TOSA

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.runtimes import TosaRunner

        return TosaRunner(path, timeout)


class _TosaText(Tosa):
    """MLIR text of the tosa dialect. It says what it needs of the target, and dims can stay open."""

    name = "mlir"
    text = True

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.tosa.text import mlir_pieces

        return (piece.encode() for piece in mlir_pieces(module, target, function=function))

    def reads(self, path: str) -> bool:
        return False


class _Onnx(Backend):
    """ONNX in the exact form: the integer form in its standard operators."""

    name = "onnx"
    form = "onnx"
    targets = ("onnx",)
    states = ("variables", "inputs")
    requires = (("onnxruntime",), "onnxruntime", "onnx")

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.onnx.engine import LowerToOnnx
        from tflq.pipelines import to_onnx

        return to_onnx(options, LowerToOnnx)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.contract import Notes
        from tflq.onnx.engine import otherwise_notes, runtimes

        noted = Notes.of(module, real=options.semantics == "real")
        return [*noted, *otherwise_notes(module)], runtimes(module)

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.onnx.write import onnx_pieces

        return onnx_pieces(module, function)

    def reads(self, path: str) -> bool:
        """By its suffix, or as tflq begins it: with the format's version and the producer."""
        if super().reads(path):
            return True
        with open(path, "rb") as file:
            head = file.read(3)
        return head[:1] == b"\x08" and head[2:] == b"\x12"

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.runtimes import OnnxRunner

        return OnnxRunner(path, timeout)


class _Qdq(_Onnx):
    """ONNX in the QDQ form: each quantized operator on real numbers between casts, as compilers for NPUs read it."""

    name = "qdq"
    targets = ("qdq",)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("onnx",)

    def target(self, asked: FilePath | None) -> Any:
        """Which operators take the form: by default those for which there is a pattern."""
        from tflq.files import resource
        from tflq.light import replace
        from tflq.targets.load import load_target

        target = load_target(resource("rules/qdq.toml") if asked in (None, "qdq") else asked)
        return replace(target, by_parameters=True)

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.onnx.qdq import LowerToQdq
        from tflq.pipelines import to_onnx

        return to_onnx(options, LowerToQdq)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.contract import Notes
        from tflq.onnx.qdq import qdq_form

        notes, form = qdq_form(module)
        return [*notes, *Notes.of(module, real=options.semantics == "real")], form


_OWN: Final[dict[str, Backend]] = {
    each.name: each for each in (_Tflite(), _TosaFlatbuffer(), _TosaText(), _Onnx(), _Qdq())
}


# Finding one.


@cache
def _outside() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=_GROUP) if entry.name not in _OWN}


def names() -> tuple[str, ...]:
    """The names of all formats."""
    return (*_OWN, *sorted(_outside()))


def suffixes() -> dict[str, str]:
    """The format of each suffix. If several formats have it, the first one counts; tflq's own come first."""
    return {suffix: name for name in reversed(names()) for suffix in _loaded(name).suffixes}


@cache
def _loaded(name: str) -> Backend:
    if name in _OWN:
        return _OWN[name]
    entry = _outside()[name]
    named, remedy = f"the entry point '{name}' of group {_GROUP}", "mend or uninstall the package that has it"
    try:
        loaded = entry.load()
    except Exception as error:
        what = f"{named} cannot be loaded: {type(error).__name__}: {error}"
        raise OptionError(Reason(what, entry.value, remedy=remedy)) from error
    if not isinstance(loaded, Backend) or getattr(loaded, "name", None) != name:
        raise OptionError(Reason(f"{named} is not a Backend of that name", entry.value, remedy=remedy))
    return loaded


def backend(name: Any) -> Backend:
    """A format by its name. OptionError if it is not known."""
    if not isinstance(name, str) or name not in _OWN:
        check_choice("format", name, names())
    return _loaded(name)


def named_by(path: FilePath) -> str:
    """The name of the format of a destination, by its suffix. OptionError if no format has the suffix."""
    suffix = os.path.splitext(path)[1]
    if suffix[1:] in _OWN:
        return suffix[1:]
    known = suffixes()
    if suffix[1:] in known:
        return known[suffix[1:]]
    what = f"the suffix says the format, and '{suffix}' names none"
    listed = dict.fromkeys(f".{suffix}" for name in names() for suffix in _loaded(name).suffixes)
    remedy = f"there are {', '.join(listed)}"
    raise OptionError(Reason(what, os.fspath(path), value=suffix, remedy=remedy))


def of_target(target: FilePath | None, *, static: bool = False) -> Backend:
    """The format that has a target: TFLite unless another one has it. Of several formats the first that allows open
    dims; with `static` the first."""
    usual = _loaded(DEFAULT)
    if target is None or str(target) in usual.targets:
        return usual
    owners = [each for each in _others() if str(target) in each.targets or each.owns(str(target))]
    open_ones = [each for each in owners if static or not each.static]
    return next(iter((*open_ones, *owners)), usual)


def opening(path: str) -> Backend:
    """The format as which a file is run: TFLite if no other reads it."""
    return next((each for each in _others() if each.reads(path)), _loaded(DEFAULT))


def _others() -> Iterator[Backend]:
    return (_loaded(name) for name in names() if name != DEFAULT)
