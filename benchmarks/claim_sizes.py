"""Claims on the size of files: python benchmarks/claim_sizes.py

Bytes of the result, times the source's: of every network of the corpus below 100 KB the largest, and of networks by
name; by default and with `--prefer size`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from claim_running import NETWORKS
from claims import Claim, corpus, networks, table
from networks import network

import tflq
from tflq.conversion.convert import MOST_GROWTH, SMALL
from tflq.formats.options import Prefer

PREFERENCES: Final[tuple[Prefer, ...]] = ("speed", "size")


def growth(model: bytes, prefer: Prefer) -> float | None:
    """How many times larger the result is; None for a model that is refused."""
    try:
        return len(tflq.convert(model, prefer=prefer).data) / len(model)
    except tflq.TflqError:
        return None


def largest(prefer: Prefer) -> Claim:
    """The corpus' small network whose result is largest."""
    grown: list[tuple[float, str]] = []
    paths = [path for path in corpus().glob("zoo/**/*.tflite") if path.stat().st_size < SMALL]
    for path in paths:
        ratio = growth(path.read_bytes(), prefer)
        if ratio is not None:
            grown.append((ratio, path.stem))
    if not grown:
        print(f"SKIPPED: no networks in {corpus()}", flush=True)
        return Claim(f"size, {prefer}", "small networks", None, MOST_GROWTH)
    ratio, name = max(grown)
    return Claim(f"size, {prefer}", f"largest of {len(grown)} below 100 KB: {name}", ratio, MOST_GROWTH)


def claims() -> Iterator[Claim]:
    for prefer in PREFERENCES:
        yield largest(prefer)
        made = network("plain", 21)
        yield Claim(f"size, {prefer}", "7 ADDs, 14 CONV_2Ds", growth(made, prefer), MOST_GROWTH)
    for name, path in networks(NETWORKS).items():
        if isinstance(path, Path):
            model = path.read_bytes()
            yield Claim("size, speed", name, growth(model, "speed"), of=f"{len(model) / 1e6:.2f} MB")


if __name__ == "__main__":
    print(table(claims()))
