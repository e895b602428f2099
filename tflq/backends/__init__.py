"""The formats that a conversion writes: a `Backend` each, found by name, by suffix or by target.

tflq's own are listed here; an installed package adds one by an entry point in the group `tflq.backends`, whose name is
that of the format. A backend is imported when it is asked for.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tflq.errors import OptionError, Reason, check_choice

if TYPE_CHECKING:
    from tflq.contract import Pass
    from tflq.ir.core import Module

__all__ = ["Backend", "backend", "named_by", "names", "of_target", "opening", "suffixes"]

_GROUP: Final = "tflq.backends"
_BUILT_IN: Final = {name: f"tflq.backends.{name}" for name in ("tflite", "tosa", "mlir")}


class Backend:
    """A format of results, and all that tflq asks of it.

    Attributes:
        name: As `--format` says it.
        suffixes: Those of its files, without the dot; by default its name. The first is that of files that tflq names.
        targets: The names of its targets.
        builtins: Whether TFLite's builtins compute the result: state, resizable inputs and operators without quantized
            tensors can stay as they are.
        static: Whether it has no open dims.
        one_entry: Whether a file has one entry, so that each signature becomes a file.
        text: Whether files are text.
        requires: What runs a file: modules of which one has to be there, the package that has it, tflq's extra with it.
    """

    name: ClassVar[str]
    targets: ClassVar[tuple[str, ...]] = ()
    builtins: ClassVar[bool] = False
    static: ClassVar[bool] = False
    one_entry: ClassVar[bool] = True
    text: ClassVar[bool] = False
    requires: ClassVar[tuple[tuple[str, ...], str, str] | None] = None

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (self.name,)

    def owns(self, path: str) -> bool:
        """Whether a target's file is one of this format."""
        return False

    def target(self, asked: str | os.PathLike[str] | None) -> Any:
        """What a target allows. OptionError for one of another format."""
        check_choice("target", asked, self.targets, optional=True)

    def check_options(self, **asked: Any) -> None:
        """Refuses options of a conversion that do nothing for this format: OptionError."""
        for name, usual in (("mac", "integer"), ("prefer", "speed"), ("reset_signature", False), ("cache", None)):
            if asked[name] != usual:
                what = f"{name} is for TFLite files; a .{self.name} file has no use for it"
                raise OptionError(Reason(what, value=asked[name]))
        if asked["state"] == "kept":
            raise OptionError(Reason(f"state 'kept' is for TFLite files; in a .{self.name} file state is variables"))

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        """From the integer form to the result, with its check. form: that of the source."""
        raise NotImplementedError

    def lowering(self, options: Any, form: str) -> list[Pass]:
        """From the source to the result: by way of the integer form, unless a backend says otherwise."""
        from tflq.pipelines import to_integer_form

        return [*to_integer_form(options, form), *self.passes(options, form)]  # type: ignore[arg-type]

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        """For the report of a result: notes on operators, and what it requires of a device."""
        return (), None

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes | bytearray | memoryview]:
        """The file of an entry, piece by piece."""
        raise NotImplementedError

    def reads(self, path: str) -> bool:
        """Whether this is a file of the format, for `tflq verify`."""
        return os.path.splitext(path)[1][1:] in self.suffixes

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        """What runs a file: a `FileRunner` of `tflq.verification.runner`, but for TFLite."""
        raise OptionError(Reason(f"there is nothing that runs .{self.name} files", path))


@cache
def _outside() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=_GROUP) if entry.name not in _BUILT_IN}


def names() -> tuple[str, ...]:
    """The names of all formats."""
    return (*_BUILT_IN, *sorted(_outside()))


def suffixes() -> dict[str, str]:
    """The format of each suffix. Of several formats with the same one, the first has it: tflq's own come first."""
    found: dict[str, str] = {}
    for name in names():
        for suffix in _loaded(name).suffixes:
            found.setdefault(suffix, name)
    return found


@cache
def _loaded(name: str) -> Backend:
    if name in _BUILT_IN:
        made: Backend = importlib.import_module(_BUILT_IN[name]).BACKEND
        return made
    entry = _outside()[name]
    named, remedy = f"the entry point '{name}' of group {_GROUP}", "mend or uninstall the package that has it"
    try:
        found = entry.load()
    except Exception as error:
        what = f"{named} cannot be loaded: {type(error).__name__}: {error}"
        raise OptionError(Reason(what, entry.value, remedy=remedy)) from error
    if not isinstance(found, Backend) or getattr(found, "name", None) != name:
        raise OptionError(Reason(f"{named} is not a Backend of that name", entry.value, remedy=remedy))
    return found


def backend(name: Any) -> Backend:
    """A format by its name. OptionError if it is not known."""
    if not isinstance(name, str) or name not in _BUILT_IN:
        check_choice("format", name, names())
    return _loaded(name)


def named_by(path: str | os.PathLike[str]) -> str:
    """The name of the format that a destination's suffix names. OptionError if it names none."""
    suffix = os.path.splitext(path)[1]
    if suffix[1:] in _BUILT_IN:
        return suffix[1:]
    known = suffixes()
    if suffix[1:] in known:
        return known[suffix[1:]]
    what = f"the suffix says the format, and '{suffix}' names none"
    remedy = f"there are {', '.join(f'.{each}' for each in known)}"
    raise OptionError(Reason(what, os.fspath(path), value=suffix, remedy=remedy))


def of_target(target: str | os.PathLike[str] | None, *, static: bool = False) -> Backend:
    """The format that a target is of: TFLite unless another one has it; with open dims where there is such a one.
    static: the first that there is, whatever it says of open dims."""
    path = "integer" if target is None else str(target)
    if path not in _loaded("tflite").targets:
        owners = [each for each in _others() if path in each.targets or each.owns(path)]
        for each in owners:
            if static or not each.static:
                return each
        if owners:
            return owners[0]
    return _loaded("tflite")


def opening(path: str) -> Backend:
    """The format that a file is of, for running it: TFLite's if no other reads it."""
    return next((each for each in _others() if each.reads(path)), _loaded("tflite"))


def _others() -> Iterator[Backend]:
    return (_loaded(name) for name in names() if name != "tflite")
