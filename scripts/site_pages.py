"""A hook of mkdocs: pages and files outside `docs/` become part of the site, and links lead to where things are there.

In the repository a link is a path from one file to another. On the site `docs/` is the root, README.md is the first
page, and the other pages and FOLDERS have the path that they have in the repository. A link to a file that the site
does not have, such as source code, becomes plain text. A link to what does not exist stays as it is, and mkdocs fails
on it. A notebook is a page, too, its cells as text and code. The pages of OF_SITE are made here, and are in no folder
of the repository.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.make_docs import OF_SITE, text_of  # noqa: E402

PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
FOLDERS = {
    "models": ("*.md", "*.toml"),
    "benchmarks": ("*.md", "*.svg"),
    "rules": ("*.toml",),
    "examples": ("**/*.md", "**/*.py", "**/*.ipynb", "**/*.toml", "**/*.yml", "**/*.mlir"),
}
"""Folders of the repository that the site shows, and which of their files."""
_LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what lies outside of `docs/`, and what is made for the site."""
    for name in OF_SITE:
        files.append(File.generated(config, f"{name}.md", content=text_of(name)))
    for name in shown():
        files.append(File.generated(config, site_path(name), abs_src_path=str(ROOT / name)))
        if name.endswith(".ipynb"):
            files.append(File.generated(config, name.replace(".ipynb", ".md"), content=_notebook(name)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Writes the links of a page anew."""
    here = repository_path(page.file.src_uri)
    return _LINK.sub(lambda match: _link(match, here), markdown)


def _notebook(name: str) -> str:
    """A notebook as Markdown, with a link to the notebook itself."""
    texts = []
    for cell in json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        texts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    texts.insert(1, f"[The notebook]({posixpath.basename(name)})")
    return "\n\n".join(texts)


def shown() -> list[str]:
    """Paths in the repository, outside of `docs/`, that the site has."""
    found = [path for folder, patterns in FOLDERS.items() for each in patterns for path in (ROOT / folder).glob(each)]
    return [*PAGES, *sorted(path.relative_to(ROOT).as_posix() for path in found)]


def site_path(name: str) -> str:
    """Where a file of the repository is on the site."""
    return "index.md" if name == "README.md" else name.removeprefix("docs/")


def repository_path(uri: str) -> str:
    """Where a page of the site is in the repository."""
    if uri == "index.md":
        return "README.md"
    return f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri


def _link(match: re.Match[str], here: str) -> str:
    """A link of the page `here` as the site has it."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(here), match["path"]))
    if (ROOT / target).is_dir():
        target = posixpath.join(target, "README.md")
    if not (ROOT / target).is_file():
        return match[0]
    if not target.startswith("docs/") and target not in shown():
        return match["text"].strip("[]")
    path = os.path.relpath(site_path(target), posixpath.dirname(site_path(here)) or ".")
    return f"{match['text']}({path}{match['anchor'] or ''})"
