"""The data files are found from a checkout, an editable install and a wheel alike."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tflq.resources import resource

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for folder in ("schema", "rules") for path in ROOT.glob(f"{folder}/*"))


@pytest.mark.parametrize("name", FILES)
def test_checkout(name: str) -> None:
    assert resource(name).read_bytes() == (ROOT / name).read_bytes()


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match="the installation is incomplete"):
        resource("schema/nothing.toml")


def test_wheel(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="needs the build backend: pip install tflq[dev]")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = f"from tflq.resources import resource\nfor name in {FILES!r}: print(resource(name))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == [str(tmp_path / "site" / "tflq" / name) for name in FILES]
