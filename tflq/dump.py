"""The text of a model after each pass that changed something, in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tflq.contract import Step
from tflq.errors import FileError
from tflq.files import Place, check_outputs, file_errors, replace_file
from tflq.ir.core import Module
from tflq.ir.printer import print_module

__all__ = ["Dump", "check_folder"]

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
