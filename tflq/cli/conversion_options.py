"""The options of a conversion that change its result, declared once for all commands that convert.

Their names are the keywords of `tflq.convert`. The values of a choice, and what is taken where nothing is said, are
those of `tflq.options`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

# Shapes of inputs, as commands take them.


def shape_option(more: str = "") -> Callable[[_F], _F]:
    """The option --shape; `more` is added to its help."""
    return click.option(
        "--shape",
        "shapes",
        metavar="INPUT=1,224,224,3",
        multiple=True,
        callback=lambda _, __, given: _input_shapes(given),
        help=f"The whole shape of an input; may be repeated.{more}",
    )


def _input_shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs by name."""
    found = {}
    for text in given:
        name, _, dims = text.rpartition("=")
        try:
            found[name] = tuple(int(d) for d in dims.split(",") if d)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"'{text}' is not INPUT=DIM,DIM,...")
    return found


_F = TypeVar("_F", bound=Callable[..., Any])


class _Format(click.Choice[str]):
    """The formats that there are: asked for when one is given or listed, so that packages are not searched before."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from tflq.backends import names

        return names()

    @choices.setter
    def choices(self, _: tuple[str, ...]) -> None:
        pass


FORMAT: Final = _Format()


def _targets() -> Iterable[str]:
    from tflq.backends import backend, names

    return dict.fromkeys(target for name in names() for target in backend(name).targets)


def complete_target(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What `--target` completes to: names, and files."""
    names = [CompletionItem(name) for name in _targets() if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def _choice(name: str, known: Sequence[str], help: str) -> Callable[[Any], Any]:
    """An option that is one of some words, by default the first."""
    return click.option(f"--{name}", type=click.Choice(known), default=known[0], show_default=True, help=help)


_OPTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "mac": _choice(
        "mac",
        ["integer", "float32"],
        "How convolutions are computed: int8 matrix products, or float32 convolutions proven exact (faster).",
    ),
    "prefer": _choice(
        "prefer",
        ["speed", "size", "memory"],
        "Which of several exact forms a .tflite file gets: the fastest, the smallest file, or the least memory.",
    ),
    "fallback": _choice(
        "fallback",
        ["float", "error"],
        "For an operator without an integer form: compute it in float32, or stop with an error.",
    ),
    "semantics": _choice(
        "semantics",
        ["interpreter", "real"],
        "Where a kernel ignores quantization parameters: do as the kernel does, or as the parameters say.",
    ),
    "state": click.option(
        "--state",
        type=click.Choice(["kept", "variables"]),
        help="Operators that hold state, in a .tflite file. By default kept, unless a target's file does not list "
        "them.",
    ),
    "reset_signature": click.option(
        "--reset-signature",
        is_flag=True,
        help="Add a signature 'tflq_reset' that resets state lowered into variables; the model's own need their keys "
        "then.",
    ),
    "rules": click.option(
        "--rules",
        metavar="FILE.py",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False),
        help="A Python file with rules of your own for operators (its EXTENSION); they are tried before those of tflq.",
    ),
    "batch": click.option(
        "--batch",
        type=click.IntRange(1),
        help="The batch size (first dim of the inputs) where the model leaves it open.",
    ),
    "shapes": shape_option(),
    "signature": click.option(
        "--signature", metavar="KEY", help="Convert only this signature. (TOSA files hold one each.)"
    ),
    "cut": click.option(
        "--cut",
        metavar="TENSOR[,TENSOR]",
        multiple=True,
        callback=lambda _, __, given: tuple(name for text in given for name in text.split(",") if name),
        help="Convert only the part before these tensors, which become the outputs.",
    ),
    "cut_before_custom": click.option(
        "--cut-before-custom",
        is_flag=True,
        help="Convert the part before the first custom operators; what they read becomes outputs.",
    ),
}

FORMS: Final = ("mac", "prefer", "fallback", "semantics", "state", "reset_signature", "rules")
"""What the result is, beside its target."""
PARTS: Final = ("signature", "cut", "cut_before_custom", "batch", "shapes")
"""Which part of a model is converted, at which shapes."""
OF_ONE_MODEL: Final = ("signature", "cut", "shapes")
"""What names signatures, tensors or inputs, which other models do not have."""


def conversion_options(*names: str) -> Callable[[_F], _F]:
    """The options of these names; without any, all of them."""

    def declared(function: _F) -> _F:
        for name in reversed(names or tuple(_OPTIONS)):
            function = _OPTIONS[name](function)
        return function

    return declared
