"""The pass contract.

A pass is a frozen dataclass whose fields are its options. `run` changes the module in place, or makes another, and
answers with it and whether anything changed. A pass says which form it takes and which it makes; what it found out for
later passes and for the report it notes in `Module.record`. The IR and its form are verified after each pass that
changed something, or once for the passes of a form; a failure names the pass, or these.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from tflq.dialects.forms import Form, verify_form
from tflq.errors import FileError, OptionError, Reason, TflqError, VerificationError
from tflq.files import Place, check_outputs, file_errors, replace_file
from tflq.ir.core import Function, Module, Op
from tflq.ir.printer import print_module
from tflq.ir.verifier import verify
from tflq.light import dataclass, field, replace

if TYPE_CHECKING:
    from logging import Logger


# The library's logger, `tflq`: silent until the caller gives it, or the root logger, a handler.
#
# INFO has a line per stage of a conversion, with its seconds; DEBUG one per pass, too, and one when a stage begins
# (marked `begins`). WARNING has what the report warns of. Where nobody has imported `logging` there is no handler,
# and it is not imported to find that out.


DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
"""The levels, as `logging` has them."""


def logger() -> Logger:
    """The logger itself."""
    import logging

    found = logging.getLogger("tflq")
    if not found.handlers:
        found.addHandler(logging.NullHandler())
    return found


def log(level: int, text: str, *values: object, extra: Mapping[str, Any] | None = None) -> None:
    """A line with values in it, if anybody may listen."""
    if "logging" in sys.modules:
        logger().log(level, text, *values, extra=extra)


@contextmanager
def stage(what: str, level: int = INFO) -> Iterator[None]:
    """Logs that a stage begins, and how long it took; what it raises is logged by whoever handles it."""
    log(DEBUG, "%s ...", what, extra={"begins": what})
    start = time.perf_counter()
    yield
    log(level, "%s: %.3f s", what, time.perf_counter() - start)


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    module: Module
    modified: bool


@dataclass(frozen=True)
class Pass(ABC):
    """A transformation of a module. A subclass with options is a frozen dataclass, too.

    takes: the form that it needs; None: any. makes: the form of its result; None: that of its operand; "any": it is
    not said. title: what users call a step of every conversion; the log has a line for it, and its errors, which speak
    of the model, do not name the pass. labels: it changes names and metadata, and no op: there is nothing to verify.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    takes: ClassVar[Form | None] = None
    makes: ClassVar[Form | Literal["any"] | None] = None
    labels: ClassVar[bool] = False

    @abstractmethod
    def run(self, module: Module) -> PassResult:
        """Transform `module`, whose IR is valid, into valid IR."""


class Step(NamedTuple):
    """One pass of a run: the module after it and its form, as far as known; seconds of the pass and of the verifier
    after it; how many ops there were before and after."""

    item: Pass
    module: Module
    form: Form | None
    modified: bool
    seconds: float
    verifying: float
    before: int
    after: int


@dataclass(frozen=True)
class Pipeline:
    """Passes run one after the other on a module in `form`; None: it is not known.

    each: the IR is verified after each pass; else once before a pass that makes another form, and at the end.
    """

    passes: Sequence[Pass]
    form: Form | None = None
    each: bool = True

    def run(self, module: Module) -> PassResult:
        """Run all passes. VerificationError, naming the pass, if one leaves invalid IR behind; OptionError if the
        module is not in the form that one takes, or for a fault of a pass that is none of tflq's own."""
        modified = False
        for step in self.steps(module):
            module, modified = step.module, modified or step.modified
        return PassResult(module, modified)

    def steps(self, module: Module) -> Iterator[Step]:
        """The same, pass by pass: each is run when it is asked for."""
        form, before = self.form, _size(module)
        unverified: list[Pass] = []
        for item, following in zip_longest(self.passes, self.passes[1:]):
            if item.takes is not None and item.takes != form:
                _check_form(item, module, form)
            start = time.perf_counter()
            result = self._result(item, module, form, unverified)
            done = time.perf_counter()
            if item.makes is not None:
                form = None if item.makes == "any" else item.makes
            elif item.takes is not None:
                form = item.takes
            if result.modified and not item.labels:
                unverified.append(item)
            if unverified and (self.each or following is None or following.makes not in (None, form)):
                _verify_after(unverified, result.module, form)
                unverified = []
            verified = time.perf_counter()
            if result.module is not module:
                result.module.record.join(module.record)
            module, after = result.module, _size(result.module)
            yield Step(item, module, form, result.modified, done - start, verified - done, before, after)
            before = after

    def _result(self, item: Pass, module: Module, form: Form | None, unverified: Sequence[Pass]) -> PassResult:
        try:
            return _result(item, module)
        except TflqError:
            raise
        except Exception as error:
            if unverified:  # what it stumbled over may be what they left
                _verify_after(unverified, module, form)
            _blame(item, error)
            raise


