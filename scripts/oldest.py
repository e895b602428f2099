"""The oldest release of every dependency and extra, by the lower bounds of pyproject.toml: `name==bound`, one a line.

    python scripts/oldest.py > oldest.txt && pip install -r oldest.txt

`make oldest` installs them into an environment of their own, and starts every command there.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[1] / "pyproject.toml"
_REQUIREMENT: Final = re.compile(r"([\w.-]+(?:\[[\w,-]+\])?)>=([\w.]+)(?:,<[\w.]+)?")


def oldest() -> list[str]:
    """Requirements of the build, the package and all extras. ValueError if one has no lower bound, or two bounds."""
    document = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project = document["project"]
    lines = [*document["build-system"]["requires"], *project["dependencies"]]
    lines += [line for extra in project["optional-dependencies"].values() for line in extra]
    pins: dict[str, str] = {}
    for line in lines:
        match = _REQUIREMENT.fullmatch(line)
        if match is None or pins.setdefault(match[1], match[2]) != match[2]:
            raise ValueError(
                f"{PROJECT.name}: '{line}' is not one lower bound: write name>=1.2, the same wherever it is"
            )
    return [f"{name}=={bound}" for name, bound in pins.items()]


if __name__ == "__main__":
    print(*oldest(), sep="\n")
