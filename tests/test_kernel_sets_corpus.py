"""Models that tell the kernel sets apart, converted under each name: equal to what these kernels gave, in every bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.corpus import SHARED
from support.interpreter import run_model

import tflq
from tflq.numerics.kernel_sets import NAMES

FOLDER = SHARED / "kernels" / "separating"
MODELS = sorted(FOLDER.glob("*.tflite"))
COLUMNS = {
    "reference-1.0": "ref_1_0",
    "reference-2.3": "ref_2_3",
    "reference-2.3-arm64": "ref_2_3_arm64",
    "reference-2.4-dev": "ref_2_4",
    "xnnpack-2.3": "xnnpack",
    "xnnpack-2.3-arm64": "xnnpack_arm64",
    "xnnpack-2.4-dev": "xnn_nightly",
}
FORMS = {"integer": {}, "float32": {"mac": "float32"}, "portable": {"target": "portable"}}

pytestmark = pytest.mark.skipif(not MODELS, reason=f"no models that separate the kernel sets in {FOLDER}")
