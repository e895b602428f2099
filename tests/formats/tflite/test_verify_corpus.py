"""Real files: every model of the corpus is accepted, with warnings only where they are due."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tflq.formats.tflite.reader import read

CORPUS = Path(os.environ.get("TFLQ_CORPUS", Path(__file__).resolve().parents[4] / "shared"))
FILES = sorted((*CORPUS.glob("zoo/*/*.tflite"), *CORPUS.glob("ops*/*.tflite")))

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FILES, reason=f"NO CORPUS: {CORPUS} has no models; set TFLQ_CORPUS to run these tests"),
]


@pytest.mark.slow
def test_every_model_is_accepted() -> None:
    for path in FILES:
        read(path)


def test_the_person_detector_is_read_with_a_warning_per_bias() -> None:
    warnings = read(CORPUS / "zoo" / "tflite-micro" / "person_detect.tflite").warnings
    assert warnings
    assert all("quantized_dimension 3 is not a dim of a tensor of rank 1" in line for line in warnings)
