"""The interface of passes, their runs, and the traces of a run: records, and dumps of the IR.

The options of a pass are the parameters of its class. `run` changes the module in place, or makes another, and returns
it and whether anything changed. A pass says which form it takes and which form it makes. What it learns for later
passes and for the report, it notes in `Module.record`. The IR and its form are verified after each pass that
changed something, or once for all passes on the same form; an error names the passes since the last check.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeVar

import numpy as np

from tflq.base.errors import FileError, OptionError, Reason, TflqError, VerificationError
from tflq.base.faults import fault_of_pass
from tflq.base.files import FilePath, Place, check_outputs, file_errors, replace_file
from tflq.base.logs import DEBUG, stage
from tflq.dialects.forms import ModuleForm, verify_form
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op
from tflq.ir.verifier import verify

Result = TypeVar("Result")


class PassResult(NamedTuple):
    """The module after a pass, whether the pass changed it, and what it did, in a sentence for people; most passes say
    nothing. Of a pipeline: a line for each pass that says something, with its name."""

    module: Module
    modified: bool
    summary: str = ""

    @classmethod
    def of(cls, module: Module, change: Callable[[Function], bool]) -> PassResult:
        """After a change of each function, which says whether there was one."""
        changed = [change(function) for function in module.functions]
        return cls(module, any(changed))


class Pass:
    """A transformation of a module. The parameters of a subclass are its options; nothing changes them.

    takes: the form that it needs; None: any. makes: the form of its result; None: the same as before; "any": unknown.
    runs_on: classes of ops, or traits, without which it has nothing to do, and is not run; none: it always is.
    relies: what it asks of ops holds only of valid IR in the form that it takes, so this is verified before it runs.
    title: what users call a step of every conversion. The log has a line for it, and its errors, which are about the
    model, do not name the pass. labels: it changes only names and metadata, so nothing needs to be verified.
    in_step: of functions it changes ops and operands by `Function.replace` and `take_out` alone, and values by
    `move_name`, so users and ops by class stay known. Without it, conversions take 1.9 to 3.4 % more instructions.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    takes: ClassVar[ModuleForm | None] = None
    makes: ClassVar[ModuleForm | Literal["any"] | None] = None
    runs_on: ClassVar[tuple[type, ...]] = ()
    relies: ClassVar[bool] = False
    labels: ClassVar[bool] = False
    in_step: ClassVar[bool] = False

    def run(self, module: Module) -> PassResult:
        """Transform `module`, whose IR is valid, into valid IR."""
        raise NotImplementedError(f"{type(self).__name__} has no run()")


class Step:
    """One pass of a run: the module after it, its form if known, and its summary. With the seconds of the pass and
    of the verifier after it, and the number of ops before and after."""

    __slots__ = ("after", "before", "form", "item", "modified", "module", "seconds", "summary", "verifying")

    def __init__(
        self,
        item: Pass,
        module: Module,
        form: ModuleForm | None,
        modified: bool,
        seconds: float,
        verifying: float,
        before: int,
        after: int,
        summary: str = "",
    ) -> None:
        self.item: Final = item
        self.module: Final = module
        self.form: Final = form
        self.modified: Final = modified
        self.seconds: Final = seconds
        self.verifying: Final = verifying
        self.before: Final = before
        self.after: Final = after
        self.summary: Final = summary


