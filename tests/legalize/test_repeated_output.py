"""A model that returns one tensor twice."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tflq import convert
from tflq.formats.flatbuffer.codec import decode, encode

MODEL = Path(__file__).resolve().parents[2] / "models" / "split.tflite"


def test_one_tensor_returned_twice_is_written_once() -> None:
    tree: dict[str, Any] = copy.deepcopy(decode(MODEL.read_bytes()))
    tree["subgraphs"][0]["outputs"] = (2, 3, 4, 4)
    function = convert(encode(tree)).module.main
    assert [value.name for value in function.outputs] == ["part0", "part1", "part2", "part2"]
    assert function.outputs[2] is function.outputs[3]
    results = [result for op in function.ops for result in op.results]
    assert len(set(results)) == len(results)
