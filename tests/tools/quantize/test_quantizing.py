"""Quantizing float networks: what becomes quantized, that it runs, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import SIZE, dense, net, samples, signatures, written

import tflq
from tflq.analysis.statistics import PointStatistics, Statistics
from tflq.base.errors import FileError, InvalidModelError, OptionError
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i1, i8, i16, i32, ui8
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.verify.verifying import verify

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
STATIC = ["int8", "int16x8"]
OF_WEIGHTS = ["dynamic", "weight-only", "float16"]
LEAST = {"int8": 30, "int16x8": 35, "dynamic": 30, "weight-only": 35, "float16": 60}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, net())


def quantized(model: Path, **options: Any) -> tflq.Quantization:
    options.setdefault("range", "minmax")
    return tflq.quantize(model, model.with_name("quantized.tflite"), force=True, **options)


@pytest.mark.parametrize("scheme", [*STATIC, *OF_WEIGHTS])
def test_every_scheme_runs_near_the_floats(model: Path, scheme: str) -> None:
    result = quantized(model, scheme=scheme, calibration=list(samples(50)))
    assert result.decibels is not None
    assert result.decibels > LEAST[scheme]
    assert result.bytes_out == model.with_name("quantized.tflite").stat().st_size


@pytest.mark.parametrize("scheme", STATIC)
def test_all_operators_are_quantized_by_what_was_seen(model: Path, scheme: str) -> None:
    seen = tflq.calibrate(model, list(samples(50)))
    result = quantized(model, scheme=scheme, statistics=seen.statistics)
    assert [row.operator for row in result.rows] == ["fully_connected", "fully_connected", "tanh"]
    assert not result.kept
    assert result.rows[0].origins == ("calibration", "constant", "multiplier_accumulator_scale", "calibration")
    by_name = {v.name: v.type.element for op in result.module.main.ops for v in op.tensors}
    point, weights = seen.statistics.points["second"], by_name["second/weights"]
    assert isinstance(by_name["second"], UniformQuantizedType)
    assert isinstance(weights, UniformQuantizedPerAxisType)
    low, high = float(point.minimum or 0), float(point.maximum or 0)
    scale = max(-low, high) / 32767 if scheme == "int16x8" else (high - low) / 255
    assert by_name["second"].scale == pytest.approx(scale, rel=1e-6)
    floats = next(op.operand(1).array for op in reversed(net().main.ops) if op.short_name == "fully_connected")
    wanted = np.abs(floats).max(axis=1).astype(np.float64) / 127
    np.testing.assert_array_equal(weights.scales, wanted.astype(np.float32))


def test_the_bytes_are_the_same_each_time(model: Path) -> None:
    seen = tflq.calibrate(model, list(samples(20))).statistics
    first, second = (tflq.write(tflq.quantize(model, statistics=seen, io="int8").module) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("scheme", STATIC)
def test_what_is_quantized_converts_exactly(model: Path, scheme: str, tmp_path: Path) -> None:
    quantized(model, scheme=scheme, calibration=list(samples(20)))
    tflq.convert(tmp_path / "quantized.tflite", tmp_path / "integer.tflite")
    assert verify(tmp_path / "quantized.tflite", tmp_path / "integer.tflite").equal


@pytest.mark.parametrize(
    ("scheme", "io", "storage"), [("int8", "int8", i8), ("int8", "uint8", ui8), ("int16x8", "int16", i16)]
)
def test_edges_are_stored_integers_under_their_names(model: Path, scheme: str, io: str, storage: Any) -> None:
    result = quantized(model, scheme=scheme, io=io, calibration=list(samples(20)))
    main = result.module.main
    assert [value.type.storage for value in (*main.inputs, *main.outputs)] == [storage, storage]
    assert [value.name for value in (*main.inputs, *main.outputs)] == ["x", "y"]
    (signature,) = result.module.signatures or []
    assert (signature.inputs, signature.outputs) == ([("given", main.inputs[0])], [("made", main.outputs[0])])
    assert result.decibels is not None
    assert result.decibels > 30


def test_an_edge_of_another_width_is_an_error(model: Path) -> None:
    with pytest.raises(OptionError, match="input 'x' cannot be stored as integers: its numbers are of 8 bits"):
        quantized(model, io="int16", calibration=list(samples(2)))
    assert not model.with_name("quantized.tflite").exists()


@pytest.mark.parametrize("scheme", [*STATIC, *OF_WEIGHTS])
def test_operators_can_be_kept_as_floats(model: Path, scheme: str) -> None:
    result = quantized(model, scheme=scheme, keep_float=["sec*"], calibration=list(samples(20)))
    row = next(row for row in result.rows if row.tensor == "second")
    assert (row.quantized, row.why) == (False, "it was to stay float")
    assert result.rows[0].quantized
    with pytest.raises(OptionError, match="no operator makes a tensor 'secnd'; near are 'second'"):
        quantized(model, scheme=scheme, keep_float=["secnd"], calibration=list(samples(2)))


def test_what_was_not_seen_stays_float_and_is_said(model: Path) -> None:
    seen = tflq.calibrate(model, list(samples(20))).statistics
    less = Statistics({key: point for key, point in seen.points.items() if key not in ("second", "y")})
    result = quantized(model, statistics=less)
    kept = {row.tensor: row.why for row in result.kept}
    assert kept.keys() == {"second", "y"}
    assert kept["second"].startswith("output 0: ")
    assert "1 of 3 operators are quantized" in result.summary()


def test_a_target_without_a_kernel_is_said(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "npu.toml"
    target.write_text('[target]\nname = "npu"\n[kernels]\ntanh = "qi8 -> qi8; fixed_scale 0.0078125 0"\n')
    result = quantized(model, target=target, calibration=list(samples(20)))
    assert [row.quantized for row in result.rows] == [False, False, False, True]
    assert result.rows[0].why == "the target lists no kernel 'fully_connected'"


def test_dead_tensors_have_parameters(tmp_path: Path) -> None:
    module = net()
    module.main.ops[0].operand(1).array[:] = 0
    model = written(tmp_path, module)
    for scheme in STATIC:
        assert not quantized(model, scheme=scheme, calibration=list(samples(5))).kept


def test_what_does_not_fit_is_an_error_and_leaves_no_file(model: Path, tmp_path: Path) -> None:
    other = written(tmp_path, net(1), "other.tflite")
    seen = tflq.calibrate(other, list(samples(2))).statistics
    for options, what in (
        ({}, "nothing in the network says how"),
        ({"statistics": seen, "calibration": []}, "either from statistics or from samples"),
        ({"statistics": seen}, "are of another model"),
        ({"statistics": Statistics({"z": PointStatistics(1, 0.0, 1.0)})}, "none of the model's tensors"),
        ({"statistics": seen, "scheme": "int4"}, "scheme"),
        ({"statistics": seen, "range": "max"}, "range 'max' is not known"),
        ({"statistics": seen, "scheme": "float16"}, "is of weights alone"),
    ):
        with pytest.raises(OptionError, match=what):
            tflq.quantize(model, tmp_path / "out.tflite", **options)
    with pytest.raises(FileError, match="never replaced"):
        tflq.quantize(model, model, calibration=list(samples(2)), force=True)
    assert not (tmp_path / "out.tflite").exists()


def _sharing() -> Module:
    """Two products by the same weights."""
    module = net()
    first, _, second, _ = module.main.ops
    second.operands[1] = first.operands[1]
    return module


@pytest.mark.parametrize("scheme", [*STATIC, "dynamic", "weight-only"])
def test_shared_weights_are_stored_once(scheme: str, tmp_path: Path) -> None:
    module = quantized(written(tmp_path, _sharing()), scheme=scheme, calibration=list(samples(20))).module
    stored = [v for v in module.main.values() if v.buffer is not None and v.type.shape == (SIZE, SIZE)]
    assert [v.type.storage for v in stored] == [i8]


def test_halves_are_rounded_to_even_and_shared_weights_stay_shared(tmp_path: Path) -> None:
    result = quantized(written(tmp_path, _sharing()), scheme="float16")
    stored = [op.operand(0) for op in result.module.main.ops if op.short_name == "dequantize"]
    assert [value.name for value in stored] == ["first/weights/float16", "bias/float16", "bias/float16"]
    np.testing.assert_array_equal(stored[0].array, net().main.ops[0].operand(1).array.astype(np.float16))


def test_a_network_that_is_equal_has_no_noise(model: Path) -> None:
    assert signal_to_noise(model, model, list(samples(3))) == float("inf")
    assert samples(3).shape == (3, SIZE)


def test_the_network_that_does_not_run_is_named(model: Path) -> None:
    refused = Path(__file__).resolve().parents[3] / "models" / "atan2_int16.tflite"
    for pair in ((model, refused), (refused, model)):
        with pytest.raises(InvalidModelError, match=r"atan2_int16\.tflite: the interpreter does not run it: "):
            signal_to_noise(*pair, list(samples(1)))


TRAINED = sorted((Path(__file__).parent / "simulated").glob("*_float.tflite"))


@pytest.mark.parametrize("path", TRAINED, ids=[path.stem for path in TRAINED])
def test_a_trained_network_needs_no_data(path: Path) -> None:
    made = tflq.quantize(path).module
    by_passes = parse_pipeline("tfl-quantize-pipeline").run(tflq.read(path)).module
    by_passes.buffers, by_passes.operator_codes = [], []
    assert tflq.write(made) == tflq.write(by_passes)


def test_outputs_are_measured_on_samples_by_the_names_of_a_signature(tmp_path: Path) -> None:
    left, right, total = (Value(TensorType((1, SIZE), f32), name) for name in ("a", "b", "c"))
    add = Op("tfl.add", [left, right], [total], {"fused_activation_function": "NONE"})
    signature = Signature("serve", 0, [("left", left), ("right", right)], [("sum", total)])
    model = written(tmp_path, Module([Function("main", [left, right], [total], [add])], [signature]))
    np.savez(tmp_path / "data.npz", left=samples(4), right=samples(4, 1))
    result = quantized(model, calibration=tmp_path / "data.npz")
    assert result.decibels is not None
    assert result.decibels > 30


@pytest.mark.parametrize("target", ["kernels", "tflm", "tosa", "portable", "integer", "ethos-u55"])
def test_a_target_of_conversions_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(OptionError, match=r"is what a quantized network is converted to.* int8, int16x8, uint8 or a"):
        tflq.quantize(written(tmp_path, net()), calibration=list(samples(4)), target=target)


def test_an_unknown_target_is_refused_with_those_of_schemes(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"did you mean 'uint8'\? known: int8, int16x8, uint8, and target files"):
        tflq.quantize(written(tmp_path, net()), calibration=list(samples(4)), target="uint")


def test_a_target_without_a_kernel_is_said_so(tmp_path: Path) -> None:
    target = tmp_path / "none.toml"
    target.write_text('[target]\nname = "none"\n[kernels]\nrelu6 = []\n')
    with pytest.raises(OptionError, match=r"no kernel for any operator.*fully_connected: the target lists no kernel"):
        tflq.quantize(written(tmp_path, net()), calibration=list(samples(4)), target=target)


def test_without_a_histogram_only_where_a_range_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked = written(tmp_path, net()), []
    own = tflq.calibrate

    def noted(*given: Any, histogram: bool, **options: Any) -> Any:
        asked.append(histogram)
        return own(*given, histogram=histogram, **options)

    monkeypatch.setattr("tflq.tools.quantize.choosing.calibrate", noted)
    for range_of in ("minmax", "mse"):
        tflq.quantize(model, calibration=list(samples(4)), range=range_of)
    tflq.quantize(model, calibration=list(samples(4)), recipe=[{"name": "second", "range": "percentile:99"}])
    assert asked == [False, True, True]


def test_samples_of_several_signatures(tmp_path: Path) -> None:
    """Each runs on its samples, which say in any form which signature they are of; a warning names one without."""
    model, data = written(tmp_path, signatures()), samples(8)
    scaled = data * np.float32(100)
    first = tflq.quantize(model, calibration=list(data), range="minmax")
    assert any("there are no samples of signature 'ab'" in text for text in first.warnings)
    other = tflq.quantize(model, calibration={"ab": scaled}, range="minmax")
    assert any("there are no samples of signature 'xy'" in text for text in other.warnings)
    np.savez(tmp_path / "both.npz", **{"xy/given": data, "ab/given": scaled})
    pairs = [*(("xy", row) for row in data), *(("ab", {"given": row}) for row in scaled)]
    once = {"xy": iter(data), "ab": lambda: iter(scaled)}
    forms = {"xy": data, "ab": list(scaled)}, tmp_path / "both.npz", pairs, iter(pairs), lambda: iter(pairs), once
    results = [tflq.quantize(model, calibration=form, range="minmax", io="int8") for form in forms]
    assert len({tflq.write(result.module) for result in results}) == 1
    assert not results[0].kept
    assert not results[0].warnings
    assert results[0].decibels is not None
    scales = [function.inputs[0].type.element.scale for function in results[0].module.functions]  # type: ignore[union-attr]
    assert scales[1] == pytest.approx(100 * scales[0])
    seen = [tflq.calibrate(model, forms[0], signature=key).statistics for key in ("xy", "ab")]
    assert tflq.write(tflq.quantize(model, statistics=seen, io="int8").module) == tflq.write(results[0].module)
    with pytest.raises(OptionError, match="labels are of the samples of one signature"):
        tflq.quantize(model, calibration=forms[0], labels=np.zeros(8, np.int64))


@pytest.mark.parametrize("options", [{"scheme": "weight-only", "weights": "int4"}, {"range": "minmax"}])
@pytest.mark.parametrize("method", ["gptq", "reconstruct"])
def test_weights_that_signatures_share_are_fitted_to_the_samples_of_both(
    options: dict[str, Any], method: Any, tmp_path: Path
) -> None:
    size, rng = 32, np.random.default_rng(1)
    model = written(tmp_path, signatures(size))
    data = {
        key: (rng.normal(size=(24, 4)) @ rng.normal(size=(4, size)) + number).astype(np.float32)
        for number, key in enumerate(("xy", "ab"))
    }
    out = tmp_path / "out.tflite"
    methods: list[tuple[Any, Any]] = [(data, "mse"), ({"xy": data["xy"]}, method), (data, method)]
    plain, alone, fitted = (
        tflq.quantize(model, out, calibration=samples_of, weight_method=each, force=True, **options)
        for samples_of, each in methods
    )
    assert plain.decibels is not None
    assert fitted.decibels is not None
    assert fitted.decibels > plain.decibels + (2 if "weights" in options else 0.3)
    functions = tflq.read(out).functions
    one, other = (max((v for v in f.tensors if v.is_constant), key=lambda v: v.type.size or 0) for f in functions)
    assert one.buffer is other.buffer
    assert tflq.write(alone.module) != tflq.write(fitted.module)


def test_each_signature_has_ranges_of_its_own(tmp_path: Path) -> None:
    model = written(tmp_path, signatures())
    seen = [
        tflq.calibrate(model, list(samples(20) * factor), signature=key).statistics
        for key, factor in (("xy", np.float32(1)), ("ab", np.float32(100)))
    ]
    result = quantized(model, statistics=seen, io="int8")
    assert not result.kept
    scales = [function.inputs[0].type.element.scale for function in result.module.functions]  # type: ignore[union-attr]
    assert scales[1] == pytest.approx(100 * scales[0])
    assert [row.tensor for row in quantized(model, statistics=seen[0]).kept] == ["b"]


def test_a_mask_of_the_least_float_stays_float(tmp_path: Path) -> None:
    """The kernel of ADD ends the process on such scales."""
    mask, y = (Value(TensorType((1, SIZE), f32), name) for name in ("mask", "y"))
    module = net(signature=False)
    (given,), (made,) = module.main.inputs, module.main.outputs
    add = Op("tfl.add", [made, mask], [y], {"fused_activation_function": "NONE"})
    module = Module([Function("main", [given, mask], [y], [*module.main.ops, add])])
    masks = np.where(samples(10, 1) > 0, np.finfo(np.float32).min, 0).astype(np.float32)
    result = quantized(written(tmp_path, module), calibration=list(zip(samples(10), masks, strict=True)))
    assert [row.tensor for row in result.kept] == ["y"]


def test_halves_and_blocks_are_the_same_numbers_in_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    x, y = Value(TensorType((1, 64), f32), "x"), Value(TensorType((1, SIZE), f32), "y")
    op = dense(rng.normal(size=(SIZE, 64)).astype(np.float32), x, y, "product")
    model = written(tmp_path, Module([Function("main", [x], [y], [op])]))
    for options in ({"scheme": "float16"}, {"scheme": "dynamic", "weights": "int4", "blocks": 32}):
        quantized(model, **options)
        conversion = tflq.convert(tmp_path / "quantized.tflite", tmp_path / "out.onnx", force=True)
        assert str(conversion.report.requirements).endswith("exact in no runtime")
        found = verify(tmp_path / "quantized.tflite", tmp_path / "out.onnx", atol=0.5 if "blocks" in options else 1e-5)
        assert found.verdict == "accepted"


def with_a_loop() -> Module:
    """A product, a WHILE whose body is a product, and TANH."""

    def value(name: str, element: Any = f32) -> Value:
        return Value(TensorType((1, SIZE) if element == f32 else (), element), name)

    def counted(name: str, number: int) -> Value:
        return constant(np.array(number, np.int32), name=name)

    weights = (np.random.default_rng(0).normal(size=(SIZE, SIZE)) / 3).astype(np.float32)
    x, h, loop, y, last = value("x"), value("h"), value("loop"), value("y"), value("last", i32)
    calls = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    ops = [
        dense(weights, x, h, "first"),
        Op("tfl.while", [counted("zero", 0), h], [last, loop], calls),
        Op("tfl.tanh", [loop], [y], {}),
    ]
    place, given, go = value("place", i32), value("given"), value("go", i1)
    cond = Function("cond", [place, given], [go], [Op("tfl.less", [place, counted("three", 3)], [go], {})])
    at, state, made, after = value("at", i32), value("state"), value("made"), value("after", i32)
    steps = Op("tfl.add", [at, counted("one", 1)], [after], {"fused_activation_function": "NONE"})
    body = Function("body", [at, state], [after, made], [dense(weights, state, made, "inner"), steps])
    return Module([Function("main", [x], [y], ops), cond, body])


def test_a_body_of_a_loop_is_quantized_by_what_is_seen_inside(tmp_path: Path) -> None:
    model = written(tmp_path, with_a_loop())
    result = quantized(model, calibration=list(samples(20)))
    assert [row.tensor for row in result.rows if row.quantized] == ["h", "y", "made"]
    assert {row.operator for row in result.kept} == {"while"}  # not those that count on integers
    tflq.convert(tmp_path / "quantized.tflite", tmp_path / "integer.tflite")
    assert verify(tmp_path / "quantized.tflite", tmp_path / "integer.tflite", layers=True).equal


def with_integers() -> Module:
    """A product, the shapes of its input and result, its greatest element, the two greatest, and which are above 0."""
    weights = (np.random.default_rng(0).normal(size=(SIZE, SIZE)) / 3).astype(np.float32)
    x, h = (Value(TensorType((1, SIZE), f32), name) for name in "xh")
    given, made = (Value(TensorType((2,), i32), name) for name in ("given", "made"))
    place = Value(TensorType((1,), i32), "place")
    greatest, places = (Value(TensorType((1, 2), kind), name) for kind, name in ((f32, "greatest"), (i32, "places")))
    above = Value(TensorType((1, SIZE), i1), "above")
    axis, two, zero = (constant(np.array(n, kind)) for n, kind in ((1, np.int32), (2, np.int32), (0, np.float32)))
    ops = [
        dense(weights, x, h, "first"),
        Op("tfl.shape", [x], [given], {"out_type": "INT32"}),
        Op("tfl.shape", [h], [made], {"out_type": "INT32"}),
        Op("tfl.arg_max", [h, axis], [place], {"output_type": "INT32"}),
        Op("tfl.topk_v2", [h, two], [greatest, places], {}),
        Op("tfl.greater", [h, zero], [above], {}),
    ]
    return Module([Function("main", [x], [given, made, place, greatest, places, above], ops)])


@pytest.mark.parametrize("io", ["float", "int8"])
def test_integers_are_made_of_the_quantized_tensor(tmp_path: Path, io: str) -> None:
    module = with_integers()
    if io == "int8":  # shapes alone are left: integers have no other storage
        del module.main.outputs[2:], module.main.ops[3:]
        module.main.outputs.append(module.main.ops[0].result)
    model = written(tmp_path, module)
    result = quantized(model, io=io, calibration=list(samples(20)))
    assert not result.kept
    assert "shape" not in {row.operator for row in result.rows}
    main = result.module.main
    reading = [op for op in main.ops if op.short_name in ("arg_max", "topk_v2", "greater")]
    assert all(op.operand(0) is main.ops[1].result for op in reading)
    assert {op.operand(0).name for op in main.ops if op.short_name == "shape"} == {"x", "h"}
    casts = [op.short_name for op in main.ops if op.short_name in ("quantize", "dequantize")]
    assert casts == (["quantize", "dequantize"] if io == "float" else [])
    tflq.convert(tmp_path / "quantized.tflite", tmp_path / "integer.tflite")
    assert verify(tmp_path / "quantized.tflite", tmp_path / "integer.tflite", layers=True).equal
