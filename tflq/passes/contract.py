"""The pass contract.

A pass is a frozen dataclass whose fields are its options. `run` changes the module in place and hands it back
with whether it changed anything. After each pass of a pipeline the IR is verified, and its form if the pipeline
stays in one; a failure names the pass.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tflq.dialects.forms import Form, verify_form
from tflq.errors import TflqError, VerificationError
from tflq.ir.core import Module
from tflq.ir.verifier import verify
from tflq.logs import stage

__all__ = ["Pass", "PassResult", "Pipeline", "verify_stage"]


@dataclass(frozen=True, slots=True)
class PassResult:
    """The module after a pass, and whether the pass changed it."""

    module: Module
    modified: bool


class Pass(ABC):
    """A transformation of a module."""

    name: ClassVar[str]

    @abstractmethod
    def run(self, module: Module) -> PassResult:
        """Transform `module`, whose IR is valid, into valid IR."""


@dataclass(frozen=True)
class Pipeline:
    """Passes run one after the other; each leaves the module in `form`, if that is given."""

    passes: Sequence[Pass]
    form: Form | None = None

    def run(self, module: Module) -> PassResult:
        """Run all passes. VerificationError, naming the pass, if one leaves invalid IR behind."""
        modified = False
        for item in self.passes:
            result = self._run_one(item, module)
            module, modified = result.module, modified or result.modified
        return PassResult(module, modified)

    def _run_one(self, item: Pass, module: Module) -> PassResult:
        try:
            with stage(f"pass {item.name}", logging.DEBUG):
                result = item.run(module)
        except TflqError as error:
            error.add_note(f"in pass '{item.name}'")
            raise
        if result.modified:
            verify_stage(result.module, self.form, f"pass '{item.name}'")
        return result


def verify_stage(module: Module, form: Form | None, stage: str) -> None:
    """VerificationError, naming the stage that left it behind, if the IR is invalid or not in its form."""
    try:
        verify(module)
        if form is not None:
            verify_form(module, form)
    except VerificationError as error:
        raise VerificationError(f"{stage} left invalid IR: {error}") from error