class Pipeline:
    """Passes that run one after the other on a module in `form`; None: unknown.

    each: verify the IR after each pass. Otherwise it is verified before a pass that makes another form, and at the end.
    keep: what passes asked of the functions stays known after the last, for who reads the module next, until `forget`.
    """

    def __init__(
        self, passes: Sequence[Pass], form: ModuleForm | None = None, each: bool = True, keep: bool = False
    ) -> None:
        self.passes: Final = passes
        self.form: Final = form
        self.each: Final = each
        self.keep: Final = keep

    def run(self, module: Module) -> PassResult:
        """Run all passes. VerificationError, naming the pass, if one leaves invalid IR behind. OptionError if the
        module is not in the form that a pass takes, or if a user's pass fails."""
        modified = False
        lines: list[str] = []
        for step in self.steps(module):
            module, modified = step.module, modified or step.modified
            if step.summary:
                lines.append(f"{step.item.name}: {step.summary}")
        return PassResult(module, modified, "\n".join(lines))

    def steps(self, module: Module) -> Iterator[Step]:
        """Run the passes one at a time, each when it is asked for."""
        with _Facts(module, self.keep) as facts:
            yield from self._steps(module, facts)

    def _steps(self, module: Module, facts: _Facts) -> Iterator[Step]:
        form, before = self.form, _size(module)
        unverified: list[Pass] = []
        for item, following in zip_longest(self.passes, self.passes[1:]):
            if item.takes is not None and item.takes != form:
                _check_form(item, module, form)
            if item.relies and unverified:
                _verify_after(unverified, module, form)
                unverified = []
            start = time.perf_counter()
            facts.before(item)
            try:
                result = _result(item, module)
            except TflqError:
                raise
            except Exception as error:
                if unverified:  # the passes before may have left what it failed on
                    _verify_after(unverified, module, form)
                _blame(item, error)
                raise
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
            facts.after(item, result)
            seconds = done - start, verified - done
            yield Step(item, module, form, result.modified, *seconds, before, after, result.summary)
            before = after


def forget(module: Module) -> None:
    """Drops what passes asked of the functions of a module, before others may change it."""
    for function in module.functions:
        function.keep_facts(False)


class _Facts:
    """Facts of the functions of a module, remembered while passes run (`Function.keep_facts`). stay: and after, but
    for users, which take memory."""

    def __init__(self, module: Module, stay: bool) -> None:
        self._functions = list(module.functions)
        self._stay = stay

    def __enter__(self) -> Self:
        self._keep(True)
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed or not self._stay:
            self._keep(False)
        else:
            for function in self._functions:
                function.forget_users()

    def before(self, item: Pass) -> None:
        """Keeps them while a pass runs; users and ops by class also of what it changes in step."""
        self._keep(True, in_step=item.in_step and _is_builtin(item))

    def after(self, item: Pass, result: PassResult) -> None:
        """Drops those of what a pass changed. A user's pass is not taken at its word."""
        functions = result.module.functions
        if not _is_builtin(item) or functions != self._functions:
            self._keep(False)
            self._functions = list(functions)
        elif result.modified and not item.labels:
            for function in functions:
                function.changed()
        self._keep(True)

    def _keep(self, keep: bool, *, in_step: bool = False) -> None:
        for function in self._functions:
            function.keep_facts(keep, in_step=in_step)


def _is_builtin(item: Pass) -> bool:
    return type(item).__module__.partition(".")[0] == "tflq"


def _result(item: Pass, module: Module) -> PassResult:
    try:
        of = f" of {module.source}" if module.source else ""
        with stage(f"{item.title}{of}") if item.title else stage(f"pass {item.name}{of}", DEBUG):
            if item.runs_on and not any(function.has_ops(*item.runs_on) for function in module.functions):
                return PassResult(module, modified=False)
            result = item.run(module)
    except TflqError as error:
        if not item.title:
            error.add_note(f"in pass '{item.name}'")
        raise
    if not isinstance(result, PassResult):
        raise TypeError(f"run() returns {type(result).__name__}, not a PassResult")
    return result


def _blame(item: Pass, error: BaseException) -> None:
    """OptionError if the pass that failed is a user's."""
    if not _is_builtin(item):
        raise fault_of_pass(error, item.name, type(item).run) from error


def _check_form(item: Pass, module: Module, form: ModuleForm | None) -> None:
    """OptionError if a module is not in the form that a pass takes."""
    assert item.takes is not None
    what = f"pass '{item.name}' takes the {item.takes} form"
    if form is not None:
        raise OptionError(Reason(f"{what}, but gets the {form} form", module.source, value=item.name))
    try:
        verify_form(module, item.takes)
    except VerificationError as error:
        raise OptionError(Reason(f"{what}, but the module is not in it: {error}", module.source)) from error


