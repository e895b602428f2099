"""`tflq.inspect`: what a model holds, and what a conversion would do with it."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tflq.backends import of_target
from tflq.conversion import convert
from tflq.formats import Source, held, read, size_of
from tflq.options import asked

if TYPE_CHECKING:
    from tflq.explorer.stages import Explored
    from tflq.ir.core import Module
    from tflq.report import Report
    from tflq.summary import Summary

__all__ = ["Inspection", "inspect"]


class Inspection:
    """What a model contains: returned by `tflq.inspect`. Each part is computed when first asked for.

    Attributes:
        module: The model as it was read.
        target: What `report` and `explored` convert for.
    """

    def __init__(self, source: Source, target: str | os.PathLike[str] | None = None) -> None:
        self._source = held(source)
        self.target = target
        self.module: Module = read(self._source)

    def __repr__(self) -> str:
        return f"<Inspection of {self.module.source or 'a model'}>"

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return size_of(self._source)

    @cached_property
    def summary(self) -> Summary:
        """Inputs, outputs, operators by type, signatures, and memory for activations (`functions[0].arena`)."""
        from tflq.summary import Summary

        return Summary.of(self.module)

    @cached_property
    def report(self) -> Report:
        """What a conversion does with each operator, and why.

        Raises:
            UnsupportedError: The model cannot be converted for the target.
        """
        return convert(self._source, format=of_target(self.target).name, target=self.target).report

    @cached_property
    def text(self) -> str:
        """The model as text, without large constants."""
        from tflq.ir.printer import print_module

        return print_module(self.module, elide=True)

    @cached_property
    def explored(self) -> Explored:
        """Graphs for Model Explorer: before conversion, in the integer form, and after (`stages`; as JSON they are a
        file that it opens). If the model cannot be converted, `refused` says why.
        """
        from tflq.explorer import explore

        return explore(self._source, self.target)

    def to_json(self) -> dict[str, Any]:
        """The summary in a versioned JSON form."""
        return self.summary.to_json()


def inspect(source: Source, *, target: str | os.PathLike[str] | None = None) -> Inspection:
    """Look into a model: what it contains, and what a conversion would do with it.

    Args:
        source: The model (TFLite or TOSA): a path, bytes or a binary file object.
        target: What `report` and `explored` convert for, as in `tflq.convert`.

    Returns:
        The module. Summary, report, text and graphs are computed when first asked for.

    Raises:
        InvalidModelError: The source is not a valid model.
        FileError: The source cannot be read.
        OptionError: There is no such target.

    Example:
        ```python
        found = tflq.inspect("model.tflite", target="kernels")
        print(found.summary.functions[0].inputs)
        print([row for row in found.report.rows if row.outcome == "float"])
        ```
    """
    asked(of_target(target).name, target)
    return Inspection(source, target)
