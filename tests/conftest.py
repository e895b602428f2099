"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parents[1] / "models"


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of the project's own models."""
    return MODELS
