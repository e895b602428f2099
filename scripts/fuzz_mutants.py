"""Mutants of a file: half of them changed byte by byte, half by the schema, decoded and encoded again."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.flatbuffer.layout import TFLITE, TOSA, Schema

Tree = dict[str, Any]

INTEGERS = (-(1 << 31), -129, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 127, 255, 256, 65536, (1 << 31) - 1)
FLOATS = (
    0.0,
    -0.0,
    -1.0,
    1.0,
    1e-45,
    1e-40,
    1e-38,
    1e-7,
    0.5,
    255.0,
    1e7,
    3.4e38,
    float("inf"),
    float("-inf"),
    float("nan"),
)


def mutant(models: list[bytes], seed: int, number: int) -> bytes:
    """Mutant `number`: always the same bytes for the same models and seed."""
    rng = random.Random(f"{seed}:{number}")  # noqa: S311
    data = rng.choice(models)
    return mutate_bytes(data, rng) if rng.random() < 0.5 else mutate_fields(data, rng)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change, insert or delete 1 to 64 bytes, mostly where the structure is; or cut the end off."""
    out = bytearray(data)
    kind = rng.choice(("change", "change", "change", "bits", "insert", "delete", "cut", "words"))
    if kind == "cut":
        return bytes(out[: rng.randrange(len(out))])
    structure = min(len(out), 4096)
    for _ in range(rng.choice((1, 1, 2, 4, 16, 64))):
        near = rng.random() < 0.5
        place = (
            rng.randrange(structure) + (len(out) - structure if rng.random() < 0.5 else 0)
            if near
            else rng.randrange(len(out))
        )
        place = min(place, len(out) - 1)
        if kind == "change":
            out[place] = rng.randrange(256)
        elif kind == "bits":
            out[place] ^= 1 << rng.randrange(8)
        elif kind == "insert":
            out[place:place] = rng.randbytes(rng.choice((1, 2, 4)))
        elif kind == "delete" and len(out) > 16:
            del out[place : place + rng.choice((1, 2, 4))]
        elif kind == "words":
            word = rng.choice(INTEGERS) & 0xFFFFFFFF
            at = min(place & ~3, len(out) - 4)
            out[at : at + 4] = word.to_bytes(4, "little")
    return bytes(out)


def mutate_fields(data: bytes, rng: random.Random) -> bytes:
    """Change one to four fields of the decoded model, anywhere in it, by type."""
    schema = TOSA if is_tosa(data) else TFLITE
    tree = copy.deepcopy(decode(data, schema=schema))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(fields_of(schema, schema.root, tree))
        holder, layout_field = rng.choice(_balanced(places, rng))
        holder[layout_field.name] = changed_field(schema, holder[layout_field.name], layout_field, rng)
    return encode(tree, schema=schema)


def is_tosa(data: bytes) -> bool:
    return data[4:8] == TOSA.identifier


def fields_of(schema: Schema, name: str, tree: Tree) -> Iterator[tuple[Tree, Any]]:
    for item in schema.table(name).fields:
        if item.kind == "union_type":
            continue
        value = tree[item.name]
        yield tree, item
        if value is None:
            continue
        if item.kind == "table":
            yield from fields_of(schema, item.type, value)
        elif item.kind == "union":
            yield from fields_of(schema, *value)
        elif item.kind == "tables":
            for element in value:
                yield from fields_of(schema, item.type, element)


def _balanced(places: list[tuple[Tree, Any]], rng: random.Random) -> list[tuple[Tree, Any]]:
    """All places with one field name, so that rare fields are hit as often as frequent ones; set ones first."""
    names = sorted({item.name for holder, item in places if rng.random() < 0.1 or _is_set(holder[item.name])})
    name = rng.choice(names or sorted({item.name for _, item in places}))
    found = [(holder, item) for holder, item in places if item.name == name]
    return [place for place in found if place[0][name] is not None] or found


def _is_set(value: Any) -> bool:
    return bool(value.size) if isinstance(value, np.ndarray) else bool(value)


def changed_field(schema: Schema, value: Any, item: Any, rng: random.Random) -> Any:
    if item.kind == "scalar":
        return _number(item.scalar, rng)
    if item.kind == "enum":
        return rng.choice(list(schema.enum(item.type).values))
    if item.kind == "string":
        return rng.choice((None, "", "x", "ünï", "a" * 300))
    if item.kind in ("vector", "enums"):
        return _changed_vector(value, item, rng)
    if item.kind == "union":
        return _changed_union(schema, item, rng)
    if item.kind == "strings" and value and rng.random() < 0.3:
        return (*value[:-1], rng.choice(("", "x", "a" * 300)))
    if item.kind in ("tables", "strings") and value:
        return _changed_list(list(value), rng)
    return None if rng.random() < 0.5 else value


def _number(scalar: str, rng: random.Random) -> Any:
    if scalar == "bool":
        return rng.random() < 0.5
    if scalar.startswith("float"):
        return rng.choice(FLOATS)
    limits = np.iinfo(scalar)
    return int(np.clip(rng.choice(INTEGERS), limits.min, limits.max))


def _changed_vector(value: Any, item: Any, rng: random.Random) -> Any:
    if value is None or rng.random() < 0.1:
        return () if rng.random() < 0.5 else None
    if item.kind == "enums":
        return tuple(value)[1:]
    if len(value) > 4096 or isinstance(value, np.ndarray):
        return np.asarray(value)[: rng.choice((0, 1, len(value) // 2, max(len(value) - 1, 0)))]
    values = list(value)
    change = rng.random()
    if change < 0.6 and values:
        values[rng.randrange(len(values))] = _number(item.scalar, rng)
    elif change < 0.8:
        values.insert(rng.randrange(len(values) + 1), _number(item.scalar, rng))
    elif change < 0.95 and values:
        del values[rng.randrange(len(values))]
    elif values:
        values *= 1500 // len(values) + 1  # long vectors are decoded in another way
    return tuple(values)


def _changed_union(schema: Schema, item: Any, rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return None
    member = rng.choice([name for name in schema.union(item.type).values if name != "NONE"])
    defaults: Tree = {f.name: f.default for f in schema.table(member).fields if f.kind != "union_type"}
    for f in schema.table(member).fields:
        if f.kind == "enum":
            defaults[f.name] = schema.enum(f.type).names[int(f.default or 0)]
    return (member, defaults)


def _changed_list(values: list[Any], rng: random.Random) -> list[Any]:
    place, change = rng.randrange(len(values)), rng.random()
    if change < 0.3:
        del values[place]
    elif change < 0.6:
        values.append(copy.deepcopy(values[place]))
    else:
        other = rng.randrange(len(values))
        values[place], values[other] = values[other], values[place]
    return values
