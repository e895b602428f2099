"""`infer` of TFLite's operators: the shapes that the interpreter's results have, for models of one operator each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matrix import GENERATORS
from matrix.run import case_of
from support.corpus import models
from support.memory import result_shapes

from tflq.dialects.tfl.state import VarHandle
from tflq.formats.tflite.reader import read
from tflq.transforms.shape_inference import Inference

COUNT = 3


def compare(model: bytes, inputs: Sequence[np.ndarray], resolver: str = "BUILTIN_REF") -> None:
    """Fails where a shape, as far as it is inferred, is not the interpreter's."""
    module = read(model)
    found = result_shapes(model, inputs, resolver)
    inference = Inference(module, {v: a.shape for v, a in zip(module.main.inputs, inputs, strict=True)})
    for op, shapes in zip(module.main.ops, found, strict=True):
        for value, shape in zip(op.results, shapes, strict=False):
            inferred = inference.shapes[value]
            if shape is None or inferred is None or isinstance(op, VarHandle):
                continue
            assert len(inferred) == len(shape), (op, inferred, shape)
            assert all(a in (None, b) for a, b in zip(inferred, shape, strict=True)), (op, inferred, shape)


@pytest.mark.parametrize("name", GENERATORS)
def test_matrix(name: str) -> None:
    refused = []
    for number in range(COUNT):
        case = case_of(name, number)
        try:
            compare(case.twin or case.model, case.batches[0], case.reference)
        except RuntimeError as error:
            refused.append(str(error))
    if len(refused) == COUNT:
        pytest.skip(f"no kernel: {refused[0]}")


@pytest.mark.corpus
@pytest.mark.parametrize("path", models("ops"), ids=lambda path: path.stem)
def test_corpus(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as arrays:
        inputs = [arrays[f"s0_in{i}"] for i in range(len(read(path).main.inputs))]
    compare(path.read_bytes(), inputs, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
