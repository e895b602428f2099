"""Every model of the corpus comes back field by field, and again after a second trip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.structure import structural_difference

from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write

CORPUS = Path(os.environ.get("TFLQ_CORPUS") or Path(__file__).resolve().parents[4] / "shared")
FOLDERS = ("zoo", "ops", "ops_unsupported")

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason=f"NO CORPUS at {CORPUS}: set TFLQ_CORPUS to the folder of models"),
]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS)
def test_models_come_back_field_by_field(folder: str) -> None:
    paths = sorted((CORPUS / folder).rglob("*.tflite"))
    assert paths, f"no models in {CORPUS / folder}"
    differences = {}
    for path in paths:
        source = path.read_bytes()
        once = write(read(path))
        found = structural_difference(source, once) or structural_difference(once, write(read(once)))
        if found:
            differences[str(path.relative_to(CORPUS))] = found
    assert differences == {}
