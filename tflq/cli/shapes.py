"""Shapes of inputs, as commands take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["shape_option"]

_F = TypeVar("_F", bound=Callable[..., Any])


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
