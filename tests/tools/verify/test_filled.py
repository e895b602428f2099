"""Rows that a kernel leaves as memory had them are no results: they are not compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const

import tflq
from tflq.cli import main
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i32
from tflq.tools.verify.postprocessing import Filled

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
flexbuffers = pytest.importorskip("flatbuffers.flexbuffers", reason="needs flatbuffers")

BOXES, ROWS = 12, 5
SHAPES = {"boxes": (1, ROWS, 4), "classes": (1, ROWS), "best": (1, ROWS), "number": (1,)}


def ends(names: list[str]) -> tuple[list[Value], dict[str, Value], list[Value]]:
    sources = [argument((1, BOXES, 4), f32, name) for name in ("encoded", "scores")]
    results = {name: argument(shape, f32, name) for name, shape in SHAPES.items()}
    return sources, results, [results[name] for name in names]


def detector(threshold: float, names: list[str]) -> bytes:
    """A detector that fills a row for each box whose score is above the threshold."""
    sources, results, outputs = ends(names)
    anchors = const(np.random.default_rng(3).uniform(0.1, 1, (BOXES, 4)), f32, "anchors")
    options = {"max_detections": ROWS, "max_classes_per_detection": 1, "num_classes": 3, "nms_iou_threshold": 0.5}
    options |= {"nms_score_threshold": threshold} | dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 10.0)
    info = {"custom_options": np.frombuffer(bytes(flexbuffers.Dumps(options)), np.uint8)}
    code = {"custom_code": "TFLite_Detection_PostProcess"}
    op = Op("tfl.custom", [*sources, anchors], list(results.values()), code, info=info)
    return bytes(write(Module([Function("main", sources, outputs, [op])])))


def impostor(names: list[str]) -> bytes:
    """A model that finds nothing, by other operators, and has other values in the rows of what it found."""
    sources, results, outputs = ends(names)
    row = argument((1, ROWS, 1), f32, "row")
    nothing = const(np.zeros(1, np.float32), f32)
    flat = [const(np.asarray(shape, np.int32), i32) for shape in ((1, ROWS), (1,))]
    first = argument((1, 1, 1), f32, "first")
    one = argument((1,), f32, "one")

    def part(source: Value, result: Value) -> Op:
        sizes = [const(np.asarray(x, np.int32), i32) for x in ((0, 0, 0), result.type.shape)]
        return Op("tfl.slice", [source, *sizes], [result], {})

    ops = [
        part(sources[0], results["boxes"]),
        part(sources[1], row),
        Op("tfl.reshape", [row, flat[0]], [results["classes"]], {"new_shape": None}),
        Op("tfl.neg", [results["classes"]], [results["best"]], {}),
        part(sources[1], first),
        Op("tfl.reshape", [first, flat[1]], [one], {"new_shape": None}),
        Op("tfl.mul", [one, nothing], [results["number"]], {"fused_activation_function": "NONE"}),
    ]
    return bytes(write(Module([Function("main", sources, outputs, ops)])))


@pytest.mark.parametrize("names", [list(SHAPES), ["boxes", "best"]], ids=["all", "without the number"])
def test_rows_that_are_not_filled_are_not_compared(names: list[str]) -> None:
    result = tflq.verify(detector(2.0, names), impostor(names), interface=False, layers=True)
    assert result.equal, result.to_json()
    assert {name: found.elements for (_, name), found in result.outputs.items() if name != "number"} == dict.fromkeys(
        [name for name in names if name != "number"], 0
    )
    assert result.outputs["", names[0]].unfilled > 0
    assert result.notes == [
        "TFLite_Detection_PostProcess (operator 0) fills 0 of 25 rows in 5 runs: only these are compared"
    ]
    assert result.layers is not None
    assert (result.layers.compared, result.layers.diverging) == (4, ())


@pytest.mark.parametrize("names", [list(SHAPES), ["boxes", "best"]], ids=["all", "without the number"])
def test_rows_that_are_filled_are_compared(names: list[str]) -> None:
    result = tflq.verify(detector(0.0, names), impostor(names), interface=False, layers=True)
    assert result.verdict == "differs"
    assert result.outputs["", "boxes"].elements > 0
    assert not result.outputs["", "boxes"].accepted
    assert result.layers is not None
    assert "boxes" in {each.tensor for each in result.layers.diverging}


def scaled(data: bytes, factor: float) -> bytes:
    """A detector of boxes that an operator before it multiplies."""
    module = tflq.read(data)
    (op,) = module.main.ops
    read = argument((1, BOXES, 4), f32, "decoded")
    mul = Op(
        "tfl.mul",
        [op.operand(0), const(np.asarray([factor], np.float32), f32)],
        [read],
        {"fused_activation_function": "NONE"},
    )
    op.operands[0] = read
    module.main.ops.insert(0, mul)
    return bytes(write(module))


def test_what_a_detector_reads_is_compared_whatever_it_fills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"{factor}.tflite" for factor in (1, 2)]
    for path, factor in zip(paths, (1, 2), strict=True):
        path.write_bytes(scaled(detector(2.0, list(SHAPES)), factor))
    assert main.run(["verify", str(paths[0]), str(paths[0])]) == 0
    said = capsys.readouterr().out
    assert "fills 0 of 25 rows in 5 runs" in said
    assert "operator 1 (TFLite_Detection_PostProcess), tensor 'decoded': equal, 240 elements" in said
    assert "0 of 100" in said  # elements of the boxes
    result = tflq.verify(*paths)
    assert result.verdict == "differs"
    assert all(found.equal for found in result.outputs.values())
    (operand,) = result.operands
    assert (operand.tensor, operand.difference.elements) == ("decoded", 240)
    assert result.to_json()["operands"][0]["tensor"] == "decoded"


def test_a_detection_has_a_row_for_each_of_its_classes() -> None:
    rows = np.arange(8)[None, :]
    count = np.asarray([2.0], np.float32)
    assert Filled(0, "", 1, 3).rows(rows, count).tolist() == [[0, 1]]
    assert Filled(0, "", 1, 3, group=3, used=2).rows(rows, count).tolist() == [[0, 1, 3, 4]]
