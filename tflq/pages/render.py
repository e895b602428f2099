"""Templates to HTML: jinja2 (of the extra `verify`), with everything escaped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from tflq.errors import Reason, TflqError, to_install

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render", "render_pieces"]


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise TflqError(
            Reason("pages are made with jinja2, which is not installed", remedy=to_install("verify"))
        ) from error
    loader = PackageLoader("tflq.pages")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **values: Any) -> str:
    """A template of `templates/`, filled in. TflqError without jinja2."""
    return _environment().get_template(template).render(**values)


def render_pieces(template: str, **values: Any) -> Iterator[str]:
    """The same in pieces, in order: what a value is asked for late may be known late. TflqError without jinja2."""
    return _environment().get_template(template).generate(**values)
