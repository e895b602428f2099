"""A TOSA file compared: floats may differ by what TOSA leaves open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.chains import Step, chain, dense
from support.harness import argument, const

import tflq
from tflq.cli import main
from tflq.ir.module import Function
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedType, f32, i8
from tflq.tools.sweep.store import read_results
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.verify.difference import Tolerance, difference
from tflq.tools.verify.ulps import MOST, allowed_ulps

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")

Q: ElementType = UniformQuantizedType.of(i8, 0.05, 3)


def value(name: str, element: ElementType = Q, shape: tuple[int, ...] = (2, 3)) -> Value:
    return argument(shape, element, name)


def test_floats_may_differ_by_what_tosa_leaves_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "m.tflite", tmp_path / "m.tosa"
    path.write_bytes(dense())
    tflq.convert(path, out)
    ulps = allowed_ulps(tflq.read(out).main)
    assert 50 < ulps < 150
    assert tflq.verify(path, out, atol=0).verdict == "differs"
    assert main.run(["verify", str(path), str(out)]) == 0
    said = capsys.readouterr().out
    assert f"tolerance   floats up to {ulps} float32 ulps of their tensor's largest value" in said
    result = tflq.verify(path, out, layers=True)
    assert (result.verdict, result.to_json()["tolerance"]["ulps"]) == ("accepted", ulps)


def test_a_kernel_that_rounds_activations_is_named() -> None:
    """TOSA has no such kernel: the file is the network of float weights, and equals that."""
    rng, shape = np.random.default_rng(2), (3, 24)
    weights = rng.integers(-127, 128, (24, 24)).astype(np.int8)
    scale = np.float32(0.01)

    def model(held: Value) -> bytes:
        return chain(
            value("x", f32, shape),
            [("tfl.fully_connected", [held, const(np.zeros(24), f32)], value("y", f32, shape), {}, 4)],
        )

    hybrid = model(const(weights, UniformQuantizedType.of(i8, float(scale))))
    made = tflq.convert(hybrid, format="tosa")
    result = tflq.verify(hybrid, made.data)
    assert result.verdict == "differs"
    assert result.notes[0].startswith("FULLY_CONNECTED (operator 0): the interpreter rounds activations to 8 bits")
    reported = tflq.verify(hybrid, made.data, report=made.report)
    assert (reported.verdict, reported.notes) == ("accepted", [])
    held = const(weights, UniformQuantizedType.of(i8, float(scale)))
    steps: list[Step] = [
        ("tfl.fully_connected", [held, const(np.zeros(24), f32)], value(name, f32, shape), {}, 4) for name in "ay"
    ]
    two = chain(value("x", f32, shape), steps)
    noted = tflq.verify(two, tflq.convert(two, format="tosa").data).notes[0]
    assert noted.startswith("FULLY_CONNECTED (operator 0 and 1 more): the interpreter rounds")
    twin = tflq.verify(model(const(weights.astype(np.float32) * scale, f32)), made.data)
    assert twin.passed
    assert twin.notes == []


def test_floats_that_are_wrong_differ() -> None:
    for changed, verdict in ((1e-3, "differs"), (0.0, "accepted")):
        result = tflq.verify(dense(), tflq.convert(dense(changed), format="tosa").data)
        assert result.verdict == verdict
    assert tflq.verify(dense(), dense(1e-6)).verdict == "differs"  # no TOSA, no tolerance


def test_ulps_of_the_largest_value_of_a_tensor() -> None:
    want = np.asarray([1.0, 0.0, np.inf], np.float32)
    unit = np.float32(2) ** -23
    for off, accepted in ((4, True), (5, False)):
        got = want + np.asarray([0, off * unit, 0], np.float32)
        assert difference(got, want, Tolerance(ulps=4)).accepted is accepted
    assert not difference(np.asarray([1, 0, 0], np.float32), want, Tolerance(ulps=4)).accepted
    assert difference(np.zeros(2, np.int8), np.ones(2, np.int8), Tolerance(ulps=400)).beyond == 2


def test_what_rounds_counts_along_the_longest_way() -> None:
    module = tflq.read(tflq.convert(dense(), format="tosa").data)
    counts = allowed_ulps(module.main)
    sums = [op for op in module.main.ops if op.name in ("tosa.conv2d", "tosa.matmul")]
    assert len(sums) == 2
    assert 2 * (2 * int(4 * 24**0.5) + 4) <= counts <= 2 * (2 * (int(4 * 25**0.5) + 2) + 5)
    function = module.main
    for _ in range(MOST):
        function.ops.append(Op("tosa.add", [function.outputs[0]] * 2, [Value(function.outputs[0].type, "")], {}))
        function.outputs = [function.ops[-1].result]
    assert allowed_ulps(function) == MOST


def test_each_rounding_counts_twice() -> None:
    """Both models round: one ADD is two ulps, a second one after it four."""
    x, y, z = (Value(TensorType((3,), f32), name) for name in "xyz")
    ops = [Op("tosa.add", [x, x], [y], {}), Op("tosa.add", [y, x], [z], {})]
    assert [allowed_ulps(Function("f", [x], [y], ops[:n])) for n in (1, 2)] == [2, 4]


def test_integers_have_no_ulps(models: Path) -> None:
    module = tflq.read(models / "pad.tflite")
    assert allowed_ulps(tflq.read(tflq.convert(tflq.write(module), format="tosa").data).main) == 0
    path = models / "cnn_uint8.tflite"
    changed = tflq.read(path)
    weights = changed.main.ops[2].operand(1)
    assert weights.buffer is not None
    weights.buffer = Buffer(weights.buffer.data ^ np.uint8(0x20))
    assert tflq.verify(path, tflq.convert(tflq.write(changed), format="tosa").data).verdict == "differs"


def test_a_sweep_expects_what_is_announced(models: Path, tmp_path: Path) -> None:
    sweep(Plan([models / "mul_per_axis.tflite"], tmp_path / "out", ["integer", "tosa"]))
    found = list(read_results(tmp_path / "out"))
    assert [result["status"] for result in found] == ["ok", "ok"]
    assert [result["verification"]["verdict"] for result in found] == ["accepted", "accepted"]
