"""docs/cli.md: the commands, their options and examples, as the program itself declares them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from tflq.cli.main import (
    COMPLETION,
    EXAMPLES,
    GROUPS,
    SectionedCommand,
    group,
)

HEAD = """# The command line

Made by `scripts/make_docs.py` of what `tflq --help` and `tflq COMMAND --help` say.

- **Exit codes**: 0 done; 2 wrong usage, or a file that cannot be read or written; 3 not a valid model; 4 not supported;
  5 results differ, or the second model does not run (`verify`); 6 nothing comparable: the first does not run
  (`verify`); 70 a bug of tflq's own, with a file to report it by; 128 + n ended by signal n (130 by Ctrl-C, 143 by
  SIGTERM). Of many models the highest counts.
- **Streams**: results and summaries go to stdout; errors, progress and what `-v` says go to stderr. `-` as IN is
  standard input, as OUT standard output: then the summary goes to stderr, and `--format` says the format. A closed
  pipe (`| head`) ends a command quietly with 141.
- **Files**: OUT and what else a command writes are there whole or not at all, whatever ends the process. On Linux a
  file has no name until it is whole; elsewhere it is `.tflq-HOST-PROCESS-...` in the folder of OUT until then, as for a
  moment where a file is replaced. The next command that writes there removes those of processes that are gone. Nothing
  is replaced without `--force`, and the model to convert never. What is replaced keeps its mode; a link is written
  through. A pipe or `/dev/stdin` as a model is read whole, once.
- **JSON**: with `--json` stdout has one document, with `format` and `version`; an error is one, too (`tflq.error`:
  `error`, `exit_code`, `message`, and `reasons` with `what`, `path`, `subgraph`, `operator`, `opcode`, `tensor`,
  `place`, `value`, `remedy`), with the same exit code. Many models are one document (`tflq.conversions`) that has a
  `tflq.conversion` or a `tflq.error` with its `source` for each. Numbers have all their digits; those that are not
  finite are "NaN", "Infinity" and "-Infinity".
- **Terminals**: tables wrap to the terminal's width, or to `COLUMNS`; in a pipe each row is one line. `NO_COLOR` and
  `FORCE_COLOR` do what they say.
"""


def page() -> str:
    """The page's text."""
    context = click.Context(group, info_name="tflq", **group.context_settings)
    lines = [HEAD]
    for title, commands in GROUPS.items():
        lines += [f"## {title}", ""]
        for name, what in commands.items():
            command = group.get_command(context, name)
            assert command is not None
            lines += [f"### tflq {name}", "", what, ""]
            own = click.Context(command, info_name=name, parent=context)
            lines += _command(own)
            for part, found in command.commands.items() if isinstance(command, click.Group) else ():
                lines += [f"#### tflq {name} {part}", ""]
                lines += _command(click.Context(found, info_name=part, parent=own))
            lines += _examples(name)
    lines += [
        "## Completion in the shell",
        "",
        "Put the line into the file; it completes commands, options and files.",
        "",
    ]
    for where, line in COMPLETION.items():
        lines += [f"{where}:", "", "```sh", line, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("```sh", usage, "```", "")
    yield from (inspect.cleandoc(command.help or "").replace("\b\n", ""), "")
    for head, options in _sections(command, context):
        yield from (f"| {head} | |", "|---|---|")
        for option in options:
            record = option.get_help_record(context)
            assert record is not None
            yield f"| {_code(record[0])} | {_cell(record[1])} |"
        yield ""


def _examples(name: str) -> Iterator[str]:
    yield "```sh"
    for what, line in EXAMPLES[name]:
        yield from (f"# {what}", line)
    yield from ("```", "")


def _sections(command: click.Command, context: click.Context) -> Iterator[tuple[str, list[click.Parameter]]]:
    if isinstance(command, SectionedCommand):
        yield from command.by_section(context)
    else:
        yield "Options", [p for p in command.get_params(context) if isinstance(p, click.Option)]


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
