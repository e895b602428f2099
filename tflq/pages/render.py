"""Templates to HTML: jinja2, with everything escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["render"]


@cache
def _environment() -> Environment:
    loader = PackageLoader("tflq.pages")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **values: Any) -> str:
    """A template of `templates/`, filled in."""
    return _environment().get_template(template).render(**values)