def _result(item: Pass, module: Module) -> PassResult:
    try:
        with stage(item.title) if item.title else stage(f"pass {item.name}", DEBUG):
            result = item.run(module)
    except TflqError as error:
        if not item.title:
            error.add_note(f"in pass '{item.name}'")
        raise
    if not isinstance(result, PassResult):
        raise TypeError(f"run() gives {type(result).__name__}, not a PassResult")
    return result


def _blame(item: Pass, error: BaseException) -> None:
    """OptionError if it is a user's pass that failed so."""
    if is_users(item):
        raise fault_of_pass(error, item) from error


def _check_form(item: Pass, module: Module, form: Form | None) -> None:
    """OptionError if a module is not in the form that a pass takes."""
    assert item.takes is not None
    what = f"pass '{item.name}' takes the {item.takes} form"
    if form is not None:
        raise OptionError(Reason(f"{what}, and gets the {form} form", module.source, value=item.name))
    try:
        verify_form(module, item.takes)
    except VerificationError as error:
        raise OptionError(Reason(f"{what}, and the module is not in it: {error}", module.source)) from error


def _size(module: Module) -> int:
    return sum(len(function.ops) for function in module.functions)


def _verify_after(passes: Sequence[Pass], module: Module, form: Form | None) -> None:
    try:
        verify_stage(module, form, ", ".join(item.title or f"pass '{item.name}'" for item in passes))
    except VerificationError as error:
        if len(passes) == 1:
            _blame(passes[0], error.__cause__ or error)
        raise


def verify_stage(module: Module, form: Form | None, stage: str) -> None:
    """VerificationError, naming the stage that left it behind, if the IR is invalid or not in its form."""
    try:
        verify(module)
        if form is not None:
            verify_form(module, form)
    except VerificationError as error:
        raise VerificationError(f"{stage} left invalid IR: {error}") from error


# The text of a model after each pass that changed something, in a folder.


_NAMES: Final = "[0-9][0-9]-*.mlir"


def check_folder(
    folder: str | os.PathLike[str], *, beside: Iterable[Place | None], inputs: Iterable[object], force: bool
) -> None:
    """Checks a folder before a dump: what an earlier run left is removed, and needs `force`.

    FileError: without that, or if an input, or an output beside the dump, has a name as files of the dump.
    """
    others = [os.path.realpath(place) for place in beside if isinstance(place, (str, os.PathLike))]
    for path in others:
        if fnmatch(os.path.basename(path), _NAMES) and os.path.dirname(path) == os.path.realpath(folder):
            raise FileError(path, "the dump has files of such names", remedy="write to another folder")
    with file_errors(folder):
        check_outputs([(path.name, path) for path in _left(folder)], inputs=inputs, force=force)


def _left(folder: str | os.PathLike[str]) -> Iterator[Path]:
    return Path(folder).glob(_NAMES)


class Dump:
    """`00-read.mlir`, then a file per pass that changed something, with the number of the pass. What an earlier run
    left goes when the first file is written; `check_folder` says whether it may."""

    def __init__(self, folder: str | os.PathLike[str], module: Module) -> None:
        self._folder = Path(folder)
        self._number = 0
        with file_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            old = [*_left(folder)]
            first = self._write("read", module)
            for path in old:
                if path != first:
                    path.unlink()

    def after(self, step: Step) -> None:
        """Writes the module after a pass, if the pass changed it."""
        self._number += 1
        if step.modified:
            self._write(step.item.name, step.module)

    def _write(self, name: str, module: Module) -> Path:
        path = self._folder / f"{self._number:02}-{name}.mlir"
        replace_file(path, [print_module(module).encode()])
        return path


