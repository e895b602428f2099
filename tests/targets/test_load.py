"""Target files: what they say, and their faults by line and key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const

import tflq
from tflq.base.errors import FileError, OptionError, TflqError
from tflq.base.files import resource
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ElementType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    ui8,
)
from tflq.targets.constraints import CONSTRAINTS, constraint
from tflq.targets.load import load_kernels, load_target
from tflq.targets.target import INTEGER, Target


def load(text: str, folder: Path) -> Target:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_target(path)


def op(name: str, operands: list[ElementType | None], results: list[ElementType]) -> Op:
    read = [None if e is None else argument((1, 3), e, f"x{i}") for i, e in enumerate(operands)]
    return Op("tfl." + name, read, [argument((1, 3), e, f"y{i}") for i, e in enumerate(results)])


Q8, Q8_OTHER = UniformQuantizedType.of(i8, 0.5, 3), UniformQuantizedType.of(i8, 0.25, 3)
SYMMETRIC, NARROW = UniformQuantizedType.of(i8, 0.5), UniformQuantizedType.of(i8, 0.5, storage_min=-127)
AXIS = UniformQuantizedPerAxisType.of(i8, 1, [0.5, 0.25, 0.5])
AXIS4 = UniformQuantizedPerAxisType.of(i8, 0, [0.5] * 4)
BLOCKS = UniformQuantizedSubChannelType.of(i8, (1,), (1,), [[0.5, 0.25, 0.5]])
ODD, Q8_ONE = UniformQuantizedType.of(i8, 0.3), UniformQuantizedType.of(i8, 1.0)
QU8, Q16 = UniformQuantizedType.of(ui8, 0.5, 131), UniformQuantizedType.of(i16, 0.5)


def test_names() -> None:
    assert load_target() is INTEGER is load_target("integer")
    assert load_target("kernels").name == "kernels"
    with pytest.raises(OptionError, match=r"'tosa' is for TOSA files"):
        load_target("tosa")
    with pytest.raises(
        OptionError,
        match=r"'kernel' is not known; did you mean 'kernels'\? known: integer, kernels, portable, tflm, int8, "
        "int16x8, uint8, and target files",
    ):
        load_target("kernel")
    with pytest.raises(FileError, match="No such file"):
        load_target("missing.toml")


FAULTS = """[target]
base = "kernel"
[kernels]
conv2d = "qi8 qi8:0 qi32? -> qi8"
abs = ["qi9 -> qi8", "qi8 -> qi8"]
[rescale]
signde = ["add"]
"""


def test_all_faults_of_a_file_are_listed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"mine\.toml has 4 faults:") as caught:
        load(FAULTS, tmp_path)
    reasons = caught.value.reasons
    assert [reason.place for reason in reasons] == ["2", "4", "5", "7"]
    assert [reason.remedy.partition("?")[0] for reason in reasons if reason.remedy] == [
        *("did you mean 'kernels'", "did you mean 'conv_2d'", "did you mean 'signed'")
    ]


@pytest.mark.parametrize(
    ("name", "line", "operands", "results", "kept"),
    [
        ("abs", "qi8 -> qi8", [Q8], [Q8_OTHER], True),
        ("abs", "qi8 -> qi8", [QU8], [QU8], False),
        ("abs", "qi8 -> qi8", [AXIS], [Q8], False),
        ("abs", "qi8/axis -> qi8", [AXIS], [Q8], True),
        ("abs", "qi8/axis1 -> qi8", [AXIS], [Q8], True),
        ("abs", "qi8/axis0 -> qi8", [AXIS], [Q8], False),
        ("abs", "qi8/any -> qi8", [AXIS], [Q8], True),
        ("abs", "qi8/any -> qi8", [BLOCKS], [Q8], True),
        ("abs", "qi8/blocks -> qi8", [BLOCKS], [Q8], True),
        ("abs", "qi8/blocks -> qi8", [AXIS], [Q8], False),
        ("abs", "qi8:0 -> qi8", [Q8], [Q8], False),
        ("abs", "qi8:0 -> qi8", [SYMMETRIC], [Q8], True),
        ("abs", "qi8/axis:0 -> qi8", [AXIS], [Q8], True),
        ("abs", "qi8<-127:127> -> any", [NARROW], [Q8], True),
        ("abs", "qi8<-127:127> -> any", [Q8], [Q8], False),
        ("reshape", "q plain -> any", [Q8, i32], [i32], True),
        ("reshape", "q plain -> any", [Q8, Q8], [i32], False),
        ("abs", "qi8", [Q8], [Q16], True),
        ("conv_2d", "qi8 ...", [Q8, i32, i32], [Q8], True),
        ("conv_2d", "qi8 ...", [Q16, i32, i32], [Q8], False),
        ("conv_2d", "...", [Q16, i32], [i32], True),
        ("pack", "T* -> T; T = qi8 qi16", [Q8, Q8, Q8], [Q8], True),
        ("pack", "T* -> T; T = qi8 qi16", [Q8, Q8], [Q16], False),
        ("add", "T T -> T; T = qi8:0 qi8", [SYMMETRIC, Q8], [Q8], True),
        ("add", "T U -> U; T = qi8 qi16; U = qi8 qi16", [Q8, Q16], [Q16], True),
        ("add", "T U -> U; T = qi8 qi16; U = qi8 qi16", [Q8, Q16], [Q8], False),
        ("conv_2d", "qi8 qi8 qi32? -> qi8", [Q8, Q8], [Q8], True),
        ("conv_2d", "qi8 qi8 qi32? -> qi8", [Q8, Q8, None], [Q8], True),
        ("conv_2d", "qi8 qi8 -> qi8", [Q8, Q8, None], [Q8], True),
        ("conv_2d", "qi8 qi8 -> qi8", [Q8, Q8, i32], [Q8], False),
        ("abs", "qi8 -> qi8; same_scale", [Q8], [Q8], True),
        ("abs", "qi8 -> qi8; same_scale", [Q8], [Q8_OTHER], False),
        ("add", "qi8 qi8 -> qi8; same_operand_scale", [Q8, Q8], [Q8_OTHER], True),
        ("add", "qi8 qi8 -> qi8; same_operand_scale", [Q8, Q8_OTHER], [Q8], False),
        ("add", "qi8 qi8 -> qi8; operand_scale_below 1", [Q8, Q8_OTHER], [Q8_ONE], True),
        ("add", "qi8 qi8 -> qi8; operand_scale_below 1", [Q8, Q8_ONE], [Q8], False),
        ("abs", "qi8 -> qi8; fixed_scale 0.25 3", [Q8], [Q8_OTHER], True),
        ("abs", "qi8 -> qi8; fixed_scale 0.25 0", [Q8], [Q8_OTHER], False),
        ("abs", "qi8 -> qi8; fixed_scale 0.250003 3", [Q8], [Q8_OTHER], True),
        ("abs", "qi8 -> qi8; fixed_scale 0.25001 3", [Q8], [Q8_OTHER], False),
        ("mul", "qi8 qi8 -> qi8; multiplier_scale 1", [Q8, Q8], [Q8], True),
        ("mul", "qi8 qi8 -> qi8; multiplier_scale 1", [Q8, Q8], [Q8_OTHER], False),
        ("mul", "qi8/any qi8/any -> qi8; multiplier_scale 2", [AXIS, AXIS], [Q8], True),
        ("mul", "qi8/any qi8/any -> qi8; multiplier_scale", [AXIS, AXIS4], [Q8], False),
        ("concatenation", "qi8*2 -> qi8", [Q8, Q8], [Q8], True),
        ("concatenation", "qi8*2 -> qi8", [Q8, Q8, Q8], [Q8], False),
        ("concatenation", "T*2 -> T; T = qi8 qi16", [Q8, Q8], [Q8], True),
        ("sub", "qi8 qi8 -> qi8; scale_ratio_below 3", [Q8, Q8_OTHER], [Q8], True),
        ("sub", "qi8 qi8 -> qi8; scale_ratio_below 0.5", [Q8, Q8], [Q8], False),
        ("abs", "qi8 -> qi8; rank_at_most 4", [Q8], [Q8], True),
        ("abs", "qi8 -> qi8; rank_at_most 1", [Q8], [Q8], False),
        ("abs", "qi8 -> qi8; power_of_two_scale", [Q8], [Q8_OTHER], True),
        ("abs", "qi8 -> qi8; power_of_two_scale", [Q8], [ODD], False),
        ("abs", "qi8 -> qi8; lowered", [Q8], [Q8], False),
    ],
)
def test_signatures(
    name: str, line: str, operands: list[ElementType | None], results: list[ElementType], kept: bool, tmp_path: Path
) -> None:
    target = load(f'[kernels]\n{name} = "{line}"', tmp_path)
    assert target.judge(op(name, operands, results)).runs == kept
    assert not target.judge(op("neg", operands, results)).runs


@pytest.mark.parametrize(("indices", "kept"), [([1, 0], True), ([-1, 0], False)])
def test_indices_from_zero(indices: list[int], kept: bool, tmp_path: Path) -> None:
    target = load('[kernels]\ntranspose = "qi8 i32 -> qi8; indices_from_zero"', tmp_path)
    operands: list[Value | None] = [argument((2, 3), Q8, "x"), const(np.asarray(indices, np.int32), i32)]
    assert target.judge(Op("tfl.transpose", operands, [argument((3, 2), Q8, "y")], {})).runs == kept


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [({}, True), ({"fused_activation_function": "NONE"}, True), ({"fused_activation_function": "RELU"}, False)],
)
def test_no_activation(attributes: dict[str, str], kept: bool, tmp_path: Path) -> None:
    target = load('[kernels]\nconcatenation = "qi8* -> qi8; no_activation"', tmp_path)
    x = argument((2,), Q8, "x")
    assert target.judge(Op("tfl.concatenation", [x, x], [argument((4,), Q8, "y")], attributes)).runs == kept


def test_a_constant_is_within_a_range_if_what_it_holds_is(tmp_path: Path) -> None:
    target = load('[kernels]\nabs = "qi8<-127:127> -> qi8"', tmp_path)
    for low, kept in ((-128, False), (-127, True)):
        x = const(np.array([[low, 0, 127]]), Q8, "x")
        assert target.judge(Op("tfl.abs", [x], [argument((1, 3), Q8, "y")])).runs == kept


@pytest.mark.parametrize(
    ("weights", "bias", "reason"),
    [
        (SYMMETRIC, UniformQuantizedType.of(i32, 0.25), ""),
        (SYMMETRIC, UniformQuantizedType.of(i32, 0.5), "'x2' is not stored at the scale of input times weights"),
        (SYMMETRIC, UniformQuantizedType.of(i32, 0.25, 1), "'x2' has a zero point"),
        (AXIS, UniformQuantizedPerAxisType.of(i32, 0, [0.25, 0.125, 0.25]), ""),
        (AXIS, UniformQuantizedPerAxisType.of(i32, 0, [0.25, 0.125, 0.25], [0, 0, 1]), "'x2' has a zero point"),
        (AXIS, UniformQuantizedPerAxisType.of(i32, 0, [0.25] * 3), "'x2' is not stored"),
        (AXIS, UniformQuantizedPerAxisType.of(i32, 0, [0.25] * 4), "'x2' is not stored"),
        (i8, None, "are not quantized"),
        (UniformQuantizedType.of(i8, 2.0), None, "a multiplier of 2 for 'y0', which is not below 1"),
    ],
)
def test_multiply_accumulate(weights: ElementType, bias: ElementType | None, reason: str, tmp_path: Path) -> None:
    lines = 'conv_2d = "...; multiplier_accumulator_scale 1"\ntranspose_conv = "...; multiplier_accumulator_scale 1"'
    target = load(f"[kernels]\n{lines}", tmp_path)
    conv = op("conv_2d", [SYMMETRIC, weights, bias], [Q8])
    verdict = target.judge(conv)
    assert verdict.runs == (not reason)
    assert reason in verdict.reason
    x, w, b = conv.operands
    transposed = Op("tfl.transpose_conv", [argument((4,), i32, "shape"), w, x, b], conv.results)
    other = target.judge(transposed)
    assert (other.runs, other.reason, other.listed) == (verdict.runs, verdict.reason, verdict.listed)


def test_the_first_signature_that_fits_decides(tmp_path: Path) -> None:
    target = load('[kernels]\nabs = ["qi8 -> qi8; same_scale", "qi8/any -> qi8"]', tmp_path)
    verdict = target.judge(op("abs", [Q8], [Q8_OTHER]))
    assert not verdict.runs
    assert verdict.reason.startswith(
        "'x0' and 'y0' differ in scale or zero point, as the target 'mine' asks: qi8 -> qi8"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[kernels]\n\nabs = 'qi8 -> ui'", r":3: \[kernels\] abs: 'ui' is not a port"),
        ("[kernels]\nabs = 'qi8 -> qi8; same'", ":2: .*'same' is not a constraint: known are same_scale"),
        ("[kernels]\nabs = 'qi8 -> qi8; fixed_scale 1'", ":2: .*fixed_scale takes 2"),
        ("[kernels]\nabs = 'qi8 -> qi8; fixed_scale a b'", ":2: .*fixed_scale takes 2 number"),
        ("[kernels]\nabs = 'qi8* qi8 -> qi8'", ":2: .*not the last"),
        ("[kernels]\nabs = 'qi8/axes -> qi8'", ":2: .*is not a port"),
        ("[kernels]\nabs = 'qf32 -> qi8'", ":2: .*is not a port"),
        ("[kernels]\nabs = 'qi8<5:500> -> qi8'", ":2: .*not a range within i8"),
        ("[kernels]\nabs = 'qi8:200 -> qi8'", ":2: .*outside i8"),
        ("[kernels]\nabs = 'T -> T; T ='", ":2: .*stands for no port"),
        ("[kernels]\nabs = 'qi8 -> qi8; fixed_scale -1 0'", ":2: .*takes 2 .*: positive, integer"),
        ("[kernels]\nabs = 'qi8 -> qi8; fixed_scale 1 0.5'", ":2: .*takes 2 .*: positive, integer"),
        ("[kernels]\nabs = 'qi8 -> qi8; multiplier_scale inf'", r":2: .*takes 1 .*: positive \(or none\)"),
        ("[kernels]\nabs = 'qi8 -> qi8; lowered 1'", ":2: .*takes no number"),
        ("[kernels]\nabs = 'qi8 -> qi8;'", ":2: .*'' is not a constraint"),
        ("[kernels]\nabs = 'qi8 -> qi8; multiplier_accumulator_scale'", ":2: .*is of operators with input, weights"),
        ("[kernels]\nabs = ''", ":2: .*is empty"),
        ("[kernels]\nabs = 'qi8 -> qi8; T = qi8'", ":2: .*'T' stands for ports, but is not in the signature"),
        ("[kernels]\nabs = 'T -> T; T = qi8; T = qi16'", ":2: .*'T' has a meaning already"),
        ("[kernels]\nabs = 'q -> q; q = qi16'", ":2: .*'q' has a meaning already"),
        ("[kernels]\nabs = 'T -> T; T 1 = qi16'", ":2: .*'T 1' is not a name"),
        ("[kernels]\nabs = 'T -> T; T = qi8 x'", ":2: .*'x' is not a port"),
        ("[kernels]\nabs = 'qi8 qi8 -> qi8'", r":2: .*2 operand\(s\), but the operator has: input"),
        ("[kernels]\nadd = 'qi8 -> qi8'", r":2: .*1 operand\(s\), but the operator has: lhs rhs"),
        ("[kernels]\nabs = 'qi8 -> qi8 qi8'", r":2: .*2 result\(s\), but the operator has: output"),
        ("[kernels]\nabs = [\n 'qi8 -> qi8',\n 'qi9 -> qi8',\n]", ":4: .*'qi9' is not a port"),
        ("[kernels]\nabs = [\n 'qi8 -> qi8',\n 'qi8 -> qi8; same_scale',\n]", ":4: .*is never reached"),
        ("[kernels]\nabs = ['qi8 -> qi8', 5]", ":2: .*neither a string nor a list"),
        ("[kernels]\nabs = 5", ":2: .*neither a string nor a list"),
        ("[kernels]\nabz = 'qi8'", ":2: .*'abz' is not an operator of TFLite; did you mean 'abs'"),
        ("[target]\nbase = 'all'", ":2: .*known are integer, kernels"),
        ("[target]\nbase = 1", ":2: .*not a string"),
        ("[target]\nbases = ''", ":2: .*'bases' is not known"),
        ("[kernel]\n", ":1: 'kernel' is not a section"),
        ("kernels = 1", ":1: 'kernels' is not a section"),
        ("[kernels]\n\n[[kernel]]\n", ":3: 'kernel' is not a section; did you mean 'kernels'"),
        ("kernl = 1", ":1: 'kernl' is not a section; did you mean 'kernels'"),
        ("[builtins]\nabz = 'f32 -> f32'", ":2: .*'abz' is not an operator of TFLite; did you mean 'abs'"),
        ("[builtins]\nabs = ['f32 -> f32']", ":2: .*abs is not a string"),
        ("[floats]\nrun = ['abz']", ":2: .*'abz' is not an operator of TFLite; did you mean 'abs'"),
        ("[target]\nentries = 'one'", ":2: .*entries: 'one' is not known; .*all, first"),
        ("[rescale]\nunsigned = 'add'", ":2: .*not a list"),
        ("[rescale]\nuniform = ['adds']", ":2: .*'adds' is not an operator of TFLite; did you mean 'add'"),
        (
            "[rescale]\nsigned = [\n 'add',\n 'adds',\n]",
            ":4: .*'adds' is not an operator of TFLite; did you mean 'add'",
        ),
        (
            "[rescale]\nsign = []",
            r":2: .*'sign' is not known; did you mean 'signed'\? known are unsigned, signed, uniform",
        ),
        ("[kernels]\nabs = 'qi8'\nabs = 'qi8'", ":3: 'kernels.abs' is said in line 2 already"),
        ("[target]\nprofiles = ['pro_int']", "is a target for TOSA files"),
        ("[profile.pro_int]\n", "is a target for TOSA files"),
        ("[kernels\n", "mine.toml"),
    ],
)
def test_faults(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(TflqError, match=reason):
        load(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[kernel]]\n", ":1: 'kernel' is not a section; did you mean 'kernels'"),
        ("[target]\nbas = 'kernels'", ":2: .*'bas' is not known; did you mean 'base'"),
        ("[target]\nprofiles = ['pro_int']", "is a target for TOSA files"),
    ],
)
def test_faults_of_a_file_of_logical_kernels(text: str, reason: str, tmp_path: Path) -> None:
    (path := tmp_path / "mine.toml").write_text(text)
    with pytest.raises(TflqError, match=reason):
        load_kernels(path)


def test_a_file_over_the_measured_kernels(tmp_path: Path) -> None:
    target = load('[target]\nbase = "kernels"\n[kernels]\nadd = "...; lowered"', tmp_path)
    assert not target.judge(op("add", [Q8, Q8], [Q8])).runs
    assert target.judge(op("relu", [Q8], [Q8])).runs


def test_a_target_of_the_other_format_says_so(tmp_path: Path) -> None:
    model = Path(__file__).resolve().parents[2] / "models" / "cnn_int8.tflite"
    with pytest.raises(OptionError, match="for TFLite files"):
        tflq.convert(model, format="tosa", target="kernels")
    with pytest.raises(TflqError, match="kernels"):
        tflq.convert(model, format="tosa", target=str(resource("rules/npu_example.toml")))
    with pytest.raises(OptionError, match="is a target for TOSA files"):
        tflq.convert(model, target=str(resource("rules/tosa.toml")))


def test_constraints_of_ones_own(tmp_path: Path) -> None:
    @constraint("scale_below", "positive")
    def scale_below(op: Op, bound: float) -> str | None:
        scales = [v.type.element.scale for v in op.results]  # type: ignore[union-attr]
        return None if max(scales) < bound else f"the scale is not below {bound:g}"

    try:
        target = load('[kernels]\nabs = "qi8 -> qi8; scale_below 0.5"', tmp_path)
        assert target.judge(op("abs", [Q8], [Q8_OTHER])).runs
        assert target.judge(op("abs", [Q8], [Q8])).reason.startswith("the scale is not below 0.5")
    finally:
        del CONSTRAINTS["scale_below"]


def test_kernels_of_several_targets_are_those_of_each_in_order() -> None:
    both, first, second = (load_kernels(name) for name in ("int8+int16x8", "int8", "int16x8"))
    assert both.keys() == first.keys() | second.keys()
    for name, signatures in both.items():
        assert [s.text for s in signatures] == [s.text for s in (*first.get(name, ()), *second.get(name, ()))]
    with pytest.raises(OptionError, match="'int9' is not known"):
        load_kernels("int8+int9")
