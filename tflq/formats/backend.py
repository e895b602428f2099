"""The formats that a conversion writes: a `Backend` for each, found by name, by suffix or by target.

Each format's is in its folder, and is imported when it is asked for; what its methods need is imported when they are
called. An installed package adds one by an entry point in the group `tflq.backends` that has the name of the format.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from tflq.base.arguments import check_choice, unknown_target
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, Pieces

if TYPE_CHECKING:
    from tflq.dialects.forms import ModuleForm
    from tflq.ir.module import Module
    from tflq.transforms.pass_manager import Pass

DEFAULT: Final = "tflite"
"""The format of a result where neither a format nor a suffix nor a target names one."""

_GROUP: Final = "tflq.backends"
_BACKENDS: Final = {
    "tflite": ("tflite", "Tflite"),
    "tosa": ("tosa", "TosaFlatbuffer"),
    "mlir": ("tosa", "TosaText"),
    "onnx": ("onnx", "Onnx"),
    "qdq": ("onnx", "Qdq"),
    "c": ("c", "C"),
}
"""The folder of each format of tflq's own, and its class in `backend.py` there."""


class Writing(NamedTuple):
    """The facts that files of a result may name, beside the module. stem: the first file's name without its suffix, ""
    if it has none. digest: the SHA-256 of the source in hexadecimal digits, for a format that `names_source`. choices:
    options of the format's own, by name. kernel_set: the kernels that the result is exact for, "" where nobody says."""

    stem: str = ""
    digest: str = ""
    choices: Mapping[str, Any] = MappingProxyType({})
    kernel_set: str = ""


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
        usual_batch: The batch of an input whose first dim is open, where nobody gives one. None: it is an error.
        endings: What the names of an entry's files end with, where it has several; that of the first comes first.
        choices: The names of options of its own, as `tflq.convert` takes them in `choices`.
        names_source: Whether files have the digest of the source.
        requires: What runs a file: modules of which one must be installed, the package that has it, and tflq's extra
            that installs it.
        runner: The class that runs a file for `tflq verify`, as "module:Class": a `FileRunner` of
            `tflq.tools.verify.runner`, made of a path, a timeout in seconds and the resolver asked for.
    """

    name: ClassVar[str]
    form: ClassVar[ModuleForm] = "integer"
    targets: ClassVar[tuple[str, ...]] = ()
    states: ClassVar[tuple[str, ...]] = ("variables",)
    builtins: ClassVar[bool] = False
    interpreted: ClassVar[bool] = False
    static: ClassVar[bool] = False
    close: ClassVar[bool] = True
    one_entry: ClassVar[bool] = True
    text: ClassVar[bool] = False
    usual_batch: ClassVar[int | None] = None
    endings: ClassVar[tuple[str, ...]] = ()
    choices: ClassVar[tuple[str, ...]] = ()
    names_source: ClassVar[bool] = False
    requires: ClassVar[tuple[tuple[str, ...], str, str] | None] = None
    runner: ClassVar[str] = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (self.name,)

    def owns(self, path: str) -> bool:
        """Whether a file of a target is for this format."""
        return False

    def target(self, name: FilePath | None) -> Any:
        """The capabilities of a target; None without targets. OptionError for a target of another format."""
        if name is not None and str(name) not in self.targets:
            raise unknown_target(name, self.targets, self.suffixes[0], files=False)

    def check_options(self, **options: Any) -> None:
        """OptionError for options of a conversion that do nothing for this format."""
        usual = {"mac": "integer", "prefer": "speed", "reset_signature": False, "cache": None}
        file, state = f"a .{self.suffixes[0]} file", options["state"]
        if state not in (None, *self.states):
            whose = "ONNX" if state == "inputs" else "TFLite"
            remedy = f"{file} takes {' or '.join(map(repr, self.states))}"
            raise OptionError(Reason(f"state '{state}' is for {whose} files", value=state, remedy=remedy))
        if self.builtins:
            return
        for name, value in options.items():
            if name in usual and value != usual[name]:
                shown = f"{name} '{value}'" if isinstance(value, str) else name
                what = f"{shown} is for TFLite files; {file} has no use for it"
                raise OptionError(Reason(what, value=value if isinstance(value, (bool, str)) else str(value)))

    def check_choices(self, choices: Mapping[str, Any]) -> None:
        """OptionError for an option of another format, or a value that it cannot have."""
        for name in choices:
            if name not in self.choices:
                listed = ", ".join(f"'{each}'" for each in self.choices)
                what = f"a .{self.suffixes[0]} file has no option '{name}'"
                raise OptionError(Reason(what, value=name, remedy=f"it has {listed}" if listed else "leave it out"))

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        """The passes from the integer form to the result, and its check. form: that of the source."""
        raise NotImplementedError

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        """For the report of a result: notes on operators, and what the result requires of a device."""
        return (), None

    def endings_with(self, choices: Mapping[str, Any]) -> tuple[str, ...]:
        """The endings that files can have with these choices."""
        return self.endings

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        """The file of an entry, in pieces. function: the entry's index in the module."""
        raise NotImplementedError

    def files(self, module: Module, function: int, target: Any, writing: Writing) -> Sequence[tuple[str, Pieces]]:
        """The files of an entry: for each what its name ends with behind the stem, one of `endings`, and its pieces.
        A single file has the ending ""."""
        return [("", self.pieces(module, function, target))]

    def reads(self, path: str) -> bool:
        """Whether `tflq verify` should run this file as one of the format."""
        return os.path.splitext(path)[1][1:] in self.suffixes


# Finding one.


@cache
def _outside() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=_GROUP) if entry.name not in _BACKENDS}


def names() -> tuple[str, ...]:
    """The names of all formats."""
    return (*_BACKENDS, *sorted(_outside()))


def suffixes() -> dict[str, str]:
    """The format of each suffix. If several formats have it, the first one counts; tflq's own come first."""
    return {suffix: name for name in reversed(names()) for suffix in _loaded(name).suffixes}


@cache
def _loaded(name: str) -> Backend:
    if name in _BACKENDS:
        folder, kind = _BACKENDS[name]
        result: Backend = getattr(import_module(f"tflq.formats.{folder}.backend"), kind)()
        return result
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
    if not isinstance(name, str) or name not in _BACKENDS:
        check_choice("format", name, names())
    return _loaded(name)


def named_by(path: FilePath) -> str:
    """The name of the format of a destination, by its suffix. OptionError if no format has the suffix."""
    suffix = os.path.splitext(path)[1]
    if suffix[1:] in _BACKENDS:
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
    dims; with `static` the first. OptionError for a name that none has."""
    usual = _loaded(DEFAULT)
    if target is None or str(target) in usual.targets:
        return usual
    owners = [each for each in _others() if str(target) in each.targets or each.owns(str(target))]
    if not owners and not str(target).endswith(".toml") and not os.path.exists(target):
        raise unknown_target(target, dict.fromkeys(name for each in (usual, *_others()) for name in each.targets))
    open_ones = [each for each in owners if static or not each.static]
    return next(iter((*open_ones, *owners)), usual)


def opening(path: str) -> Backend:
    """The format as which a file is run: TFLite if no other reads it."""
    return next((each for each in _others() if each.reads(path)), _loaded(DEFAULT))


def _others() -> Iterator[Backend]:
    return (_loaded(name) for name in names() if name != DEFAULT)
