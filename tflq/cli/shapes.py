"""Shapes of inputs, as commands take them."""

from __future__ import annotations

import click

__all__ = ["input_shapes"]


def input_shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
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
