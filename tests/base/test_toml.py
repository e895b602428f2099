"""What is read of plain TOML is what `tomllib` reads."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tflq.base.files import _plain, content, read_toml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path.relative_to(ROOT).as_posix() for folder in ("schema", "rules") for path in ROOT.glob(f"{folder}/**/*.*")
)


@pytest.mark.parametrize("name", FILES)
def test_the_library_s_own_files(name: str) -> None:
    assert content(name) == tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", ["schema/tflite.toml", "schema/runtime.toml", "rules/costs.toml", "rules/integer.toml"]
)
def test_those_of_every_conversion_are_plain(name: str) -> None:
    assert _plain((ROOT / name).read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 'x' # y\n\n[b]\n\"c.d\" = 0.5\n",
        'a = "x"\n[a]\n',
        'a = "x"\na = "y"\n',
        "[a]\n[a]\n",
        "a.b = 'x'\n",
        "a.b = 0.5\n",
        "[a.b]\nc = 'x'\n",
        'a = "x\\n"\n',
        'a = "x\ty" # \x7f\n',
        'a = "x\x01"\n',
        "a = 01.5\n",
        "a = 1\n",
        "a = 'x",
        "a = 'x'",
        'a = """x"""\n',
        "a = ['x']\n",
        "a =\n",
        "ä = 'x'\n",
        "a = 'ä'\r\nb = 'x'\n",
    ],
)
def test_any_other(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(tomllib.TOMLDecodeError):
            read_toml(text)
    else:
        assert read_toml(text) == expected
