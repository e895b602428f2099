"""What `--help` says beside what click makes of the commands: their order in groups, sections of options, examples.

`docs/cli.md` has the same (`scripts/make_cli_docs.py`), and a test runs every example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import click

__all__ = ["COMPLETION", "EXAMPLES", "GROUPS", "SectionedCommand", "with_examples"]

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Convert": {"convert": "Lower a model, or many, and write the result."},
    "Look": {
        "inspect": "Show what a model holds, and what a conversion would do.",
        "ops": "Show what becomes of each operator, on each signature.",
    },
    "Check": {
        "verify": "Run two models and compare them.",
        "reduce": "Find the smallest part of a model whose conversion fails.",
        "bisect": "Find the pass of a conversion that first changed a result.",
        "sweep": "Convert and verify many models, and see what changed.",
    },
    "Work on the text form": {"opt": "Print a model as text, and run passes on it."},
}
"""The commands by what they are for, each in a line."""
EXAMPLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "convert": (
        ("plain integers", "tflq convert model.tflite integer.tflite"),
        ("keep the kernels that the interpreter gets right", "tflq convert model.tflite fast.tflite --target kernels"),
        ("TOSA", "tflq convert model.tflite model.tosa"),
        ("through pipes", "cat model.tflite | tflq convert - - --format mlir > model.mlir"),
        ("refuse what has no integer form", "tflq convert model.tflite strict.tflite --fallback error"),
        ("the same models again and again: proven once", "tflq convert models/*.tflite -o converted --cache proofs"),
        ("what each pass does, and takes", "tflq convert model.tflite out.tflite --dump-ir passes --timings"),
        ("many models, in four processes", "tflq convert models/*.tflite -o converted --workers 4"),
    ),
    "inspect": (
        ("inputs, outputs, operators", "tflq inspect model.tflite"),
        ("what a conversion does with each operator, and why", "tflq inspect model.tflite --why"),
        ("the same for a target, for programs", "tflq inspect model.tflite --why --target kernels --json"),
        ("as text, large constants left out", "tflq inspect model.tflite --ir | head -40"),
    ),
    "ops": (
        ("what converts, and how", "tflq ops"),
        ("one operator, for TOSA", "tflq ops --operator conv_2d --target tosa"),
        ("for a device of your own", "tflq ops --target npu.toml"),
    ),
    "verify": (
        ("are they equal?", "tflq verify model.tflite integer.tflite"),
        ("where do they begin to differ?", "tflq verify model.tflite integer.tflite --layers"),
    ),
    "reduce": (("does its conversion fail, and where?", "tflq reduce model.tflite --target kernels"),),
    "bisect": (
        ("which pass changed a result?", "tflq bisect model.tflite"),
        ("the same for TOSA, for programs", "tflq bisect model.tflite --target tosa --json"),
    ),
    "sweep": (
        ("a folder of models, for two targets", "tflq sweep models -o after --target integer --target kernels"),
        ("with options of `tflq convert`", "tflq sweep models -o floats --mac float32 --fallback error"),
        ("go on with one that was interrupted", "tflq sweep models -o after --resume"),
    ),
    "opt": (
        ("the whole model as text", "tflq opt model.tflite > model.mlir"),
        ("some passes", "tflq opt model.mlir -p lower-quant-ops,canonicalize"),
        ("a conversion up to the integer form", "tflq opt model.tflite -p settle-shapes,legalize,canonicalize,dce"),
    ),
}
"""Per command: what for, and the line. They run in a folder with model.tflite, integer.tflite, models/ and npu.toml."""

COMPLETION: Final = {
    "bash, in ~/.bashrc": 'eval "$(_TFLQ_COMPLETE=bash_source tflq)"',
    "zsh, in ~/.zshrc": 'eval "$(_TFLQ_COMPLETE=zsh_source tflq)"',
    "fish, in ~/.config/fish/completions/tflq.fish": "_TFLQ_COMPLETE=fish_source tflq | source",
}


_ALL: Final = "tflq.help_all"


class SectionedCommand(click.Command):
    """A command whose options stand in sections: `sections` has the names of their parameters, and what is in none
    comes last. most_used: those that `--help` shows; `--help-all`, and docs/cli.md, have all. Empty: `--help` has."""

    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    most_used: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if self.most_used:
            shown = "Show all options and exit."
            flag = click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_help_all, help=shown
            )
            self.params.append(flag)

    def by_section(self, context: click.Context) -> Iterator[tuple[str, list[click.Parameter]]]:
        """The heads of the sections, and their options."""
        options = {p.name: p for p in self.get_params(context) if isinstance(p, click.Option) and not p.hidden}
        for head, names in self.sections.items():
            yield head, [options.pop(name) for name in names]
        yield "Options", list(options.values())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = list(self.by_section(ctx))
        if self.most_used and not ctx.meta.get(_ALL):
            by_name = {option.name: option for _, options in sections for option in options}
            sections = [("Options most used", [by_name[name] for name in (*self.most_used, "help_all")])]
        for head, options in sections:
            with formatter.section(head):
                formatter.write_dl([record for o in options if (record := o.get_help_record(ctx)) is not None])


def _help_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def with_examples(command: click.Command, name: str) -> click.Command:
    """Gives a command its examples."""
    lines = [f"# {what}\n{line}" for what, line in EXAMPLES[name]]
    command.epilog = "\b\nExamples:\n" + "\n".join(lines).replace("\n", "\n  ").join(["  ", ""])
    return command
