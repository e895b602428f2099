"""What tests of sweeps share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VOLATILE = {"cpu", "seconds", "peak_bytes", "peak_convert", "run_time", "cached", "recorded", "ended", "log"}


def stable(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without times, memory and whatever else may differ from run to run."""
    return {key: value for key, value in result.items() if key not in VOLATILE}
