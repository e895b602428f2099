"""Valid documents damaged at random: values of other types, fields that are gone, cut or flipped bytes."""

from __future__ import annotations

import json
import random
import re
from typing import Any

HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 3, 1.5, 1e308, 1 << 63, -(10**30), float("nan"), float("inf")),
    *("", "x", "1", "../../x", "/etc/passwd", "javascript:alert(1)", "artifacts/..", "\0", "\x1b[31m", "a" * 5000),
    *([], {}, [[]], [None], [1, 2], {"x": 1}, {"": {}}),
)
LITERALS = (
    "true",
    "-1",
    "0",
    "1.5",
    "nan",
    "inf",
    "99999999999999999999",
    '""',
    '"x"',
    '"\\u0000"',
    '"../../x"',
    "[]",
    "{}",
)
MORE = ("[[]]", "[1]", '["x", 1]', "{x = 1}", "1979-05-27", "[" * 200 + "]" * 200, "", "= =")


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """A file that is cut, or has other bytes."""
    if rng.random() < 0.2:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def damaged_json(text: str, rng: random.Random) -> bytes:
    """A JSON document, damaged once or twice."""
    document = json.loads(text)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        document = _changed(document, rng)
    said = json.dumps(document)
    if rng.random() < 0.1:
        said = re.sub(r'("[^"]*"): ', r"\1: 0, \1: ", said, count=1)
    return _torn(said.encode(), rng)


def damaged_lines(text: str, rng: random.Random) -> bytes:
    """Lines of JSON, one of them damaged."""
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    return b"".join(
        (damaged_json(line, rng) if i == at else line.encode()) + b"\n" * (rng.random() < 0.98)
        for i, line in enumerate(lines)
    )


def damaged_toml(text: str, rng: random.Random) -> bytes:
    """Lines of TOML, of which some have another value, are gone or there twice."""
    lines = text.splitlines()
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(lines))
        key, is_key, _ = lines[at].partition("=")
        choice = rng.random()
        if choice < 0.6 and is_key:
            lines[at] = f"{key}= {rng.choice(LITERALS + MORE)}"
        elif choice < 0.7:
            lines[at : at + 1] = []
        elif choice < 0.8:
            lines[at:at] = lines[at : at + 1]
        elif choice < 0.9:
            lines[at] = lines[at].replace("[[", "[").replace("]]", "]")
        else:
            lines.insert(at, f"{rng.choice(('more', 'version', 'name'))} = {rng.choice(LITERALS + MORE)}")
    return _torn(("\n".join(lines) + "\n").encode(), rng)


def _torn(data: bytes, rng: random.Random) -> bytes:
    """The data, now and then cut or with other bytes."""
    choice = rng.random()
    if choice < 0.1:
        return data[: rng.randrange(len(data))]
    if choice < 0.25:
        flipped = bytearray(data)
        for _ in range(rng.choice((1, 1, 5))):
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    return data


def _changed(node: Any, rng: random.Random) -> Any:
    """The document with one of its values, at any depth, replaced, gone or there twice."""
    if rng.random() < 0.15 or not isinstance(node, (dict, list)) or not node:
        return rng.choice(HOSTILE)
    key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
    node = dict(node) if isinstance(node, dict) else list(node)
    choice = rng.random()
    if choice < 0.1:
        del node[key]
    elif choice < 0.15 and isinstance(node, list):
        node.append(node[key])
    elif choice < 0.2 and isinstance(node, dict):
        node[rng.choice(("more", "__proto__", "x\0", ""))] = node.pop(key)
    else:
        node[key] = _changed(node[key], rng)
    return node
