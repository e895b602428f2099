"""What a benchmark claims: a figure beside its aim, the table of many, and the machine that they hold for."""

from __future__ import annotations

import json
import os
import platform
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

__all__ = ["Build", "Claim", "corpus", "is_optimised", "machine", "networks", "table"]

ROOT: Final = Path(__file__).resolve().parents[1]
MADE: Final = ROOT / "build" / "bench"
"""Where `keras_networks.py` puts its networks."""
SETS: Final = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True)
class Claim:
    """A figure of one case, as `unit`, and the most that it may be; without an aim it is only shown.

    of: what the figure is relative to or made of, in words, such as "144 ms, peer 76 ms".
    """

    group: str
    case: str
    figure: float | None
    aim: float | None = None
    unit: str = "×"
    of: str = ""

    @property
    def verdict(self) -> str:
        if self.figure is None:
            return "not measured"
        return "" if self.aim is None else "met" if self.figure <= self.aim else "NOT MET"


@dataclass(frozen=True)
class Build:
    """What the same code takes more or fewer instructions on: the build of Python, and numpy's version."""

    python: str
    optimised: bool
    """With what a first build was seen to do (`is_optimised`)."""
    compiler: str
    machine: str
    numpy: str

    @classmethod
    def here(cls) -> Build:
        optimised, compiler = is_optimised(sysconfig.get_config_vars()), platform.python_compiler()
        return cls(platform.python_version(), optimised, compiler, platform.machine(), np.__version__)

    def __str__(self) -> str:
        kind = "optimised" if self.optimised else "not optimised"
        return f"Python {self.python} ({kind}, {self.compiler}, {self.machine}), numpy {self.numpy}"

    def toml(self) -> str:
        """As an inline table of TOML."""
        said = [f"{k} = {str(v).lower() if isinstance(v, bool) else json.dumps(v)}" for k, v in vars(self).items()]
        return f"{{ {', '.join(said)} }}"


def is_optimised(said: Mapping[str, object]) -> bool:
    """Whether Python was built with profiles, from the variables of its configuration. `--enable-optimizations` says
    so, or a flag of the compiler. Debian has rules of its own, without that option, and takes the flags out of what
    extension modules are built with, also out of PGO_PROF_USE_FLAG, where `configure` names one for GCC and clang.
    """
    flags = f"{said.get('PY_CORE_CFLAGS')} {said.get('PY_CORE_LDFLAGS')}"
    stated = "--enable-optimizations" in str(said.get("CONFIG_ARGS")) or "-fprofile" in flags
    return stated or said.get("PGO_PROF_USE_FLAG") == ""


def table(claims: Iterable[Claim]) -> str:
    """All claims as a table of Markdown, those of a group one after the other."""
    lines = ["| claim | case | figure | aim | | of |", "|---|---|---|---|---|---|"]
    for claim in claims:
        figure = "-" if claim.figure is None else f"{claim.figure:.3g} {claim.unit}"
        aim = "" if claim.aim is None else f"{claim.aim:.3g} {claim.unit}"
        lines.append(f"| {claim.group} | {claim.case} | {figure} | {aim} | {claim.verdict} | {claim.of} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """The date, the processor, its instruction sets that kernels use, how busy it is, and the build of Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    sets = ", ".join(name for name in SETS if name in flags) or "unknown"
    name = facts.get("model name") or platform.processor() or platform.machine()
    load = os.getloadavg()[0]
    where = f"{datetime.now(UTC):%Y-%m-%d}, {name}, {os.cpu_count()} cores, {sets}; load {load:.1f} at the start"
    return f"{where}; {Build.here()}"


def corpus() -> Path:
    """The folder of models: TFLQ_CORPUS, or `shared` beside the checkout."""
    return Path(os.environ.get("TFLQ_CORPUS") or ROOT.parent / "shared")


def networks(names: Sequence[str]) -> dict[str, Path | None]:
    """The files of networks by name: of the corpus, of `models`, or made by Keras; None, said aloud, where missing."""
    found: dict[str, Path | None] = {}
    for name in names:
        places = [*corpus().glob(f"zoo/**/{name}.tflite"), MADE / f"{name}.tflite", ROOT / "models" / f"{name}.tflite"]
        found[name] = next((path for path in places if path.exists()), None)
        if found[name] is None:
            print(f"SKIPPED: no {name}.tflite in {corpus()}, {MADE} or models", flush=True)
    return found
