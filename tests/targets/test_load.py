"""Target files: what they say, and their faults by line and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import argument

import tflq
from tflq.errors import TflqError, UnsupportedError
from tflq.ir.core import Op
from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.resources import resource
from tflq.targets import INTEGER, Target, load_target


def load(text: str, folder: Path) -> Target:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_target(path)


def op(name: str, operands: list[ElementType], results: list[ElementType]) -> Op:
    made = [
        [argument((1, 3), e, f"{kind}{i}") for i, e in enumerate(v)] for kind, v in (("x", operands), ("y", results))
    ]
    return Op("tfl." + name, list(made[0]), made[1])


Q8, Q8_OTHER = UniformQuantizedType.of(i8, 0.5, 3), UniformQuantizedType.of(i8, 0.25, 3)
SYMMETRIC, NARROW = UniformQuantizedType.of(i8, 0.5), UniformQuantizedType.of(i8, 0.5, storage_min=-127)
AXIS = UniformQuantizedPerAxisType.of(i8, 1, [0.5, 0.25, 0.5])
QU8, Q16 = UniformQuantizedType.of(ui8, 0.5, 131), UniformQuantizedType.of(i16, 0.5)


def test_names() -> None:
    assert load_target() is INTEGER is load_target("integer")
    assert load_target("kernels").name == "kernels"
    with pytest.raises(UnsupportedError, match=r"'tosa' is of TOSA files"):
        load_target("tosa")
    with pytest.raises(UnsupportedError, match=r"'kernel' is not known: integer, kernels, or a path"):
        load_target("kernel")
    with pytest.raises(TflqError, match="No such file"):
        load_target("missing.toml")


@pytest.mark.parametrize(
    ("line", "operands", "results", "kept"),
    [
        ("qi8 -> qi8", [Q8], [Q8_OTHER], True),
        ("qi8 -> qi8", [QU8], [QU8], False),
        ("qi8 -> qi8", [AXIS], [Q8], False),
        ("qi8/axis -> qi8", [AXIS], [Q8], True),
        ("qi8/axis1 -> qi8", [AXIS], [Q8], True),
        ("qi8/axis0 -> qi8", [AXIS], [Q8], False),
        ("qi8/any -> qi8", [AXIS], [Q8], True),
        ("qi8:0 -> qi8", [Q8], [Q8], False),
        ("qi8:0 -> qi8", [SYMMETRIC], [Q8], True),
        ("qi8/axis:0 -> qi8", [AXIS], [Q8], True),
        ("qi8<-127:127> -> any", [NARROW], [Q8], True),
        ("qi8<-127:127> -> any", [Q8], [Q8], False),
        ("q plain -> any", [Q8, i32], [i32], True),
        ("q plain -> any", [Q8, Q8], [i32], False),
        ("qi8", [Q8], [Q16], True),
        ("qi8 ...", [Q8, i32, i32], [Q8], True),
        ("...", [Q16, i32], [i32, Q8], True),
        ("T* -> T; T = qi8 qi16", [Q8, Q8, Q8], [Q8], True),
        ("T* -> T; T = qi8 qi16", [Q8, Q8], [Q16], False),
        ("qi8 qi8 qi32? -> qi8", [Q8, Q8], [Q8], True),
        ("qi8 -> qi8; same_scale", [Q8], [Q8], True),
        ("qi8 -> qi8; same_scale", [Q8], [Q8_OTHER], False),
        ("qi8 qi8 -> qi8; same_operand_scale", [Q8, Q8], [Q8_OTHER], True),
        ("qi8 -> qi8; fixed_scale 0.25 3", [Q8], [Q8_OTHER], True),
        ("qi8 -> qi8; fixed_scale 0.25 0", [Q8], [Q8_OTHER], False),
        ("qi8 qi8 -> qi8; multiplier_scale 1", [Q8, Q8], [Q8], True),
        ("qi8 qi8 -> qi8; multiplier_scale 1", [Q8, Q8], [Q8_OTHER], False),
        ("qi8 -> qi8; power_of_two_scale", [Q8], [Q8_OTHER], True),
        ("qi8 -> qi8; lowered", [Q8], [Q8], False),
    ],
)
def test_signatures(
    line: str, operands: list[ElementType], results: list[ElementType], kept: bool, tmp_path: Path
) -> None:
    target = load(f'[kernels]\nabs = "{line}"', tmp_path)
    assert target.judge(op("abs", operands, results)).kept == kept
    assert not target.judge(op("neg", operands, results)).kept


def test_the_bias_is_stored_at_the_scale_of_input_times_weights(tmp_path: Path) -> None:
    target = load('[kernels]\nconv_2d = "... -> q; multiplier_accumulator_scale"', tmp_path)
    for scale, kept in ((0.25, True), (0.5, False)):
        bias = UniformQuantizedType.of(i32, scale)
        assert target.judge(op("conv_2d", [SYMMETRIC, SYMMETRIC, bias], [Q8])).kept == kept


def test_the_first_signature_that_fits_decides(tmp_path: Path) -> None:
    target = load('[kernels]\nabs = ["qi8 -> qi8; same_scale", "qi8 -> qi8"]', tmp_path)
    verdict = target.judge(op("abs", [Q8], [Q8_OTHER]))
    assert not verdict.kept
    assert verdict.reason == "'x0' and 'y0' differ in scale or zero point"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[kernels]\n\nabs = 'qi8 -> ui'", r":3: \[kernels\] abs: 'ui' is no port"),
        ("[kernels]\nabs = 'qi8 -> qi8; same'", ":2: .*'same' is no constraint: known are same_scale"),
        ("[kernels]\nabs = 'qi8 -> qi8; fixed_scale 1'", ":2: .*fixed_scale takes 2"),
        ("[kernels]\nabs = 'qi8 -> qi8; fixed_scale a b'", ":2: .*takes numbers"),
        ("[kernels]\nabs = 'qi8* qi8 -> qi8'", ":2: .*not the last"),
        ("[kernels]\nabs = 'qi8/axes -> qi8'", ":2: .*is no port"),
        ("[kernels]\nabs = 'qf32 -> qi8'", ":2: .*is no port"),
        ("[kernels]\nabs = 'qi8<5:500> -> qi8'", ":2: .*no range within i8"),
        ("[kernels]\nabs = 'qi8:200 -> qi8'", ":2: .*outside i8"),
        ("[kernels]\nabs = 'T -> T; T ='", ":2: .*stands for no port"),
        ("[kernels]\nabs = 5", ":2: .*neither a string nor a list"),
        ("[kernels]\nabz = 'qi8'", ":2: .*'abz' is no builtin"),
        ("[target]\nbase = 'all'", ":2: .*known are integer, kernels"),
        ("[target]\nbase = 1", ":2: .*not a string"),
        ("[target]\nbases = ''", ":2: .*'bases' is not known"),
        ("[kernel]\n", ":1: 'kernel' is no section"),
        ("kernels = 1", ":1: 'kernels' is not a section"),
        ("[rescale]\nunsigned = 'add'", ":2: .*not a list"),
        ("[rescale]\nuniform = ['adds']", ":2: .*'adds' is no builtin"),
        ("[target]\nprofiles = ['pro_int']", "is a target of TOSA files"),
        ("[profile.pro_int]\n", "is a target of TOSA files"),
        ("[kernels\n", "mine.toml"),
    ],
)
def test_faults(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(TflqError, match=reason):
        load(text, tmp_path)


def test_a_file_over_the_measured_kernels(tmp_path: Path) -> None:
    target = load('[target]\nbase = "kernels"\n[kernels]\nadd = "...; lowered"', tmp_path)
    assert not target.judge(op("add", [Q8, Q8], [Q8])).kept
    assert target.judge(op("relu", [Q8], [Q8])).kept


def test_a_target_of_the_other_format_says_so(tmp_path: Path) -> None:
    model = Path(__file__).resolve().parents[2] / "models" / "cnn_int8.tflite"
    with pytest.raises(UnsupportedError, match="of TFLite files"):
        tflq.convert(model, format="tosa", target="kernels")
    with pytest.raises(TflqError, match="kernels"):
        tflq.convert(model, format="tosa", target=str(resource("rules/npu_example.toml")))
    with pytest.raises(UnsupportedError, match="is a target of TOSA files"):
        tflq.convert(model, target=str(resource("rules/tosa.toml")))
