"""Tables that scripts write into pages, between marks that name them: <!-- NAME: begin --> and <!-- NAME: end -->."""

from __future__ import annotations


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"


def marked(text: str, name: str) -> str:
    """What is between the marks of a page. ValueError if it lacks them."""
    begin, end = _marks(name)
    if begin not in text or end not in text:
        raise ValueError(f"the page has no place for the table: {begin.strip()} and {end.strip()}")
    return text.partition(begin)[2].partition(end)[0]


def replaced(text: str, name: str, made: str) -> str:
    """The page with this between its marks. ValueError if it lacks them."""
    begin, end = _marks(name)
    return text.replace(f"{begin}{marked(text, name)}{end}", f"{begin}{made}{end}")
