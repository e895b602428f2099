"""A few models drawn by structure, converted to every form: each conversion ends, if at all, with a `TflqError`."""

from __future__ import annotations

import pytest
from support.model_tree import tree

import tflq
from scripts import fuzz
from scripts.fuzz_forms import FORMS, convert_all
from scripts.fuzz_models import MOST_DEPTH, drawn, nest
from tflq.formats.flatbuffer.codec import encode

COUNT = 24


@pytest.mark.slow
def test_drawn_models_are_converted_or_refused() -> None:
    outcome = fuzz.run([], 5, range(COUNT), forms=True)
    assert outcome.failures == []
    ends = {form: sum(n for end, n in outcome.counts.items() if end.split()[0] == form) for form in FORMS}
    assert min(ends.values()) == max(ends.values()) > COUNT // 3
    assert outcome.counts["integer converted"] > COUNT // 6


@pytest.mark.slow
def test_a_drawn_model_is_the_same_every_time() -> None:
    first, again = ([drawn(3, number) for number in range(40)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["IF", "WHILE", "STABLEHLO_COMPOSITE"])
def test_nested_calls_are_converted_or_refused(kind: str) -> None:
    model = tree("pad")
    for depth in range(MOST_DEPTH):
        nest(model, kind)
        if depth in (3, 40, 199, MOST_DEPTH - 1):
            ends, findings = convert_all(encode(model))
            assert findings == []
            assert ends["integer converted"] == (1 if depth == 3 else ends["read converted"])


def test_calls_that_repeat_many_operators_are_refused() -> None:
    model = tree("pad")
    for _ in range(12):
        nest(model, "IF")
    with pytest.raises(tflq.UnsupportedError, match="operators in its place"):
        tflq.convert(encode(model), format="onnx")


def text(op: str, operands: dict[str, str], result: str, attributes: str = "", constants: str = "") -> bytes:
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in operands.items() if not name.startswith("c"))
    names, types = ", ".join(f"%{name}" for name in operands), ", ".join(operands.values())
    line = f'%0 = "{op}"({names}) {{{attributes}}} : ({types}) -> {result}'
    return f"func.func @main({arguments}) -> {result} {{\n{constants}\n{line}\nreturn %0 : {result}\n}}\n".encode()


def constant(name: str, value: str, kind: str) -> str:
    return f'%{name} = "tfl.pseudo_const"() {{value = dense<{value}> : {kind}}} : () -> {kind}'


