"""`tflq.inspect`: what a model holds, and what a conversion would do with it."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tflq.conversion import convert
from tflq.formats import Source, held, read, size_of
from tflq.options import asked, format_for

if TYPE_CHECKING:
    from tflq.explorer.stages import Explored
    from tflq.ir.core import Module
    from tflq.report import Report
    from tflq.summary import Summary

__all__ = ["Inspection", "inspect"]


class Inspection:
    """A model looked at: what `tflq.inspect` returns; each part is made when first asked for.

    module: the model as it was read.
    target: what `report` and `explored` convert for.
    """

    def __init__(self, source: Source, target: str | os.PathLike[str] | None = None) -> None:
        self._source = held(source)
        self.target = target
        self.module: Module = read(self._source)

    def __repr__(self) -> str:
        return f"<Inspection of {self.module.source or 'a model'}>"

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return size_of(self._source)

    @cached_property
    def summary(self) -> Summary:
        """Inputs, outputs, operators by type, signatures, the arena that activations need (`functions[0].arena`)."""
        from tflq.summary import Summary

        return Summary.of(self.module)

    @cached_property
    def report(self) -> Report:
        """What a conversion does with each operator, and why: its `Report`. UnsupportedError if it is refused."""
        return convert(self._source, format=format_for(self.target), target=self.target).report

    @cached_property
    def text(self) -> str:
        """The model as text, large constants left out."""
        from tflq.ir.printer import print_module

        return print_module(self.module, elide=True)

    @cached_property
    def explored(self) -> Explored:
        """Graphs for Model Explorer, before conversion, in the integer form and after: `stages`, which as JSON are a
        file that it opens; `refused` says why the model cannot be converted, if so."""
        from tflq.explorer import explore

        return explore(self._source, self.target)

    def to_json(self) -> dict[str, Any]:
        """The summary in a versioned, documented form."""
        return self.summary.to_json()


def inspect(source: Source, *, target: str | os.PathLike[str] | None = None) -> Inspection:
    """What a model (a path, bytes or a binary file; TFLite or TOSA) holds, and what a conversion would do with it.

        found = tflq.inspect("model.tflite", target="kernels")
        print(found.summary.functions[0].inputs)
        print([row for row in found.report.rows if row.outcome == "float"])

    target: what `report` and `explored` convert for, as `tflq.convert` takes it.

    InvalidModelError: it is not a valid model. FileError: it cannot be read. OptionError: there is no such target.
    """
    asked(format_for(target), target)
    return Inspection(source, target)
