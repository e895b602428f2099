"""Nodes that the XNNPACK delegate takes, and what its kernels give: equal to the default interpreter, bit for bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op
from support.reference import evaluated

import tflq
from tflq.dialects.tosa.movement import Resize
from tflq.formats.tflite.reader import read
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.legalize.deciding import Policy
from tflq.legalize.delegate import is_delegated
from tflq.legalize.differing import Queries
from tflq.legalize.engine import legalize
from tflq.numerics.kernel_sets import IN_FILE, NAMES, REFERENCE, kernel_set
from tflq.numerics.reference import KernelSet

pytestmark = pytest.mark.usefixtures("forked")

XNNPACK = kernel_set("xnnpack-2.3")
PAIRS = [np.repeat(np.arange(256), 256).reshape(1, -1), np.tile(np.arange(256), 256).reshape(1, -1)]


def of(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, scale, zero_point)


def of_two(name: str, storage: ScalarType, scales: tuple[float, float, float], activation: str = "NONE") -> bytes:
    zeros = (3, -9, 5) if storage.signed else (130, 119, 128)
    elements = [of(storage, *v) for v in zip(scales, zeros, strict=True)]
    values = [argument((1, 1 << 16), e, n) for e, n in zip(elements, "xyz", strict=True)]
    options: dict[str, Any] = {"fused_activation_function": activation}
    options |= {} if name == "tfl.mul" else {"pot_scale_int16": False}
    return one_op(name, values[:2], values[2:], options)


def of_one(name: str, storage: ScalarType, scales: tuple[float, float], **options: Any) -> bytes:
    zeros = (3, -9) if storage.signed else (130, 119)
    x, y = (argument((1, 256), of(storage, *v), n) for v, n in zip(zip(scales, zeros, strict=True), "xy", strict=True))
    return one_op(name, [x], [y], options)


def assert_equals_interpreter(model: bytes, inputs: list[np.ndarray]) -> None:
    form = legalize(read(model), Policy(fallback=False, kernel_set=XNNPACK))[0]
    (want,), (got,) = interpret(model, [inputs], "AUTO")[0], evaluated(form, [inputs])[0]
    np.testing.assert_array_equal(got, want)


def pairs(storage: ScalarType) -> list[np.ndarray]:
    return [(v + storage.minimum).astype(storage.dtype) for v in PAIRS]


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize("name", ["tfl.add", "tfl.sub", "tfl.mul"])
@pytest.mark.parametrize("scales", [(0.02, 0.5, 0.25), (0.5, 0.5, 0.75), (0.0371, 0.0371, 0.0213)])
@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
def test_arithmetic_of_two(name: str, storage: ScalarType, scales: tuple[float, float, float], activation: str) -> None:
    assert_equals_interpreter(of_two(name, storage, scales, activation), pairs(storage))


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize(
    ("name", "scales", "options"),
    [
        ("tfl.leaky_relu", (0.5, 0.25), {"alpha": 0.3}),
        ("tfl.leaky_relu", (0.031, 0.05), {"alpha": -0.125}),
        ("tfl.quantize", (0.5, 0.75), {}),
        ("tfl.tanh", (0.02, 0.0078125), {}),
    ],
)
def test_functions_of_one(name: str, storage: ScalarType, scales: tuple[float, float], options: dict[str, Any]) -> None:
    stored = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)[None]
    assert_equals_interpreter(of_one(name, storage, scales, **options), [stored])


def convolution(storage: ScalarType, zero_point: int = 0) -> bytes:
    rng = np.random.default_rng(0)
    weights = const(rng.integers(0, 100, (4, 3, 3, 2)), of(storage, 0.5, zero_point), "w")
    bias = const(rng.integers(-900, 900, 4), of(i32, 0.125), "b")
    x, y = argument((1, 9, 9, 2), of(storage, 0.25, 2)), argument((1, 9, 9, 4), of(storage, 32.0, 1), "y")
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "RELU"}
    return one_op("tfl.conv_2d", [x, weights, bias], [y], {**options, "dilation_h_factor": 1, "dilation_w_factor": 1})


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize("form", [{}, {"mac": "float32"}, {"target": "portable"}])
def test_a_convolution_whose_sums_are_ties(storage: ScalarType, form: dict[str, Any]) -> None:
    model, rng = convolution(storage), np.random.default_rng(1)
    inputs = [rng.integers(storage.minimum, storage.maximum + 1, (1, 9, 9, 2)).astype(storage.dtype)]
    converted = tflq.convert(model, kernel_set="xnnpack", **form).data
    (want,) = interpret(model, [inputs], "AUTO")[0]
    for resolver in ("BUILTIN_REF", "AUTO"):
        np.testing.assert_array_equal(interpret(converted, [inputs], resolver)[0][0], want)
    assert tflq.inspect(model).against("xnnpack-2.3") == [(0, 0, "CONV_2D")]


def unlike_channels(storage: ScalarType, activation: str) -> bytes:
    """CONV_2D with a channel whose sums are one level and as large as int32 holds, as where its weights are zero, and
    one whose sums are about a threshold that float32 does not hold."""
    scales = np.asarray([0.004, 2.0**-29, 2.0**-22, 0.003], np.float32)
    filters = np.random.default_rng(0).integers(-90, 90, (4, 3, 3, 2))
    filters[1] = 0
    biases = np.asarray([900, -(1 << 30) + 7, int(80.5 * 2**22) + 3, -700])
    weights = const(filters, UniformQuantizedPerAxisType.of(i8, 0, scales, 0), "w")
    bias = const(biases, UniformQuantizedPerAxisType.of(i32, 0, scales, 0), "b")
    x, y = argument((1, 9, 9, 2), of(storage, 1.0, 2)), argument((1, 9, 9, 4), of(storage, 1.0, -9), "y")
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": activation}
    return one_op("tfl.conv_2d", [x, weights, bias], [y], {**options, "dilation_h_factor": 1, "dilation_w_factor": 1})


@pytest.mark.parametrize("activation", ["NONE", "RELU"])
def test_sums_beyond_float32_stay_in_float32(activation: str) -> None:
    model, rng = unlike_channels(i8, activation), np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, (1, 9, 9, 2)).astype(np.int8)]
    converted = tflq.convert(model, kernel_set="xnnpack-2.3", mac="float32").data
    (want,) = interpret(model, [inputs], "AUTO")[0]
    assert len(np.unique(want[..., 2])) == 2
    for resolver in ("BUILTIN_REF", "AUTO"):
        np.testing.assert_array_equal(interpret(converted, [inputs], resolver)[0][0], want)
    assert {op.results[0].type.storage for op in tflq.read(converted).main.ops if op.name != "tfl.cast"} == {f32}


def transposed(kernel: int, stride: int, size: int, padding: str = "SAME", storage: ScalarType = i8) -> bytes:
    """TRANSPOSE_CONV from two rows, whose sums of odd numbers are ties."""
    rng = np.random.default_rng(0)
    weights = const(2 * rng.integers(-9 if storage.signed else 0, 9, (3, kernel, kernel, 1)) + 1, of(storage, 0.5))
    bias = const(np.zeros(3), of(i32, 0.25))
    shape = const(np.asarray([1, size, size, 3]), i32)
    x, y = argument((1, 2, 2, 1), of(storage, 0.5), "x"), argument((1, size, size, 3), of(storage, 0.5, 3), "y")
    options = {"padding": padding, "stride_h": stride, "stride_w": stride, "fused_activation_function": "NONE"}
    return one_op("tfl.transpose_conv", [shape, weights, x, bias], [y], options, 3)


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        (transposed(3, 2, 4), True),
        (transposed(2, 3, 6), False),
        (transposed(2, 3, 5, "VALID"), True),
        (transposed(2, 3, 6, "VALID"), True),
    ],
)
def test_transposed_convolutions_by_their_paddings(model: bytes, taken: bool) -> None:
    assert is_delegated(read(model).main.ops[0]) == taken
    x = np.asarray([[1, 3], [-5, 7]], np.int8).reshape(1, 2, 2, 1)
    assert_equals_interpreter(model, [x])


def test_a_fused_activation_that_is_no_bound_is_left() -> None:
    for name in ("tfl.add", "tfl.mul"):
        model = of_two(name, i8, (0.5, 0.5, 0.75), "SIGN_BIT")
        assert not is_delegated(read(model).main.ops[0])
        assert_equals_interpreter(model, pairs(i8))


def test_the_delegate_leaves_what_its_kernels_do_not_hold() -> None:
    for model, taken in (
        (of_two("tfl.add", i8, (0.5, 0.5, 0.5)), True),
        (of_two("tfl.add", i8, (0.0001, 0.5, 0.5)), False),
        (of_two("tfl.mul", i8, (0.001, 0.001, 0.5)), False),
        (convolution(i8), True),
        (convolution(i8, 3), False),
        (of_one("tfl.abs", i8, (0.5, 0.25)), False),
    ):
        op = read(model).main.ops[0]
        assert is_delegated(op) == taken
        assert (XNNPACK.of(delegated=taken) is XNNPACK.delegated) == taken
        assert REFERENCE.of(delegated=taken) is REFERENCE


def addition(shape: tuple[int | None, ...], scales: tuple[float, float, float], *, powers: bool = False) -> bytes:
    x, y, z = (argument(shape, of(i16, s), n) for s, n in zip(scales, "xyz", strict=True))
    return one_op("tfl.add", [x, y], [z], {"fused_activation_function": "NONE", "pot_scale_int16": powers})


@pytest.mark.parametrize("size", [4096, 4099])
@pytest.mark.parametrize("ratio", [0.43, 4.8e-6])
def test_operands_of_additions_are_rounded_by_their_place(size: int, ratio: float) -> None:
    """Sums in steps that are smaller than the last place of the scaled operands."""
    model, rng = addition((1, size), (1.0, ratio, 0.00007)), np.random.default_rng(0)
    inputs = [rng.integers(-2, 3, (1, size)), np.clip(rng.normal(0, 3 / ratio, (1, size)), -32768, 32767)]
    inputs = [v.astype(np.int16) for v in inputs]
    assert_equals_interpreter(model, inputs)
    reference, optimized = (interpret(model, [inputs], resolver)[0][0] for resolver in ("BUILTIN_REF", "AUTO"))
    unequal = (reference != optimized)[0]
    assert unequal[:4096].any()
    assert not unequal[4096:].any()
    (row,) = tflq.convert(model).report.rows
    assert row.differs_under == NAMES[4:]


def test_few_elements_are_added_as_by_the_reference_kernel() -> None:
    model = addition((3, 5), (0.5, 0.25, 0.3))
    for name in ("reference-2.3", "xnnpack-2.3"):
        (row,) = tflq.convert(model, kernel_set=name).report.rows
        assert not row.warning
        assert not row.differs_under


def test_kernels_of_unknown_arithmetic_are_announced() -> None:
    model = addition((None, 5), (0.5, 0.25, 0.5))
    queries = Queries(XNNPACK)
    queries.begin(read(model).main.ops[0])
    assert queries.unknown() == "ADD of i16 without a known size"
    for scales, unknown in (((0.5, 0.25, 0.5), False), ((0.5, 0.3, 0.5), True)):  # shifted; scaled all the same
        queries.begin(read(addition((None, 5), scales, powers=True)).main.ops[0])
        assert bool(queries.unknown()) == unknown
    (row,) = tflq.convert(model, kernel_set="xnnpack-2.3").report.rows
    assert "ADD of i16 without a known size under xnnpack-2.3" in row.warning
    assert row.differs_under == NAMES[4:]
    (row,) = tflq.convert(model).report.rows
    assert not row.warning
    assert row.differs_under == NAMES[4:]


@pytest.mark.parametrize(("storage", "computed_again"), [(i8, False), (ui8, True)])
def test_a_set_is_asked_again_only_if_a_method_differs_that_was_called(
    storage: ScalarType, computed_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONV_2D of uint8 asks for the scale of products, which reference-2.4-dev has in double; that of int8 does not."""
    x, y, weights = of(storage, 0.1), of(storage, 0.3), np.asarray([0.7], np.float32)
    queries = Queries(REFERENCE)
    queries.begin(read(convolution(storage)).main.ops[0])
    queries.convolution(x, weights, y)
    asked: list[str] = []
    plain = KernelSet.convolution

    def convolution_of(self: KernelSet, *arguments: Any) -> Any:
        asked.append(self.name)
        return plain(self, *arguments)

    monkeypatch.setattr(KernelSet, "convolution", convolution_of)
    assert ("reference-2.4-dev" in queries.differing()) == computed_again
    assert asked == ["reference-2.4-dev"] * computed_again


