"""Files of rules: the line of a key, however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflq.base.errors import TflqError
from tflq.targets.target import RulesFile

TEXT = """# a comment
top = 1
dotted.key = 2
inline = {a = 1}

[target]  # [other]
name = "x = 1"
"quoted" = [
    "first",
    "T = second",
]

[level.8k]
rank = 6

[ "level" . none ]
rank = 32
"""


def file(folder: Path) -> RulesFile:
    path = folder / "mine.toml"
    path.write_text(TEXT)
    return RulesFile(path)


@pytest.mark.parametrize(
    ("section", "key", "item", "line"),
    [
        ("", "top", "", 2),
        ("dotted", "key", "", 3),
        ("inline", "a", "", 4),
        ("target", "", "", 6),
        ("target", "name", "", 7),
        ("target", "quoted", "", 8),
        ("target", "quoted", "T = second", 10),
        ("target", "quoted", "third", 8),
        ("target", "missing", "x = 1", 6),
        ("level", "8k", "", 13),
        ("level.8k", "rank", "", 14),
        ("level.none", "rank", "", 17),
        ("level.none", "kernel", "", 16),
        ("level", "", "", 13),
        ("missing", "key", "", 1),
    ],
)
def test_line(section: str, key: str, item: str, line: int, tmp_path: Path) -> None:
    assert file(tmp_path).line(section, key, item) == line


def test_a_fault_says_where_and_what_could_be_there(tmp_path: Path) -> None:
    with pytest.raises(TflqError, match=r"mine\.toml:14: \[level\.8k\] rank is odd; known are 2, 4$"):
        file(tmp_path).fail("rank is odd", "level.8k", "rank", known=(2, 4))


@pytest.mark.parametrize(
    ("content", "reason"), [(b"a = ", "at line 1|Invalid value"), (b"\xff", "not a text file"), (None, "No such file")]
)
def test_what_cannot_be_read(content: bytes | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TflqError, match=rf"mine\.toml:.*({reason})"):
        RulesFile(path)