def _size(module: Module) -> int:
    return sum(len(function.ops) for function in module.functions)


def _verify_after(passes: Sequence[Pass], module: Module, form: ModuleForm | None) -> None:
    try:
        verify_stage(module, form, ", ".join(item.title or f"pass '{item.name}'" for item in passes))
    except VerificationError as error:
        if len(passes) == 1:
            _blame(passes[0], error.__cause__ or error)
        raise


def verify_stage(module: Module, form: ModuleForm | None, stage: str) -> None:
    """VerificationError, naming the stage that left it behind, if the IR is invalid or not in its form."""
    try:
        verify(module)
        if form is not None:
            verify_form(module, form)
    except VerificationError as error:
        raise VerificationError(f"{stage} left invalid IR: {error}") from error


# What passes note in `Module.record` for later passes and for the report.


class Decision:
    """The outcome of one operator of the source model: a row of the report."""

    __slots__ = (
        "differs_under",
        "emitted",
        "exception",
        "not_kernel",
        "not_rule",
        "op",
        "path",
        "reason",
        "remedy",
        "rule",
        "warning",
    )

    def __init__(
        self,
        op: Op,
        path: str,
        reason: str = "",
        warning: str = "",
        exception: str = "",
        remedy: str = "",
        rule: Callable[..., object] | None = None,
        not_kernel: str = "",
        not_rule: str = "",
    ) -> None:
        self.op = op
        self.path = path  # "kept", "integer" or "float"
        self.reason = reason
        self.warning = warning
        self.exception = exception  # which of `tflq.legalize.caveats` the warning is of
        self.remedy = remedy  # what to do about the warning
        self.emitted: list[Op] = []
        self.rule = rule  # that lowered it, if one did
        self.not_kernel = not_kernel  # why none of the kernels that the target lists for it could be used
        self.not_rule = not_rule  # why none of the user's rules for it could be used
        self.differs_under: tuple[str, ...] = ()  # kernel sets under which it is computed otherwise


class Decisions:
    """The outcome of each operator, in the order of the source."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Decision] = ()) -> None:
        self.rows: Final = rows

    @staticmethod
    def of(module: Module) -> Sequence[Decision]:
        """The decisions noted on a module; empty if there are none."""
        noted = module.record.find(Decisions)
        return () if noted is None else noted.rows


class Note(NamedTuple):
    """A note of a lowering in the report on the operator at a location: a sentence, or a warning if `exception`
    names one of `tflq.legalize.caveats`. Then `remedy` is what the user can do."""

    location: Location | None
    text: str
    exception: str = ""
    remedy: str = ""


class Notes:
    """Notes of lowerings in the report on a module's operators."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Note] = ()) -> None:
        self.rows: Final = rows

    @staticmethod
    def of(module: Module, *, real: bool) -> Sequence[Note]:
        """The notes on a module. real: without warnings, which say how far the result is from the interpreter's."""
        noted = module.record.find(Notes) or Notes()
        return [note for note in noted.rows if not (real and note.exception)]


class Summaries:
    """Summaries that passes give of their changes, a line for each, in order; most give none. `tflq opt` prints
    them."""

    __slots__ = ("lines",)

    def __init__(self, lines: tuple[str, ...] = ()) -> None:
        self.lines: Final = lines

    @staticmethod
    def of(module: Module) -> tuple[str, ...]:
        """The lines noted on a module."""
        noted = module.record.find(Summaries)
        return () if noted is None else noted.lines

    @staticmethod
    def add(module: Module, item: Pass, did: object) -> None:
        """Notes what a pass did."""
        module.record.note(Summaries((*Summaries.of(module), f"{item.name}: {did}")))


class SourceNames:
    """The names of the source's tensors, which no other tensor gets."""

    __slots__ = ("names",)

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        self.names: Final = names


