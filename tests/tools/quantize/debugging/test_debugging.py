"""Debugging: errors of operators, whose place is known because it was spoiled, and what is said of them."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import SIZE, net, samples, written

import tflq
from tflq.base.errors import FileError, OptionError
from tflq.cli import main
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32
from tflq.tools.quantize.debugging.debugging import advised
from tflq.tools.quantize.debugging.pairing import Side, paired

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


@pytest.fixture
def floats(tmp_path: Path) -> Path:
    return written(tmp_path, net(), "float.tflite")


def quantized(floats: Path, **options: Any) -> Path:
    path = floats.with_name("quantized.tflite")
    tflq.quantize(floats, path, calibration=list(samples(50)), range="minmax", force=True, **options)
    return path


def spoiled(path: Path, tensor: str, what: str) -> Path:
    """The network with one operator wrong, by the name of its result."""
    module = tflq.read(path)
    (op,) = (op for op in module.main.ops if op.results[0].name == tensor)
    if what == "weights":
        weights = op.operand(1).type.element
        assert isinstance(weights, UniformQuantizedPerAxisType)
        wrong: Any = weights.replace(scales=weights.scales * np.float32(1.5))
        op.operand(1).type = op.operand(1).type.with_element(wrong)
    else:
        element = op.result.type.element
        assert isinstance(element, UniformQuantizedType)
        place = -128 if element.zero_point > 0 else 127
        wrong = element.replace(scale=element.scale / 10) if what == "range" else element.replace(zero_point=place)
        op.result.type = op.result.type.with_element(wrong)
    return written(path.parent, module, f"{what}.tflite")


@pytest.mark.parametrize(
    ("tensor", "what"),
    [("positive", "weights"), ("second", "range"), ("positive", "zero point"), ("second", "weights")],
)
def test_what_is_wrong_comes_first(floats: Path, tensor: str, what: str) -> None:
    right = quantized(floats)
    wrong = spoiled(right, tensor, what)
    before, after = (tflq.debug(floats, path, list(samples(30, 1))) for path in (right, wrong))
    assert after.rows[0].tensor == tensor
    assert after.advice[0].tensor == tensor
    first, healthy = after.rows[0].own, before.rows[0].own
    assert first is not None
    assert healthy is not None
    assert first.snr_db < 20 < healthy.snr_db
    assert after.decibels is not None
    assert before.decibels is not None
    kept = tflq.debug(floats, quantized(floats, keep_float=[after.advice[0].tensor]), list(samples(30, 1)))
    assert kept.decibels is not None
    assert kept.decibels > before.decibels - 0.5
    assert after.advice[0].gain_db > (before.decibels - after.decibels) / 2


def test_own_errors_are_those_of_the_formulas(floats: Path) -> None:
    path = quantized(floats)
    result = tflq.debug(floats, path, list(samples(40, 1)))
    assert [row.operator for row in sorted(result.rows, key=lambda row: row.number)] == [
        *("quantize", "fully_connected", "fully_connected", "tanh")
    ]
    by_name = {row.tensor: row for row in result.rows}
    own = by_name["positive"].own
    assert own is not None
    assert own.rmse_per_scale is not None
    assert 0.2 < own.rmse_per_scale < 0.6
    element = next(v for op in tflq.read(path).main.ops for v in op.results if v.name == "positive").type.element
    assert isinstance(element, UniformQuantizedType)
    assert own.rmse == pytest.approx(own.rmse_per_scale * element.scale)
    cast = next(row for row in result.rows if row.operator == "quantize")
    x = samples(40, 1)
    kind = next(op for op in tflq.read(path).main.ops if op.short_name == "quantize").result.type.element
    assert isinstance(kind, UniformQuantizedType)
    steps = np.clip(np.rint(x / np.float32(kind.scale)) + kind.zero_point, -128, 127)
    apart = x.astype(np.float64) - (steps - kind.zero_point) * kind.scale
    assert cast.own is not None
    assert cast.own.rmse == pytest.approx(math.sqrt((apart**2).mean()), rel=1e-3)
    assert by_name["positive"].stands_for == 2
    assert sum(row.share or 0 for row in result.rows) == pytest.approx(1)
    outputs = next(row for row in result.rows if row.operator == "tanh")
    assert result.decibels == pytest.approx(outputs.reached.snr_db)


@pytest.mark.parametrize("scheme", ["int16x8", "dynamic", "weight-only", "float16"])
def test_every_scheme(floats: Path, scheme: Any) -> None:
    result = tflq.debug(floats, quantized(floats, scheme=scheme), list(samples(10, 1)))
    product = next(row for row in result.rows if row.operator == "fully_connected")
    assert product.own is not None
    assert 25 < product.own.snr_db < 120
    assert (product.own.rmse_per_scale is None) == (scheme != "int16x8")


@pytest.mark.parametrize("io", ["int8", "uint8"])
def test_stored_inputs_and_outputs(floats: Path, io: Any) -> None:
    result = tflq.debug(floats, quantized(floats, io=io), list(samples(10, 1)))
    assert [each.tensor for each in result.only_float] == ["first"]  # a RELU is fused into it
    assert not result.only_quantized
    assert result.decibels is not None
    assert result.decibels > 25
    assert any(row.operator == "input" and row.number == -1 for row in result.rows)


def test_the_same_on_any_number_of_processes(floats: Path) -> None:
    path = quantized(floats)
    one, two = (tflq.debug(floats, path, list(samples(70, 1)), workers=count) for count in (1, 2))
    assert one.to_json() == two.to_json()
    assert one.to_csv() == two.to_csv()


def test_only_one_has_signatures(floats: Path) -> None:
    module = tflq.read(quantized(floats))
    module.signatures = None
    result = tflq.debug(floats, written(floats.parent, module, "unsigned.tflite"), [{"given": samples(1)}])
    assert result.decibels is not None
    assert result.decibels > 20


def test_a_network_is_equal_to_itself(floats: Path) -> None:
    result = tflq.debug(floats, floats, list(samples(5)))
    assert result.decibels == math.inf
    assert not result.advice
    assert all(row.own is not None and row.own.snr_db == math.inf for row in result.rows)


def side(*names: str) -> Side:
    values = [Value(TensorType((1, SIZE), f32), name) for name in names]
    ops = [Op("tfl.tanh", [a], [b], {}) for a, b in pairwise(values)]
    return Side(Function("main", [values[0]], [values[-1]], ops), [values[0]], [values[-1]])


def test_what_has_no_partner_is_listed() -> None:
    pairing = paired(side("x", "a", "b", "c", "y"), side("in", "a", "other", "c", "out"))
    assert [(pair.real.name, pair.stored.name, len(pair.ops)) for pair in pairing.pairs] == [
        *(("a", "a", 1), ("c", "c", 2), ("y", "out", 1))
    ]
    assert [each.tensor for each in pairing.only_float] == ["b"]
    assert [each.tensor for each in pairing.only_quantized] == ["other"]
    assert [pairing.pairs[place].real.name for place in pairing.outputs] == ["y"]


def test_an_operator_that_does_not_run_alone_is_said_so(tmp_path: Path) -> None:
    x, y, z = (Value(TensorType((1, SIZE), f32), name) for name in ("x", "y", "z"))
    ops = [
        Op("tfl.tanh", [x], [y], {}),
        Op("tfl.while", [y], [z], {"cond_subgraph_index": 1, "body_subgraph_index": 2}),
    ]
    pairing = paired(*(Side(Function("main", [x], [z], ops), [x], [z]) for _ in range(2)))
    assert [pair.obstacle for pair in pairing.pairs] == ["", "it calls functions"]


def test_files_and_text(floats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = quantized(floats), floats.parent
    np.savez(folder / "samples.npz", given=samples(20, 1))
    arguments = ["debug", str(floats), str(path), str(folder / "samples.npz")]
    places = ["--csv", str(folder / "rows.csv"), "--html", str(folder / "page.html")]
    assert main.run([*arguments, *places]) == 0
    printed = capsys.readouterr().out
    assert "samples     20" in printed
    assert "signal to noise" in printed
    assert main.run([*arguments, *places]) == 2
    assert "--force" in capsys.readouterr().err
    assert main.run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["version"]) == ("tflq.debugging", 1)
    rows = list(csv.DictReader((folder / "rows.csv").read_text().splitlines()))
    assert [row["tensor"] for row in rows] == [row["tensor"] for row in document["rows"]]
    assert float(rows[0]["own_snr_db"]) == pytest.approx(document["rows"][0]["own"]["snr_db"])
    page = (folder / "page.html").read_text()
    assert page.count("<svg") == len(rows)


def test_a_result_that_nothing_reads_is_left_out(tmp_path: Path) -> None:
    """The interpreter keeps no data of it."""
    module = net(signature=False)
    (made,) = module.main.outputs
    parts = [Value(TensorType((1, SIZE // 2), f32), name) for name in ("left", "right")]
    y = Value(TensorType((1, SIZE // 2), f32), "z")
    axis = constant(np.array(1, np.int32), name="axis")
    ops = [*module.main.ops, Op("tfl.split", [axis, made], parts, {"num_splits": 2}), Op("tfl.tanh", [parts[0]], [y])]
    path = written(tmp_path, Module([Function("main", module.main.inputs, [y], ops)]))
    rows = tflq.debug(path, quantized(path), list(samples(10, 1))).rows
    assert "left" in {row.tensor for row in rows}
    assert "right" not in {row.tensor for row in rows}


def test_what_is_not_finite_is_counted(floats: Path) -> None:
    data = samples(10, 1)
    data[3, 2] = np.nan
    assert tflq.debug(floats, quantized(floats), list(samples(10, 1))).left_out == 0
    assert tflq.debug(floats, quantized(floats), list(data)).left_out > SIZE


def test_bad_input(floats: Path) -> None:
    path = quantized(floats)
    with pytest.raises(OptionError, match="no samples"):
        tflq.debug(floats, path, [])
    with pytest.raises(OptionError, match="shape"):
        tflq.debug(floats, path, [np.zeros((1, SIZE + 1), np.float32)])
    with pytest.raises(FileError):
        tflq.debug(floats, path, list(samples(2)), csv=path, force=True)
    module = tflq.read(path)
    x = Value(TensorType((1, SIZE), f32), "more")
    module.main.inputs.append(x)
    other = Module([module.main])
    with pytest.raises(OptionError, match="the float network has 1 inputs, and the quantized one 2"):
        tflq.debug(floats, written(floats.parent, other, "other.tflite"), list(samples(2)))


def test_operators_alone_take_sizes_that_the_file_leaves_open(tmp_path: Path) -> None:
    """A product in blocks: where the batch is 1, BATCH_TO_SPACE_ND alone does not fit."""

    def value(name: str, *shape: int | None) -> Value:
        return Value(TensorType(shape, f32), name)

    x, y = (value(name, None, 4, 4, 2) for name in "xy")
    blocks, product = (value(name, None, 3, 3, 2) for name in ("blocks", "product"))
    two, pads, crops = (constant(np.array(n, np.int32)) for n in ([2, 2], [[1, 1], [1, 1]], [[1, 1], [1, 1]]))
    weights = constant(np.random.default_rng(0).normal(size=(2, 1, 1, 2)).astype(np.float32), name="weights")
    bias = constant(np.zeros(2, np.float32), name="bias")
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "fused_activation_function": "NONE"}
    ops = [
        Op("tfl.space_to_batch_nd", [x, two, pads], [blocks], {}),
        Op("tfl.conv_2d", [blocks, weights, bias], [product], options),
        Op("tfl.batch_to_space_nd", [product, two, crops], [y], {}),
    ]
    given = [np.random.default_rng(n).normal(size=(1, 4, 4, 2)).astype(np.float32) for n in range(20)]
    floats = written(tmp_path, Module([Function("main", [x], [y], ops)]), "float.tflite")
    path = tmp_path / "quantized.tflite"
    tflq.quantize(floats, path, calibration=given, range="minmax")
    rows = tflq.debug(floats, path, given).rows
    assert {row.tensor for row in rows} >= {"blocks", "product", "y"}
    assert all(row.own is not None for row in rows)


def test_networks_that_do_not_belong_together_are_refused(floats: Path) -> None:
    module = net(1)
    for value in {value for op in module.main.ops for value in op.results}:
        value.name = f"other/{value.name}"
    other = written(floats.parent, module, "unrelated.tflite")
    path = floats.with_name("of_the_other.tflite")
    tflq.quantize(other, path, calibration=list(samples(20)), range="minmax")
    with pytest.raises(OptionError, match="no operators of the two networks have results of the same name"):
        tflq.debug(floats, path, list(samples(2)))
    x, y = (Value(TensorType((1, SIZE + 1), f32), name) for name in ("x", "y"))
    wider = written(floats.parent, Module([Function("main", [x], [y], [Op("tfl.tanh", [x], [y], {})])]), "wider.tflite")
    with pytest.raises(
        OptionError, match=r"input 'x' is float32\[1,8\] in the float network, and float32\[1,9\] in the quantized one"
    ):
        tflq.debug(floats, wider, list(samples(2)))


def test_what_reads_a_state_is_paired() -> None:
    """A state has no partner, since it is no operator's result."""

    def stateful() -> Side:
        x, y, state = (Value(TensorType((1, SIZE), f32), name) for name in ("x", "y", "state"))
        op = Op("tfl.add", [x, state], [y], {"fused_activation_function": "NONE"})
        return Side(Function("main", [x], [y], [op]), [x], [y])

    (pair,) = paired(stateful(), stateful()).pairs
    assert [real.name for real, _ in pair.fed] == ["x"]
    assert pair.obstacle == "what it reads has no partner"


def test_16_bits_are_not_advised_before_a_reader_of_8(floats: Path) -> None:
    """A QUANTIZE would round the result in its place; of the last operator there is none."""
    result = tflq.debug(floats, quantized(floats), list(samples(40, 1)))
    by_name = {row.tensor: row for row in result.rows}
    assert [name for name, row in by_name.items() if not row.requantized] == ["y"]
    assert {advice.tensor for advice in result.advice if advice.action == "16 bits"} <= {"y"}
    row = replace(by_name["second"], share=0.5)
    (free,) = advised([replace(row, requantized=False)])
    bound = advised([row])
    assert free.gain_db > 2
    assert all(advice.action == "float" and advice.gain_db < free.gain_db for advice in bound)