def test_undelegated_products_of_bytes_are_announced() -> None:
    x, w, y = (
        argument((2, 4), of(i8, 0.5), "x"),
        argument((3, 4), of(i8, 0.25), "w"),
        argument((2, 3), of(i8, 0.75), "y"),
    )
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    model = one_op("tfl.fully_connected", [x, w, None], [y], options, 4)
    queries = Queries(XNNPACK)
    queries.begin(read(model).main.ops[0])
    assert queries.unknown() == "FULLY_CONNECTED of i8"
    queries.begin(read(convolution(i8)).main.ops[0])
    assert not queries.unknown()
    queries.begin(read(transposed(2, 3, 6, storage=ui8)).main.ops[0])
    assert queries.unknown() == "TRANSPOSE_CONV of ui8"


@pytest.mark.parametrize(("axes", "taken"), [([1], True), ([], False)])
def test_the_delegate_leaves_a_mean_without_axes(axes: list[int], taken: bool) -> None:
    x = argument((3, 256), of(i8, 0.125, 4), "x")
    y = argument((3, 1) if axes else (3, 256), of(i8, 1.0, 5), "y")
    model = one_op("tfl.mean", [x, const(np.asarray(axes, np.int32), i32)], [y], {"keep_dims": True}, 2)
    assert is_delegated(read(model).main.ops[0]) == taken
    assert_equals_interpreter(model, [np.arange(-384, 384).astype(np.int8).reshape(3, 256)])


