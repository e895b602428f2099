"""The pass contract.

A pass is a frozen dataclass whose fields are its options. `run` changes the module in place, or makes another, and
answers with it and whether anything changed. A pass says which form it takes and which it makes; what it found out for
later passes and for the report it notes in `Module.record`. The IR and its form are verified after each pass that
changed something, or once for the passes of a form; a failure names the pass, or these.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar, Literal, NamedTuple

from tflq.dialects.forms import Form, verify_form
from tflq.errors import OptionError, Reason, TflqError, VerificationError
from tflq.ir.core import Module
from tflq.ir.verifier import verify
from tflq.light import dataclass
from tflq.logs import DEBUG, stage

__all__ = ["Pass", "PassResult", "Pipeline", "Step", "verify_stage"]


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
    from tflq.users_code import fault_of_pass, is_users

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