# What passes find out on their way that later ones and the report need; each is noted in `Module.record`.


@dataclass(slots=True)
class Decision:
    """What became of one operator of the source model: a row of the report."""

    op: Op
    path: str  # "kept", "integer" or "float"
    reason: str = ""
    warning: str = ""
    exception: str = ""  # which of `tflq.legalize.fallback` the warning is of
    remedy: str = ""  # what to do about the warning
    made: list[Op] = field(default_factory=list)
    rule: Callable[..., object] | None = None  # that answered, where one did
    not_kernel: str = ""  # why none of the kernels that the target lists for it was taken


@dataclass(frozen=True, slots=True)
class Decisions:
    """What became of each operator, in the order of the source."""

    rows: Sequence[Decision] = ()

    @staticmethod
    def of(module: Module) -> Sequence[Decision]:
        """Those noted on a module; none if nothing was decided."""
        found = module.record.find(Decisions)
        return () if found is None else found.rows


@dataclass(frozen=True, slots=True)
class LargeTables:
    """What each table of two operands saves in a run, in nanoseconds."""

    gains: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The names of the source's tensors, which no other tensor gets."""

    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceFunctions:
    """The functions that legalization read: the part of the source that is converted, at the shapes that it is
    converted for. What it keeps of them it copies, so that no later pass changes their ops."""

    functions: Sequence[Function] = ()


# Faults of Python that a user gives, told as such: file, line and what was raised there, not as a bug of tflq.


_MEND = "mend the file"


def fault_of_file(error: BaseException, path: str) -> OptionError:
    """The error for what importing a file raised."""
    if isinstance(error, SyntaxError) and error.filename == path:
        text = f": {error.text.strip()}" if error.text else ""
        return OptionError(Reason(f"{error.msg}{text}", path, place=str(error.lineno or 1), remedy=_MEND))
    return OptionError(_raised(error, path, 1, "importing the file"))


def fault_of_rule(error: Exception, rule: Callable[..., Any], op: Op) -> OptionError:
    """The error for what a rule raised for an operator, or for the invalid IR that it made."""
    reason = _raised(error, *_place(rule), f"the rule '{name_of(rule)}' for {op.location or op.name}")
    if (at := op.location) is not None:
        what = reason.what.replace(f": {at}: ", ": ", 1)  # the verifier says it as well
        reason = replace(
            reason, what=what, subgraph=at.function, operator=at.operator, opcode=at.opcode, tensor=at.tensor
        )
    return OptionError(reason)


def fault_of_pass(error: BaseException, item: Pass) -> OptionError:
    """The error for what a pass raised, or for the invalid IR that it left."""
    return OptionError(_raised(error, *_place(type(item).run), f"the pass '{item.name}'"))


def is_users(item: Pass) -> bool:
    """Whether a pass is none of tflq's own."""
    return type(item).__module__.partition(".")[0] != "tflq"


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    """The file and the line of a function, if it is one of Python."""
    code = getattr(function, "__code__", None)
    return ("", 1) if code is None else (code.co_filename, code.co_firstlineno)


def name_of(rule: Callable[..., Any]) -> str:
    """What messages call a rule."""
    return getattr(rule, "__qualname__", "") or repr(rule)


def _raised(error: BaseException, path: str, line: int, who: str) -> Reason:
    """The reason, at the innermost line of the file that the error went through, or else at `line`."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path and f.lineno]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    did = (
        f"makes invalid IR: {str(error).splitlines()[0]}" if isinstance(error, VerificationError) else f"raises {said}"
    )
    missing = error.name if isinstance(error, ImportError) else None
    remedy = f"install '{missing}' where tflq runs, or leave the import out" if missing else _MEND
    return Reason(f"{who} {did}", path, place=str(lines[-1] if lines else line), remedy=remedy)
