"""Reader and writer against the classes that ai-edge-litert has of the schema, with every table: each field of each
file is read as they read it, and they find in a written file what was in the one it was read from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import CORPUS

from tflq.formats.flatbuffer.codec import decode
from tflq.formats.flatbuffer.layout import Field, enum, table, union
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write

schema: Any = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="needs ai-edge-litert")

MODELS = Path(__file__).resolve().parents[3] / "models"
FOLDERS = ("zoo", "fresh", "ops", "ops_unsupported")
FILES = {
    "models": sorted(MODELS.glob("*.tflite")),
    **{folder: sorted((CORPUS / folder).rglob("*.tflite")) for folder in FOLDERS if (CORPUS / folder).is_dir()},
}

REFUSED = {"powers.i16io.tflite"}
"""NEG whose operand and result are of different types: no valid model, which is read but for that."""


def theirs(data: bytes) -> Any:
    """Their tree of a file; data behind the flatbuffer in the buffers that name it."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data))
    for buffer in model.buffers or ():
        if buffer.offset > 1:
            buffer.data = np.frombuffer(data, np.uint8)[buffer.offset : buffer.offset + buffer.size]
            buffer.offset = buffer.size = 0
    return model


def attributes(node: Any) -> dict[str, Any]:
    return {name.lower(): value for name, value in vars(node).items()}


def differences(path: str, layout: str, ours: dict[str, Any], node: Any) -> Iterator[str]:
    """The fields of a table that are not what they have."""
    there = attributes(node)
    for field in table(layout).fields:
        name = field.name.replace("_", "").lower()
        if field.kind != "union_type" and name in there:
            yield from _field(f"{path}.{field.name}", field, ours[field.name], there[name], there.get(f"{name}type"))


def _field(path: str, field: Field, ours: Any, value: Any, member: int | None) -> Iterator[str]:
    if field.kind == "union":
        number = 0 if ours is None else union(field.type).values[ours[0]]
        if number != member:
            yield f"{path}: member {ours} != {member}"
        elif ours is not None:
            yield from differences(path, ours[0], ours[1], value)
    elif ours is None or value is None:
        if not (ours is None and value is None):
            yield f"{path}: {ours} != {value}"
    elif field.kind == "table":
        yield from differences(path, field.type, ours, value)
    elif field.kind in ("tables", "strings", "enums", "vector"):
        if len(ours) != len(value):
            yield f"{path}: {len(ours)} elements != {len(value)}"
        elif field.kind == "tables":
            for i, pair in enumerate(zip(ours, value, strict=True)):
                yield from differences(f"{path}[{i}]", field.type, *pair)
        elif not all(_same(field, x, y) for x, y in _elements(field, ours, value)):
            yield f"{path}: {ours} != {value}"
    elif not _same(field, ours, value):
        yield f"{path}: {ours} != {value}"


def _elements(field: Field, ours: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    if field.kind == "vector":  # all at once
        yield np.asarray(ours), np.asarray(value)
    else:
        yield from zip(ours, value, strict=True)


def _same(field: Field, ours: Any, value: Any) -> bool:
    if field.kind in ("enum", "enums"):
        return bool(enum(field.type).values[ours] == value)
    if field.kind in ("string", "strings"):
        return ours.encode() == value if isinstance(ours, str) else ours == value
    return bool(np.array_equal(ours, value, equal_nan=np.asarray(value).dtype.kind == "f"))


def unlike(path: str, a: Any, b: Any) -> Iterator[str]:
    """Where two of their trees differ."""
    if hasattr(a, "__dict__") and type(a) is type(b):
        there = vars(b)
        for name, value in vars(a).items():
            yield from unlike(f"{path}.{name}", value, there[name])
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, pair in enumerate(zip(a, b, strict=True)):
            yield from unlike(f"{path}[{i}]", *pair)
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.tobytes() != b.tobytes():
            yield f"{path}: {a} != {b}"
    elif a != b and not (a != a and b != b):
        yield f"{path}: {a} != {b}"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("folder", FILES)
def test_files_are_read_and_written_as_they_read_them(folder: str) -> None:
    assert FILES[folder]
    found = {}
    for path in FILES[folder]:
        data = path.read_bytes()
        source = theirs(data)
        ours = decode(data)
        for buffer in ours["buffers"] or ():
            if buffer["offset"] > 1:
                buffer["data"] = np.frombuffer(data, np.uint8)[buffer["offset"] : buffer["offset"] + buffer["size"]]
                buffer["offset"] = buffer["size"] = 0
        wrong = next(differences("Model", "Model", ours, source), None)
        if path.name not in REFUSED:
            wrong = wrong or next(unlike("Model", source, theirs(write(read(data)))), None)
        if wrong:
            found[str(path)] = wrong
    assert found == {}
