"""Targets: the default, a file that narrows it, and faults of files, by line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflq.errors import TflqError
from tflq.tosa.rules import Target, load_target


def load(text: str, folder: Path) -> Target:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_target(path)


def test_default() -> None:
    target = load_target()
    assert target == Target()
    assert target.has("pro_int")
    assert target.has("doubleround")
    assert not target.has("bf16")
    assert target.limits.rank == 6


def test_narrowed(tmp_path: Path) -> None:
    target = load('[target]\nprofiles = ["pro_int"]\nextensions = ["int16"]\nlevel = "none"\n', tmp_path)
    assert target.profiles == {"pro_int"}
    assert target.extensions == {"int16"}
    assert target.limits.rank == 32
    assert "pro_int" in list(target.rules.providers("add", ("i32", "i32"), ("i32",)))


def test_extensions_that_are_inherited_go_with_their_profile(tmp_path: Path) -> None:
    assert load('[target]\nprofiles = ["pro_fp"]', tmp_path).extensions == {"variable", "controlflow"}


def test_lines_of_its_own(tmp_path: Path) -> None:
    rules = load('[profile.pro_int]\ngather = ""\nadd = "T T -> T; T = i16 i32"\n', tmp_path).rules
    assert not list(rules.providers("gather", ("i8", "i32"), ("i8",)))
    assert list(rules.providers("add", ("i16", "i16"), ("i16",))) == ["pro_int"]
    assert list(rules.providers("sub", ("i32", "i32"), ("i32",))) == ["pro_int", "pro_fp"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[target]\n\nlevel = '9k'", r":3: \[target\] level: '9k' is not known; known are 8k, none"),
        ("[target]\nprofiles = []", ":2: .*profiles is empty"),
        ("[target]\nprofiles = 'pro_int'", ":2: .*not a list of strings"),
        ("[target]\nprofiles = ['pro_int']\nextensions = ['bf16']", ":3: .*bf16 extends pro_fp"),
        ("[target]\nspecification = '2.0'", ":2: .*known are 1.0"),
        ("[target]\nextension = []", ":2: .*'extension' is not known"),
        ("[targt]\n", ":1: 'targt' is not a section"),
        ("target = 1", ":1: 'target' is not a section"),
        ("[profile.pro_int]\nadds = 'i8 -> i8'", ":2: .*'adds' is not known"),
        ("[profile.pro_int]\nadd = 'i8 => i8'", ":2: .*not a signature"),
        ("[profile.pro_int]\nadd = 5", ":2: .*not a string"),
        ("[level.x]\nrank = 'a'", "\n  2: .*not an integer"),
        ("[level.x]\nrank = 3", ":1: .*kernel, stride.* not stated"),
        ("[target\n[level]", ":1: "),
    ],
)
def test_faults(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(TflqError, match=rf"(?s)mine\.toml.*{reason}"):
        load(text, tmp_path)


FAULTS = """[target]
profiles = ["pro_itn"]
level = "9k"
[profile.pro_int]
addd = "i8 -> i8"
[level.mine]
rank = 3
"""


def test_all_faults_of_a_file_are_listed(tmp_path: Path) -> None:
    with pytest.raises(TflqError, match="has 4 faults:") as caught:
        load(FAULTS, tmp_path)
    assert [reason.place for reason in caught.value.reasons] == ["2", "3", "5", "6"]


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(TflqError, match="No such file"):
        load_target(tmp_path / "nothing.toml")
