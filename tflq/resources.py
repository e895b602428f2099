"""Where the data files are: `schema/` and `rules/`, inside the package in a wheel, beside it in a checkout."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from tflq.toml import read_toml

__all__ = ["content", "resource"]

PACKAGE = os.path.dirname(os.path.realpath(__file__))


@cache
def resource(name: str) -> str:
    """The path of a data file or folder, such as `schema/tflite.toml`. FileNotFoundError if it is in neither place."""
    beside = os.path.dirname(PACKAGE)
    for root in (PACKAGE, beside):
        if os.path.exists(path := os.path.join(root, name)):
            return path
    raise FileNotFoundError(f"{name} is neither in {PACKAGE} nor in {beside}: the installation is incomplete")


def content(name: str) -> dict[str, Any]:
    """What a TOML file among them says."""
    with open(resource(name), encoding="utf-8") as file:
        return read_toml(file.read())
