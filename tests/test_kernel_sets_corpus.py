"""Models that tell the kernel sets apart, converted under each name: equal to what these kernels gave, in every bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest
from support.corpus import models, needs_corpus
from support.harness import interpret
from support.on_onnx import need_onnx, run_file
from support.running import reference

import tflq
from tflq.base.errors import UnsupportedError
from tflq.numerics.kernel_sets import NAMES

MODELS: Final = models("kernels/separating")
COLUMNS: Final = {
    "reference-1.0": "ref_1_0",
    "reference-2.3": "ref_2_3",
    "reference-2.3-arm64": "ref_2_3_arm64",
    "reference-2.4-dev": "ref_2_4",
    "xnnpack-2.3": "xnnpack",
    "xnnpack-2.3-arm64": "xnnpack_arm64",
    "xnnpack-2.3-arm64-a53": "xnnpack_arm64_a53",
    "xnnpack-2.4-dev": "xnn_nightly",
}
FORMS: Final[Mapping[str, dict[str, Any]]] = {
    "integer": {},
    "float32": {"mac": "float32"},
    "portable": {"target": "portable"},
}

pytestmark = [*needs_corpus, pytest.mark.skipif(not MODELS, reason="NO MODELS in kernels/separating of the corpus")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_model_gives_what_the_kernels_of_the_name_gave(name: str, form: str) -> None:
    refused = []
    for path in MODELS:
        try:
            converted = tflq.convert(path, kernel_set=name, **FORMS[form]).data
        except UnsupportedError:
            refused.append(path.stem)
            continue
        with np.load(path.with_suffix(".npz")) as arrays:
            inputs = [arrays[key] for key in sorted(arrays) if key.startswith("in")]
            for resolver in ("BUILTIN_REF", "AUTO"):
                (result,) = interpret(converted, [inputs], resolver)[0]
                np.testing.assert_array_equal(result, arrays[COLUMNS[name]], str(path))
    without_kernels = [stem for stem in refused if "_i16" in stem or stem.startswith("resize_bilinear")]
    assert refused == (without_kernels if form == "portable" else [])


@pytest.mark.parametrize("format", ["onnx", "tosa"])
@pytest.mark.parametrize("name", NAMES)
def test_other_runtimes_give_what_the_kernels_of_the_name_gave(name: str, format: str) -> None:
    if format == "onnx":
        need_onnx()
    for path in MODELS:
        conversion = tflq.convert(path, kernel_set=name, format=format)
        with np.load(path.with_suffix(".npz")) as arrays:
            inputs = [arrays[key] for key in sorted(arrays) if key.startswith("in")]
            if format == "onnx":
                names = [value.name for value in conversion.module.main.inputs]
                (result,) = run_file(conversion.data, dict(zip(names, inputs, strict=True)))
            else:
                (result,) = reference(conversion.module, inputs)
            np.testing.assert_array_equal(result, arrays[COLUMNS[name]], str(path))
