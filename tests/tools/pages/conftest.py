"""A fixture of all tests of the pages."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def forks(forked: None) -> None:
    """Models run in forks: these tests ask for results."""
