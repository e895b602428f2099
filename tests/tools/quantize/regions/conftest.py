"""The target of the region graphs, as a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.region_graphs import KERNELS


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "example.toml"
    path.write_text(KERNELS)
    return path
