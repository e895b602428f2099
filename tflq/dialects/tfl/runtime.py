"""Versions of operators, and the release of the runtime that a model needs for them.

A version says which types and options an operator has: an interpreter that does not know it refuses the model, where it
would compute something else or fail as it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.ir.core import Buffer, Metadata, Module, Op
from tflq.resources import content

__all__ = ["RUNTIME", "state_runtime", "state_version", "version_info"]

RUNTIME = "min_runtime_version"
"""The name of the metadata that says which release a model needs."""

_Release: TypeAlias = tuple[int, ...]


def version_info(op: Op) -> dict[str, Any]:
    """The version that an op states, as `Op.info`, but none newer than interpreters have: what asked for that are the
    quantized types."""
    if "version" not in op.info:
        return {}
    return {"version": min(op.info["version"], op.newest if isinstance(op, Operator) else 1)}


def state_version(op: Op) -> None:
    """Has an operator on plain tensors state the version that its types need; in place."""
    version = _by_type(op)
    if version > 1:
        op.info = {**op.info, "version": version}


def state_runtime(module: Module, *, made: bool) -> bool:
    """Has the module's metadata say which release its operators need, if it names one; in place. made: whether
    selection made any. Whether that is another one."""
    before = module.metadata or []
    if not any(item.name == RUNTIME for item in before):
        return False
    module.metadata = after = [_stating(item, module, made) if item.name == RUNTIME else item for item in before]
    return any(bytes(a.buffer.data) != bytes(b.buffer.data) for a, b in zip(before, after, strict=True) if a is not b)


def _stating(item: Metadata, module: Module, made: bool) -> Metadata:
    """The metadata with the release that the module needs: the first with every operator in its version. Of operators
    that selection made, the results were compared with no release before the oldest that was tried; an operator of
    which nothing is known needs the release that the source names."""
    oldest, known = _releases()
    release = _release(oldest) if made else ()
    for op in module.ops():
        releases = known.get(op.name.removeprefix("tfl."))
        if releases is None:
            stated = bytes(item.buffer.data).rstrip(b"\0").decode("ascii", "replace")
            release = max(release, _release(stated) if op.name != "tfl.custom" else ())
        else:
            version = int(op.info.get("version", 1))
            release = max(release, releases[min(version, len(releases)) - 1])
    text = ".".join(map(str, release)).encode()
    return Metadata(item.name, Buffer.of(np.frombuffer(text.ljust(max(16, item.buffer.data.size), b"\0"), np.uint8)))


def _release(text: str) -> _Release:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


@cache
def _releases() -> tuple[str, Mapping[str, tuple[_Release, ...]]]:
    """The oldest release that was tried; by builtin, the first release of each version."""
    data = content("schema/runtime.toml")
    return data["oldest_tried"], {name: tuple(map(_release, line.split())) for name, line in data["runtime"].items()}


def _by_type(op: Op) -> int:
    """The version that the types and options of an operator on plain tensors need: the first of its `Needs`
    that holds."""
    if isinstance(op, Operator):
        for need in op.versions:
            if need.holds(op):
                return min(need.version, op.newest)
    return 1
