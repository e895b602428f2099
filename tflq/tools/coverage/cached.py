"""Rows of the coverage table, which the user's cache holds for each target.

A table takes half a minute to a minute of a core: 38 s for the default target, 64 s for TOSA. It has two thousand
small models of 10 to 30 milliseconds each. Its key has the version of tflq, the target's text, and path, size and time
of each file that the engine is read from.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from tflq.base.caches import DiskCache, make_private, user_cache
from tflq.base.documents import DocumentError, parse_json
from tflq.base.errors import FileError
from tflq.base.files import PACKAGE, FilePath, reads_once, resource, text_bytes
from tflq.base.version import __version__
from tflq.tools.coverage import CoverageRow

if TYPE_CHECKING:
    from tflq.formats.options import Options

LOG = logging.getLogger(__name__)
_LIMIT: Final = 16 << 20
"""Bytes of the tables that the cache holds, each of about 600,000."""


def rows_of(
    target: FilePath | None, options: Options, operator: str = "", *, fresh: bool = False
) -> Sequence[CoverageRow]:
    """The rows of the operators whose name contains `operator`, in a conversion with these options for a target.

    A whole table is written to the cache, and a part is read from it. fresh: nothing is read.
    """
    cache = _cache(target)
    key = _key(target) if cache else ""
    rows = None if cache is None or fresh else _parsed(cache.get(key))
    if rows is not None:
        return [row for row in rows if operator.lower() in row.operator.lower()]
    from tflq.tools.coverage.table import coverage

    rows = list(coverage(options, operator))
    if cache and not operator:
        cache.put(key, text_bytes(json.dumps([asdict(row) for row in rows], ensure_ascii=False)))
    return rows


def _cache(target: FilePath | None) -> DiskCache | None:
    """The cache of tables; None if there can be none, or if the target is a pipe."""
    if target is not None and os.path.exists(target) and reads_once(target):
        return None
    try:
        folder = user_cache()
        make_private(folder)
        return DiskCache(folder / "ops", _LIMIT, shelves=1)
    except FileError as error:
        LOG.info("tables are not cached: %s", error)
        return None


def _parsed(content: bytes | None) -> list[CoverageRow] | None:
    """The rows of an entry; None if it is something else."""
    if content is None:
        return None
    try:
        rows: list[CoverageRow] = parse_json(content, list[CoverageRow], closed=True)
    except DocumentError:
        return None
    return rows


def _key(target: FilePath | None) -> str:
    """Tells targets, and states of the engine, apart."""
    digest = hashlib.sha256(f"{__version__}\n{target}\n".encode("utf-8", "surrogateescape"))
    if target is not None and os.path.isfile(target):
        with open(target, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    for path in sorted(_sources()):
        with suppress(FileNotFoundError):  # a link of an editor, or a file that it has removed
            status = os.stat(path)
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _sources() -> Iterator[str]:
    """The files of tflq, and of packages that add something to it."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    folders = {PACKAGE, resource("schema"), resource("rules")}
    known = entry_points()
    added = [entry for group in known.groups if group.startswith("tflq.") for entry in known.select(group=group)]
    for name in {entry.module.partition(".")[0] for entry in added}:
        if (spec := find_spec(name)) is not None:
            folders.update(spec.submodule_search_locations or ())
            yield from filter(None, [spec.origin])
    for folder in folders:
        for place, _, names in os.walk(folder):
            yield from (os.path.join(place, name) for name in names if not name.endswith(".pyc"))
