"""Write pages that say what the code does.

    python scripts/make_docs.py [PAGE ...]           by name: cli, tour, README, deploy, ...; without names all in git

A page is a module of scripts/pages. Those of OF_SITE are not in git: `make site` makes them, and by name they go to
build/.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from scripts.pages.readme import PAGES, followed  # noqa: E402

IN_DOCS: Final = ("cli", "exceptions", "kernel_sets", "numerics", "proposals", "tour")
FOLLOWED: Final = {path.stem: path for path in PAGES}
OF_SITE: Final = ("coverage", "downstream", "operators")


def text_of(name: str) -> str:
    """The text of a page, as it should be now."""
    if name in FOLLOWED:
        return followed(FOLLOWED[name])
    text: str = import_module(f"scripts.pages.{name}").page()
    return text


def place_of(name: str) -> Path:
    """The file of a page."""
    folder = ROOT / ("build" if name in OF_SITE else "docs")
    return FOLLOWED.get(name) or folder / f"{name.replace('_', '-')}.md"


def main() -> None:
    """Writes the pages that are named."""
    known = (*IN_DOCS, *FOLLOWED, *OF_SITE)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(known))
    for name in parser.parse_args().pages or (*IN_DOCS, *FOLLOWED):
        if name not in known:
            parser.error(f"no page '{name}': there are {', '.join(known)}")
        place = place_of(name)
        place.parent.mkdir(exist_ok=True)
        place.write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