AXES = "tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>"
PAIR = "tensor<2xi32>"
PAIRS = "tensor<1x2x!quant.uniform<i32:f32, 0.5>>"
INT8 = "tensor<3x!quant.uniform<i8:f32, 0.5>>"
INT16 = "tensor<3x!quant.uniform<i16:f32, 0.5>>"
NARROW = "tensor<3x!quant.uniform<i8<-127:127>:f32, 0.5>>"
IMAGE = INT8.replace("3x", f"1x{1 << 28}x2x1x")
FLOATS, Q5 = "tensor<2x3xf32>", "tensor<2x3x!quant.uniform<i5:f32, 0.5>>"
BLOCKS = "tensor<2x2x!quant.uniform<i8:f32:{0:1, 1:2}, {{0.5}, {0.25}}>>"
REFUSED = {
    "float axis": (
        text(
            "tfl.sum", {"a": FLOATS, "c": "tensor<1xf32>"}, "tensor<2xf32>", "", constant("c", "1.0", "tensor<1xf32>")
        ),
        "not a signed integer",
    ),
    "float paddings": (
        text("tfl.pad", {"a": FLOATS, "c": "tensor<2x2xf32>"}, FLOATS, "", constant("c", "0.0", "tensor<2x2xf32>")),
        "not a signed integer",
    ),
    "packed indices": (
        text("tfl.tile", {"a": FLOATS, "b": "tensor<2x!quant.uniform<u4:f32, 0.5>>"}, FLOATS),
        "not a signed integer of whole bytes",
    ),
    "unsigned indices": (
        text("tfl.mirror_pad", {"a": FLOATS, "b": "tensor<2x2xui8>"}, "tensor<2x3xf32>"),
        "'paddings' is ui8, not a signed integer of whole bytes",
    ),
    "condition": (text("tfl.select", {"a": FLOATS, "b": FLOATS, "d": FLOATS}, FLOATS), "'condition' is f32, not i1"),
    "comparison": (text("tfl.greater", {"a": FLOATS, "b": FLOATS}, "tensor<2x3xi8>"), "'output' is i8, not i1"),
    "storage": (text("tfl.add", {"a": Q5, "b": Q5}, Q5), "has no tensors of i5"),
    "integers": (text("tfl.abs", {"a": "tensor<3xi10>"}, "tensor<3xi10>"), "has no tensors of i10"),
    "shape of handles": (
        text("tfl.shape", {"a": FLOATS}, "tensor<2x!tfl.resource>"),
        "is !tfl.resource, not i32 or i64",
    ),
    "handle": (
        text("tfl.read_variable", {"a": INT8}, INT8),
        "'resource' is .*, not i32 or !tfl.resource",
    ),
    "version": (text("tfl.abs", {"a": INT8}, INT8, "tflq.info = {version = unit}"), "'version' must be a int"),
    "option of several values": (
        text(
            "tfl.unidirectional_sequence_rnn",
            dict.fromkeys("abdef", INT8),
            INT8,
            "tflq.info = {debug_metadata_index = 1}, time_major = []",
        ),
        r"time_major is \[\]",
    ),
    "statistics of an axis": (
        text(
            "tfl.sum",
            {"a": FLOATS, "c": "tensor<1x!quant.calibrated<f32<-1.0:1.0>>>"},
            "tensor<2xf32>",
            "",
            '%c = "tfl.pseudo_const"() {value = dense<1.0> : tensor<1xf32>} : () -> '
            "tensor<1x!quant.calibrated<f32<-1.0:1.0>>>",
        ),
        "not a signed integer",
    ),
    "option without a value": (
        text("tfl.gather", {"a": FLOATS, "b": "tensor<2xi32>"}, "tensor<2x3xf32>", "axis = 0, batch_dims = unit"),
        "batch_dims has no value",
    ),
    "bytes": (
        text("tfl.neg", {"c": FLOATS}, FLOATS, "", constant("c", "_", FLOATS).replace("dense<_>", "dense_resource<r>"))
        + b'{-# dialect_resources: { builtin: { r: "0x0400000001020304" } } #-}',
        "4 bytes, where 2x3xf32 has 24",
    ),
    "beginning of two windows": (
        text(
            "tfl.reduce_window",
            {"a": INT8, "b": INT8.replace("3x", "2x"), **dict.fromkeys(("c0", "c1", "c2"), "tensor<1xi64>")},
            INT8,
            'reduce_function = "ADD"',
            "\n".join(constant(f"c{i}", "1", "tensor<1xi64>") for i in range(3)),
        ),
        "has 2 elements, not one",
    ),
    "nothing between elements": (
        text(
            "tfl.dilate",
            {"a": INT8, "c0": "tensor<1xi32>", "c1": "tensor<0xi8>"},
            INT8.replace("3x", "5x"),
            "",
            "\n".join((constant("c0", "2", "tensor<1xi32>"), constant("c1", "1", "tensor<0xi8>"))),
        ),
        "has 0 elements, not one",
    ),
    "table of numbers": (
        text("tfl.hashtable", {}, INT8, 'table_id = 3, key_dtype = "INT64", value_dtype = "STRING"'),
        "'table' is .*, not i32 or !tfl.resource",
    ),
    "axis of a type that only text has": (
        text("tfl.sum", {"a": NARROW, "c": "tensor<1xi32>"}, NARROW, "", constant("c", "2", "tensor<1xi32>")),
        "2 is not an axis of rank 1",
    ),
    "function of a type that only text has": (
        text("tfl.stablehlo_sort", {"a": NARROW}, NARROW, "comparator_subgraph_index = 7"),
        "comparator_subgraph_index 7 is not one of the 1 subgraphs",
    ),
    "truth of numbers": (
        text(
            "tfl.reduce_any", {"a": INT8, "c": "tensor<1xi32>"}, "tensor<i1>", "", constant("c", "0", "tensor<1xi32>")
        ),
        "is i8, not one of i1",
    ),
    "name that is a number": (
        text("tfl.stablehlo_composite", {"a": NARROW}, NARROW, "name = 5, decomposition_subgraph_index = 1")
        + text("tfl.abs", {"a": NARROW}, NARROW).replace(b"@main", b"@other"),
        "cannot be written",
    ),
    "axis without a value": (
        text("tfl.concatenation", {"a": NARROW, "b": NARROW}, NARROW.replace("3x", "6x"), "axis"),
        "axis has no value",
    ),
    "truth as a number": (
        text(
            "tfl.average_pool_2d",
            {"a": INT8.replace("3x", "1x3x3x4x")},
            INT8.replace("3x", "1x3x3x4x"),
            'padding = "SAME", stride_w = true, stride_h = 1, filter_width = 2, filter_height = 2',
        ),
        "stride_w is true, and Pool2DOptions has an integer there",
    ),
    "number as a truth": (
        text("tfl.gelu", {"a": NARROW}, NARROW, "approximate = 1"),
        "approximate is 1, and GeluOptions has true or false there",
    ),
    "float as an integer": (
        text("tfl.concatenation", {"a": INT8, "b": INT8}, INT8.replace("3x", "6x"), "axis = 0.0"),
        "axis is 0.0, and ConcatenationOptions has an integer there",
    ),
    "truths as numbers": (
        text("tfl.squeeze", {"a": INT8.replace("3x", "1x3x")}, INT8, "squeeze_dims = [true]"),
        "a list, each an integer",
    ),
    "numbers of two dims": (
        text("tfl.squeeze", {"a": INT8.replace("3x", "1x3x")}, INT8, "squeeze_dims = dense<0> : tensor<1x1xi32>"),
        "a list, each an integer",
    ),
    "number as a word": (
        text("tfl.add", dict.fromkeys("ab", INT8), INT8, "fused_activation_function = 1"),
        "one of NONE, RELU",
    ),
    "float beyond 32 bits": (
        text("tfl.leaky_relu", {"a": INT8}, INT8, "alpha = 1.0e60"),
        "a float of 32 bits",
    ),
    "options of another schema": (
        text("tfl.abs", {"a": INT8}, INT8, 'tflq.info = {options = "Unknown"}'),
        "cannot be written: 'Unknown'",
    ),
    "option": (text("tfl.arg_max", {"a": FLOATS, "b": "tensor<i32>"}, "tensor<3xi32>", "output_type = 5"), "5"),
}
"""Texts that no file can hold, and a part of the sentence that says why."""

