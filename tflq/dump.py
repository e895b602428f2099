"""The text of a model after each pass that changed something, in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from tflq.contract import Step
from tflq.errors import FileError
from tflq.files import file_errors, replace_file
from tflq.ir.core import Module
from tflq.ir.printer import print_module

__all__ = ["Dump"]


class Dump:
    """`00-read.mlir`, then a file per pass that changed something, with the number of the pass.

    FileError: the folder has files of an earlier run, and `force` does not allow to remove them.
    """

    def __init__(self, folder: str | os.PathLike[str], module: Module, *, force: bool = False) -> None:
        self._folder = Path(folder)
        self._number = 0
        with file_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            old = [*self._folder.glob("[0-9][0-9]-*.mlir")]
            if old and not force:
                remedy = "give force (--force) to replace them"
                raise FileError(os.fspath(old[0]), "it is of an earlier run", remedy=remedy)
            for path in old:
                path.unlink()
        self._write("read", module)

    def after(self, step: Step) -> None:
        """Writes the module after a pass, if the pass changed it."""
        self._number += 1
        if step.modified:
            self._write(step.item.name, step.module)

    def _write(self, name: str, module: Module) -> None:
        replace_file(self._folder / f"{self._number:02}-{name}.mlir", [print_module(module).encode()])
