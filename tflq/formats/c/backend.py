"""C99 as a result: a source and a header that need a compiler and nothing else.

The source is TOSA's form: its tables have 513 entries at most, and it computes without doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tflq.base.arguments import check_choice, check_text
from tflq.base.files import FilePath, Pieces
from tflq.formats.backend import Backend, Writing

if TYPE_CHECKING:
    from tflq.ir.module import Module
    from tflq.transforms.pass_manager import Pass


class C(Backend):
    """C99: a source and a header, and with `--data` a file of constants."""

    name = "c"
    form = "tosa"
    targets = ("c",)
    static = True
    close = False
    one_entry = False
    text = True
    usual_batch = 1
    names_source = True
    choices: ClassVar = ("data", "name")
    endings: ClassVar = (".c", ".h", "_data.c", ".bin")
    runner = "tflq.tools.verify.c_runner:CompiledRunner"

    def target(self, name: FilePath | None) -> Any:
        """TOSA's rules without the limits of a device."""
        super().target(name)
        from tflq.formats.tosa.rules import load_target

        return load_target(None)

    def check_choices(self, choices: Mapping[str, Any]) -> None:
        from tflq.formats.c.names import identifier
        from tflq.formats.c.write import DATA

        super().check_choices(choices)
        check_choice("data", choices.get("data"), DATA, optional=True)
        check_text("name", choices.get("name"), "a name for C's functions")
        identifier(choices.get("name"))

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.formats.c.program import CheckC
        from tflq.formats.tosa.backend import to_tosa
        from tflq.formats.tosa.check import CheckLaws
        from tflq.transforms.by_rows import ByRows
        from tflq.transforms.narrow_storage import NarrowStorage
        from tflq.transforms.one_channel import OneChannel
        from tflq.transforms.shared_tables import SharedTables

        first = [CheckLaws()] if form == "tosa" else to_tosa(options)
        return [*first, OneChannel(), ByRows(), SharedTables(), NarrowStorage(), CheckC()]

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.transforms.pass_manager import Notes

        return Notes.of(module, real=options.semantics == "real"), None

    def endings_with(self, choices: Mapping[str, Any]) -> tuple[str, ...]:
        others = {"separate": ("_data.c",), "inline": (), "blob": (".bin",)}
        return (".c", ".h", *others.get(choices.get("data", ""), (".bin",)))  # large constants are a blob

    def files(self, module: Module, function: int, target: Any, writing: Writing) -> Sequence[tuple[str, Pieces]]:
        from tflq.formats.c.names import identifier
        from tflq.formats.c.program import program_of
        from tflq.formats.c.write import Writer

        name = identifier(writing.choices.get("name"), writing.stem)
        return Writer(program_of(module), module, name, writing).files()

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        return self.files(module, function, target, Writing())[0][1]