class SourceFunctions:
    """The functions that legalization read: the part of the source that is converted, with the shapes it is converted
    for. Legalization copies the ops that it keeps, so no later pass changes these."""

    __slots__ = ("functions",)

    def __init__(self, functions: Sequence[Function] = ()) -> None:
        self.functions: Final = functions


_SEARCHES: Final = 40
_BYTES_A_SEARCH: Final = 1 << 11


class Searches:
    """The searches for forms of a conversion that take longest, by what was found. One on the same numbers is made
    once. Together they take no longer than the source's constants are many: a small file cannot ask for many.

    A unit is about a tenth of a second. There are 40 of them, and one for each 2 KiB of constants. is_spent: whether a
    search was left out.
    """

    __slots__ = ("_left", "_results", "is_spent")

    def __init__(self, module: Module) -> None:
        source = module.record.find(SourceFunctions)
        functions = module.functions if source is None else source.functions
        operands = (v for function in functions for op in function.ops for v in op.operands)
        buffers = {v.buffer for v in operands if v is not None and v.buffer is not None}
        self._left = _SEARCHES + sum(buffer.data.size for buffer in buffers) // _BYTES_A_SEARCH
        self._results: dict[tuple[object, ...], Any] = {}
        self.is_spent = False

    def __call__(self, units: int, function: Callable[..., Result], *arguments: Any, **options: Any) -> Result | None:
        """The result of a pure function of `tflq.numerics` for these arguments, arrays among them; None if that
        would take more units than are left."""
        key = (function, *(_bytes_of(a) if isinstance(a, np.ndarray) else a for a in arguments), *options.items())
        if key not in self._results:
            if units > self._left:
                self.is_spent = True
                return None
            self._left -= units
            self._results[key] = function(*arguments, **options)
        fit: Result = self._results[key]
        return fit


def _bytes_of(array: np.ndarray) -> tuple[object, ...]:
    return array.dtype.str, array.shape, array.tobytes()


# `--dump-ir FOLDER`: `00-read.mlir`, then a file for each pass that changed something, with the number of the pass.

_DUMPED: Final = r"(?s:[0-9][0-9]-.*\.mlir)"


def check_folder(folder: FilePath, *, beside: Iterable[Place | None], inputs: Iterable[object], force: bool) -> None:
    """Checks a folder before a dump. Files of an earlier dump will be removed, which needs `force`.

    FileError: without it, or if an input or another output (`beside`) has the name of a file of the dump.
    """
    for place in beside:
        path = os.path.realpath(place) if isinstance(place, (str, os.PathLike)) else ""
        if re.fullmatch(_DUMPED, os.path.basename(path)) and os.path.dirname(path) == os.path.realpath(folder):
            raise FileError(path, "the dump has files of such names", remedy="write to another folder")
    with file_errors(folder):
        check_outputs([(os.path.basename(path), path) for path in _dumped(folder)], inputs=inputs, force=force)


def _dumped(folder: FilePath) -> list[str]:
    """The files of an earlier dump."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return [os.path.join(folder, name) for name in names if re.fullmatch(_DUMPED, name)]


class Dump:
    """The files of one run. Those of an earlier dump are removed when the first one is written, which `check_folder`
    has allowed."""

    def __init__(self, folder: FilePath, module: Module) -> None:
        self._folder = folder
        self._number = 0
        with file_errors(folder):
            os.makedirs(folder, exist_ok=True)
            earlier = _dumped(folder)
            first = self._write("read", module)
            for path in earlier:
                if path != first:
                    os.unlink(path)

    def after(self, step: Step) -> None:
        """Writes the module after a pass, if the pass changed it."""
        self._number += 1
        if step.modified:
            self._write(step.item.name, step.module)

    def _write(self, name: str, module: Module) -> str:
        from tflq.ir.text.printer import print_module

        path = os.path.join(self._folder, f"{self._number:02}-{name}.mlir")
        replace_file(path, [print_module(module).encode()])
        return path
