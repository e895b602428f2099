"""docs/proposals.md shows what its commands print, names every example, and has a section for each of a proposal's."""

from __future__ import annotations

from pathlib import Path

from scripts.pages.proposals import EXAMPLES, ROOT, commands, page

TEXT = (ROOT / "docs" / "proposals.md").read_text(encoding="utf-8")


def test_commands_print_what_it_shows() -> None:
    assert page() == TEXT, "make it anew: scripts/make_docs.py proposals"


def test_every_example_is_shown() -> None:
    shown = " ".join(commands(TEXT))
    files = sorted((ROOT / EXAMPLES).glob("*.*"))
    assert len(files) > 20
    assert [file.name for file in files if file.name != "README.md" and str(EXAMPLES / file.name) not in shown] == []


def test_links_lead_somewhere() -> None:
    for target in (part.partition(")")[0] for part in TEXT.split("](")[1:]):
        file, _, anchor = target.partition("#")
        assert (Path(ROOT, "docs", file) if file else ROOT).exists(), target
        headings = [line.lstrip("# ").lower() for line in TEXT.splitlines() if line.startswith("#")]
        made = ["".join(c for c in h if c.isalnum() or c in " -").replace(" ", "-") for h in headings]
        assert not anchor or anchor in made, target


def test_refusals_are_refused() -> None:
    assert TEXT.count("\ntflq: examples/proposals/") == 5
    assert "Usage: " not in TEXT


def test_the_tests_of_statements_exist() -> None:
    named = [part for part in TEXT.split("`") if part.startswith("tests/") and "::" in part]
    assert len(named) > 10
    for name in named:
        file, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), name
