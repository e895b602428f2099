"""Where two TFLite files first differ, field by field through the layout tables.

Order counts, placement does not: offsets, padding and vtables may differ, and a number that is written out equals one
that is absent and has it as its default. Of data behind the flatbuffer (`Buffer.offset`) the bytes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from tflq.formats.flatbuffer.codec import decode
from tflq.formats.flatbuffer.structure import find_archive, place_archive

Bytes: TypeAlias = bytes | bytearray | memoryview
_OUTSIDE = (("offset", "size"), ("large_custom_options_offset", "large_custom_options_size"))


def structural_difference(a: Bytes, b: Bytes) -> str | None:
    """The first field in which two valid files differ, with both contents; None if there is none."""
    left, right = decode(a), decode(b)
    _load_outside(left, a)
    _load_outside(right, b)
    left["archive"], right["archive"] = _archive(a), _archive(b)
    return next(_differences("", left, right), None)


def _archive(data: Bytes) -> bytes:
    """The archive behind a model, placed at 0; empty if there is none."""
    archive = find_archive(memoryview(data))
    return place_archive(archive, 0) if archive else b""


def _load_outside(model: Mapping[str, Any], data: Bytes) -> None:
    """Replaces the places of data behind the flatbuffer by the data."""
    tables = [*(model["buffers"] or ())]
    tables += [op for subgraph in model["subgraphs"] or () for op in subgraph["operators"] or ()]
    for fields in tables:
        for offset, size in _OUTSIDE:
            if fields.get(offset, 0) > 1:
                start = fields[offset]
                fields[offset] = np.frombuffer(data, np.uint8)[start : start + fields[size]]


def _differences(path: str, a: Any, b: Any) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key, value in a.items():
            yield from _differences(f"{path}.{key}" if path else key, value, b[key])
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype != b.dtype or a.tobytes() != b.tobytes():
            yield f"{path}: {_shown(a)} != {_shown(b)}"
    elif type(a) is not type(b):
        yield f"{path}: {_shown(a)} != {_shown(b)}"
    elif isinstance(a, (list, tuple)):
        if len(a) != len(b):
            yield f"{path}: {len(a)} != {len(b)} elements"
        for index, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from _differences(f"{path}[{index}]", x, y)
    elif a != b and not (a != a and b != b):  # NaN equals NaN here
        yield f"{path}: {_shown(a)} != {_shown(b)}"


def _shown(value: Any) -> str:
    text = f"{value.size} elements {value[:8]}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) < 100 else f"{text[:100]}..."