HANDLED = {
    "blockwise input": text("tfl.abs", {"a": BLOCKS}, BLOCKS),
    "strings": text("tfl.reshape", {"a": "tensor<3x!tfl.string>", "b": "tensor<1xi32>"}, "tensor<3x!tfl.string>"),
    "bfloat16": text("tfl.div", {"a": "tensor<3xbf16>", "b": "tensor<3xbf16>"}, "tensor<3xbf16>"),
    "int64": text(
        "tfl.abs", {"a": "tensor<3x!quant.uniform<i64:f32, 0.25>>"}, "tensor<3x!quant.uniform<i64:f32, 0.5>>"
    ),
    "uint64": text(
        "tfl.abs", {"a": "tensor<3x!quant.uniform<u64:f32, 0.25>>"}, "tensor<3x!quant.uniform<u64:f32, 0.5>>"
    ),
    "minimum without a scale": text("tfl.minimum", dict.fromkeys("ab", INT16), "tensor<3xi16>"),
    "bfloat16 zeros": text("tfl.zeros_like", {"a": "tensor<3xbf16>"}, "tensor<3xbf16>"),
    "diagonal of another type": text(
        "tfl.matrix_set_diag",
        {"a": "tensor<3x3x!quant.uniform<i16:f32, 0.5>>", "b": "tensor<3xi1>"},
        "tensor<3x3x!quant.uniform<i16:f32, 0.5>>",
    ),
    "composite of fewer operands": text(
        "tfl.stablehlo_composite",
        {"c": "none"},
        INT8,
        'name = "c", decomposition_subgraph_index = 1',
        '%c = "tfl.no_value"() {value} : () -> none',
    )
    + text("tfl.abs", {"a": INT8}, INT8).replace(b"@main", b"@other"),
    "comparison of integers": text(
        "tfl.stablehlo_compare",
        {"a": INT8, "b": INT8},
        "tensor<3xi16>",
        'comparison_direction = "STABLEHLO_COMPARISON_DIRECTION_GT"',
    ),
    "index before the first": text(
        "tfl.strided_slice",
        {"a": INT8.replace("3x", "2x1x6x"), "c0": PAIR, "c1": PAIR, "c2": PAIR},
        INT8.replace("3x", "0x1x6x"),
        "begin_mask = 0, end_mask = 0, ellipsis_mask = 2, new_axis_mask = 0, shrink_axis_mask = 255, offset = false",
        "\n".join(constant(f"c{i}", value, PAIR) for i, value in enumerate(("-3", "-3", "1"))),
    ),
    "broadcast of too many dims": text(
        "tfl.stablehlo_broadcast_in_dim",
        {"a": INT8},
        INT8.replace("3x", "2x3x"),
        "broadcast_dimensions = #tflq.tuple<[0, 1]>",
    ),
    "starts that are no integers": text(
        "tfl.stablehlo_dynamic_slice",
        {"a": INT8, "b": "tensor<complex<f32>>"},
        INT8,
        "slice_sizes = #tflq.tuple<[3]>",
    ),
    "strides of no rank": text(
        "tfl.strided_slice",
        {"a": AXES, "c0": "tensor<1xi32>", "c1": "tensor<1xi32>", "c2": "tensor<i32>"},
        AXES,
        "begin_mask = 1, end_mask = 1, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0, offset = false",
        "\n".join(constant(f"c{i}", "1", "tensor<i32>" if i == 2 else "tensor<1xi32>") for i in range(3)),
    ),
    "more ends than beginnings": text(
        "tfl.strided_slice",
        {"a": INT8, "c0": "tensor<1xi32>", "c1": PAIR, "c2": "tensor<1xi32>"},
        INT8,
        "begin_mask = 1, end_mask = 1, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0, offset = false",
        "\n".join(constant(f"c{i}", "1", PAIR if i == 1 else "tensor<1xi32>") for i in range(3)),
    ),
    "activation of many steps": text(
        "tfl.add",
        {"a": INT8, "b": INT8},
        INT8.replace("0.5", "1.0e-12"),
        'fused_activation_function = "RELU6"',
    ),
    "bytes of wider integers": text(
        "tfl.dilate",
        {"a": "tensor<2xui64>", "c": "tensor<1xi32>", "b": "tensor<!quant.uniform<u8:f32, 0.5>>"},
        "tensor<2x!quant.uniform<u8:f32, 0.5>>",
        "",
        constant("c", "1", "tensor<1xi32>"),
    ),
    "handle as a result": text("tfl.var_handle", {}, "tensor<!tfl.resource>", 'container = "", shared_name = "x"'),
    "buckets without boundaries": text("tfl.bucketize", {"a": INT8}, "tensor<3xi32>", "boundaries"),
    "case of no branches": text("tfl.stablehlo_case", {"a": "tensor<i32>", "b": INT8}, INT8, "branch_subgraph_indices"),
    "windows without a size": text(
        "tfl.stablehlo_reduce_window",
        {"a": INT8, "b": INT8.replace("3x", "")},
        INT8,
        "window_dimensions = #tflq.tuple<[]>, body_subgraph_index = 1",
    )
    + text("tfl.stablehlo_add", dict.fromkeys("ab", INT8.replace("3x", "")), INT8.replace("3x", "")).replace(
        b"@main", b"@add"
    ),
    "one window of a large stride": text(
        "tfl.reduce_window",
        {"a": INT8, "b": INT8.replace("3x", ""), **dict.fromkeys(("c0", "c1", "c2"), "tensor<1xi64>")},
        INT8.replace("3x", "1x"),
        'reduce_function = "ADD"',
        "\n".join(constant(f"c{i}", str(value), "tensor<1xi64>") for i, value in enumerate((2, 1 << 40, 1))),
    ),
    "more rows than a strip can name": text(
        "tfl.conv_2d",
        {"a": IMAGE, "c": INT8.replace("3x", "1x1x1x1x")},
        IMAGE,
        'padding = "SAME", stride_w = 1, stride_h = 1, fused_activation_function = "NONE"',
        '%c = "tfl.pseudo_const"() {value = dense<1> : tensor<1x1x1x1xi8>} : () -> ' + INT8.replace("3x", "1x1x1x1x"),
    ),
    "squeezed without an option": text(
        "tfl.squeeze", {"c": "tensor<0xi8>"}, "tensor<0xi8>", "squeeze_dims", constant("c", "0", "tensor<0xi8>")
    ),
    "broadcast of an open dim": text(
        "tfl.broadcast_to",
        {"a": "tensor<?xf64>", "c": PAIR},
        "tensor<?xf64>",
        "",
        constant("c", "[0, 1]", PAIR),
    ),
    "cumulative sum in int32": text(
        "tfl.cumsum",
        {"a": INT8, "c": "tensor<i32>"},
        INT8.replace("i8", "i32"),
        "exclusive = false, reverse = false",
        constant("c", "0", "tensor<i32>"),
    ),
    "cumulative sum of int32": text(
        "tfl.cumsum",
        {"a": INT8.replace("i8", "i32"), "c": "tensor<i32>"},
        INT8,
        "exclusive = false, reverse = false",
        constant("c", "0", "tensor<i32>"),
    ),
    "quotient of truths": text(
        "tfl.div",
        dict.fromkeys(("c0", "c1"), "tensor<3xi1>"),
        "tensor<3xi1>",
        'fused_activation_function = "NONE"',
        "\n".join(constant(f"c{i}", "true", "tensor<3xi1>") for i in range(2)),
    ),
    "quantized indices": text(
        "tfl.mirror_pad",
        {"a": "tensor<0x!quant.uniform<i8:f32, 0.5>>", "c": PAIRS},
        "tensor<*x!quant.uniform<i8:f32, 0.25>>",
        "",
        f'%c = "tfl.pseudo_const"() {{value = dense<1> : tensor<1x2xi32>}} : () -> {PAIRS}',
    ),
    "stated shape of other elements": text(
        "tfl.expand_dims",
        {"c": INT8, "a": "tensor<i32>"},
        INT8.replace("3x", "2x2x"),
        "",
        f'%c = "tfl.pseudo_const"() {{value = dense<1> : tensor<3xi8>}} : () -> {INT8}',
    ),
    "filter wider than the input": text(
        "tfl.conv_2d",
        {"a": INT8.replace("3x", "2x7x1x2x"), "c": INT8.replace("3x", "3x1x4x2x")},
        INT8.replace("3x", "2x7x0x3x"),
        'padding = "VALID", stride_w = 2, stride_h = 1, fused_activation_function = "NONE"',
        f'%c = "tfl.pseudo_const"() {{value = dense<1> : tensor<3x1x4x2xi8>}} : () -> {INT8.replace("3x", "3x1x4x2x")}',
    ),
    "number before rows of the other sign": text(
        "tfl.fully_connected",
        {"a": INT8.replace("3x", ""), "c": "tensor<3x2x!quant.uniform<u8:f32, 0.5:255>>"},
        INT8.replace("3x", "0x3x"),
        'fused_activation_function = "NONE"',
        '%c = "tfl.pseudo_const"() {value = dense<1> : tensor<3x2xui8>} : () -> '
        "tensor<3x2x!quant.uniform<u8:f32, 0.5:255>>",
    ),
    "batches without indices": text(
        "tfl.gather",
        {"a": INT8.replace("3x", "?x3x"), "c": "tensor<0xi32>"},
        INT8.replace("3x", "0x"),
        "axis = 1, batch_dims = 1",
        constant("c", "0", "tensor<0xi32>"),
    ),
    "pool wider than the input": text(
        "tfl.l2_pool_2d",
        {"a": INT8.replace("3x", "1x4x1x3x")},
        INT8.replace("3x", "1x2x0x3x"),
        'padding = "VALID", stride_w = 2, stride_h = 1, filter_width = 3, filter_height = 3, '
        'fused_activation_function = "NONE"',
    ),
    "handle as a number": text("tfl.var_handle", {}, "tensor<1xi32>", "container"),
    "truth of a truth": text(
        "tfl.reduce_any",
        {"a": "tensor<i1>", "c": "tensor<i32>"},
        "tensor<i1>",
        "keep_dims = false",
        constant("c", "0", "tensor<i32>"),
    ),
    "uint16 under other parameters": text(
        "tfl.gather",
        {"a": "tensor<3x!quant.uniform<u16:f32, 0.5>>", "c": PAIR},
        "tensor<2x!quant.uniform<u16:f32, 0.25>>",
        "axis = 0, batch_dims = 0",
        constant("c", "0", PAIR),
    ),
    "one number gathered": text(
        "tfl.stablehlo_gather",
        {"a": INT8, "c": "tensor<1xi32>"},
        INT8.replace("3x", ""),
        "offset_dims = #tflq.tuple<[]>, collapsed_slice_dims = #tflq.tuple<[0]>, start_index_map = #tflq.tuple<[0]>, "
        "index_vector_dim = 0, slice_sizes = #tflq.tuple<[1]>",
        constant("c", "1", "tensor<1xi32>"),
    ),
    "mean of a number": text(
        "tfl.mean",
        {"a": INT8.replace("3x", ""), "c": "tensor<i32>"},
        INT8.replace("3x", ""),
        "keep_dims = false",
        constant("c", "0", "tensor<i32>"),
    ),
    **{
        f"axis of a number in {op}": text(
            f"tfl.{op}",
            {"a": INT8.replace("3x", ""), "c": "tensor<1x!quant.uniform<i32:f32, 0.5>>"},
            result,
            attributes,
            '%c = "tfl.pseudo_const"() {value = dense<0> : tensor<1xi32>} : () -> '
            "tensor<1x!quant.uniform<i32:f32, 0.5>>",
        )
        for op, result, attributes in (
            ("arg_min", "tensor<*xi64>", 'output_type = "INT64"'),
            ("reverse_v2", INT8.replace("3x", ""), ""),
        )
    },
    "choice between elements without an integer form": text(
        "tfl.one_hot",
        {
            "a": PAIR,
            "c": "tensor<!quant.uniform<i32:f32, 0.5>>",
            "b": "tensor<complex<f32>>",
            "d": "tensor<complex<f32>>",
        },
        "tensor<2x3xcomplex<f32>>",
        "axis = -1",
        '%c = "tfl.pseudo_const"() {value = dense<3> : tensor<i32>} : () -> tensor<!quant.uniform<i32:f32, 0.5>>',
    ),
    "uint32": text(
        "tfl.add_n", {"a": "tensor<3x!quant.uniform<u32:f32, 0.5>>"}, "tensor<3x!quant.uniform<u32:f32, 2.0>>"
    ),
}
"""Texts that some form has and others refuse."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_file_holds_is_refused(name: str) -> None:
    data, sentence = REFUSED[name]
    with pytest.raises(tflq.InvalidModelError, match=sentence):
        tflq.read(data)
    assert convert_all(data)[1] == []


@pytest.mark.parametrize("name", HANDLED)
def test_unusual_types_are_converted_or_refused(name: str) -> None:
    ends, findings = convert_all(HANDLED[name])
    assert findings == []
    assert ends["read converted"] == 1


def test_a_function_that_does_not_fit_one_of_its_calls_is_refused() -> None:
    calls, pool = 'name = "c", decomposition_subgraph_index = 1', 'padding = "SAME", stride_w = 1, stride_h = 1'
    image, plane = INT8.replace("3x", "1x4x1x3x"), INT8.replace("3x", "4x1x3x")
    data = text("tfl.stablehlo_composite", {"a": image}, image, calls)
    again = f'%1 = "tfl.stablehlo_composite"(%b) {{{calls}}} : ({plane}) -> {image}\nreturn %0'
    data = data.replace(b"(%a: " + image.encode(), f"(%a: {image}, %b: {plane}".encode()).replace(
        b"return %0", again.encode()
    )
    data += text("tfl.max_pool_2d", {"a": image}, image, f"{pool}, filter_width = 2, filter_height = 2").replace(
        b"@main", b"@other"
    )
    ends, findings = convert_all(data)
    assert findings == []
    assert ends["read converted"] == ends["onnx refused"] == 1


def test_dims_of_fill_are_a_vector() -> None:
    operands = {"c": "tensor<1x1xi32>", "a": "tensor<i32>"}
    data = text("tfl.fill", operands, "tensor<3xi32>", "", constant("c", "3", "tensor<1x1xi32>"))
    with pytest.raises(tflq.TflqError, match=r"is \[1, 1\], not of rank 1"):
        tflq.convert(data)