def test_optimized_kernels_that_round_twice_half_up_are_announced() -> None:
    rng = np.random.default_rng(0)
    for channels, name in ((7, ""), (8, "DEPTHWISE_CONV_2D of i8 with 8 channels or more")):
        x = argument((1, 4, 4, channels), of(i8, 0.5), "x")
        w, y = argument((1, 2, 2, channels), of(i8, 0.5), "w"), argument((1, 3, 3, channels), of(i8, 0.5), "y")
        bias = const(rng.integers(-9, 9, channels), of(i32, 0.25), "b")
        options = {"padding": "VALID", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1, "dilation_h_factor": 1}
        options |= {"dilation_w_factor": 1, "fused_activation_function": "NONE"}
        queries = Queries(XNNPACK)
        queries.begin(read(one_op("tfl.depthwise_conv_2d", [x, w, bias], [y], options)).main.ops[0])
        assert queries.unknown() == name


def document(converted: bytes) -> Any:
    (metadata,) = (m for m in read(converted).metadata or () if m.name == IN_FILE)
    return json.loads(metadata.buffer.data.tobytes())


def test_a_file_names_the_kernel_sets_that_it_is_exact_for() -> None:
    model = convolution(i8)
    of_default = {"name": "reference-2.3", "exact_for": list(NAMES[:4]), "differing": dict.fromkeys(NAMES[4:], 1)}
    conversion = tflq.convert(model)
    assert document(conversion.data) == of_default == conversion.report.to_json()["kernel_set"]
    converted = bytes(tflq.convert(model, kernel_set="xnnpack").data)
    of_xnnpack = {"name": "xnnpack-2.3", "exact_for": list(NAMES[4:]), "differing": dict.fromkeys(NAMES[:4], 1)}
    assert document(converted) == of_xnnpack
    assert document(tflq.convert(converted).data) == of_xnnpack  # nothing is left to lower
    assert tflq.verify(model, converted).resolver == "default"
    assert tflq.verify(model, converted)
    assert not tflq.verify(model, converted, resolver="reference").interface


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(tflq.OptionError, match=r"xnnpack-9.*known are"):
        tflq.convert(convolution(i8), kernel_set="xnnpack-9")


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize(
    ("size", "out", "corners"),
    [((5, 7), (9, 13), True), ((4, 4), (8, 8), False), ((3, 4), (7, 11), False), ((16, 8), (4, 24), True)],
)
def test_images_are_resized_by_the_weights_of_the_delegate(
    storage: ScalarType, size: tuple[int, int], out: tuple[int, int], corners: bool
) -> None:
    """Weights of sixteenths and halves are RESIZE's; others are interpolated on the rows that are read."""
    x, y = (argument((1, *plane, 3), of(storage, 0.5, 3), n) for plane, n in ((size, "x"), (out, "y")))
    options = {"align_corners": corners, "half_pixel_centers": not corners}
    model = one_op("tfl.resize_bilinear", [x, const(np.asarray(out), i32)], [y], options, 3)
    rng = np.random.default_rng(0)
    image = rng.integers(storage.minimum, storage.maximum + 1, (1, *size, 3)).astype(storage.dtype)
    assert_equals_interpreter(model, [image])
    form = legalize(read(model), Policy(fallback=False, kernel_set=XNNPACK))[0]
    assert any(isinstance(op, Resize) for op in form.main.ops) == (out in ((9, 13), (8, 8)))


@pytest.mark.parametrize("form", [{}, {"mac": "float32"}, {"target": "portable"}])
@pytest.mark.parametrize(("storage", "zero"), [(i8, -5), (ui8, 200)])
def test_floats_are_quantized_half_to_even_and_saturate(storage: ScalarType, zero: int, form: dict[str, Any]) -> None:
    """Also beyond int32, where the reference kernel wraps."""
    counts = np.concatenate([np.arange(-600, 600) / 2, [1e7, -1e7, 4e12, -4e12, 1e30, -1e30, np.inf, -np.inf]])
    numbers = (counts * 0.25).astype(np.float32)[None]
    x, y = argument(numbers.shape, f32, "x"), argument(numbers.shape, of(storage, 0.25, zero), "y")
    model = one_op("tfl.quantize", [x], [y], {})
    converted = tflq.convert(model, kernel_set="xnnpack-2.3", **form).data
    (want,) = interpret(model, [[numbers]], "AUTO")[0]
    for resolver in ("BUILTIN_REF", "AUTO"):
        np.testing.assert_array_equal(interpret(converted, [[numbers]], resolver)[0][0], want)
