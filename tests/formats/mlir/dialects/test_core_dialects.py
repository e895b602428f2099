"""The ops of arith, math, tensor, linalg, shape and func as declared: what is accepted, and what is refused with which
reason. An invalid text stands beside each valid one; MLIR, where it is at hand, judges all of them the same."""

from __future__ import annotations

import pytest
from support.mlir_oracle import needs_mlir, run

from tflq.base.errors import VerificationError
from tflq.ir.module import difference
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

F, I8, T = "tensor<2x3xf32>", "tensor<2x3xi8>", "tensor<?x3xf32>"


def op(line: str, **arguments: str) -> str:
    """A function of one op, `%r = line`, on arguments of types."""
    given = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    return f"func.func @f({given}) {{\n  {line}\n  return\n}}\n"


PAIRS: dict[str, tuple[str, str, str]] = {
    "integers and floats": (
        op('%r = "arith.addi"(%x, %x) : (i5, i5) -> i5', x="i5"),
        op('%r = "arith.addi"(%x, %x) : (f32, f32) -> f32', x="f32"),
        "'lhs' is f32, not a signless integer or index",
    ),
    "one type": (
        op('%r = "arith.addf"(%x, %x) : (f16, f16) -> f16', x="f16"),
        op('%r = "arith.addf"(%x, %y) : (f16, f32) -> f16', x="f16", y="f32"),
        "'rhs' is f32, not f16 like the other values of one type",
    ),
    "one shape": (
        op(f'%r = "arith.mulf"(%x, %y) : ({T}, {F}) -> {T}', x=T, y=F),
        op(f'%r = "arith.mulf"(%x, %y) : ({F}, tensor<3xf32>) -> {F}', x=F, y="tensor<3xf32>"),
        "operands and results must have the same shape",
    ),
    "scalars and tensors": (
        op('%r = "arith.negf"(%x) : (tensor<f32>) -> tensor<f32>', x="tensor<f32>"),
        op('%r = "arith.negf"(%x) : (tensor<f32>) -> f32', x="tensor<f32>"),
        "operands and results must have the same shape",
    ),
    "number of operands": (
        op('%r = "math.fma"(%x, %x, %x) : (f32, f32, f32) -> f32', x="f32"),
        op('%r = "math.fma"(%x, %x) : (f32, f32) -> f32', x="f32"),
        r"it has 2 operands, not 3",
    ),
    "signless": (
        op('%r = "arith.extsi"(%x) : (i8) -> i32', x="i8"),
        op('%r = "arith.extsi"(%x) : (ui8) -> i32', x="ui8"),
        "'input' is ui8, not a signless integer",
    ),
    "wider": (
        op('%r = "arith.extf"(%x) : (f16) -> f32', x="f16"),
        op('%r = "arith.extf"(%x) : (f32) -> f16', x="f32"),
        "the result must be wider than the operand",
    ),
    "narrower": (
        op('%r = "arith.trunci"(%x) : (i8) -> i1', x="i8"),
        op('%r = "arith.trunci"(%x) : (i8) -> i8', x="i8"),
        "the result must be narrower than the operand",
    ),
    "as wide": (
        op('%r = "arith.bitcast"(%x) : (i32) -> f32', x="i32"),
        op('%r = "arith.bitcast"(%x) : (i16) -> f32', x="i16"),
        "the result must be as wide as the operand",
    ),
    "index": (
        op('%r = "arith.index_cast"(%x) : (i32) -> index', x="i32"),
        op('%r = "arith.index_cast"(%x) : (i32) -> i64', x="i32"),
        "one of operand and result must be of index",
    ),
    "predicate of integers": (
        op('%r = "arith.cmpi"(%x, %x) {predicate = 9 : i64} : (i8, i8) -> i1', x="i8"),
        op('%r = "arith.cmpi"(%x, %x) {predicate = 10 : i64} : (i8, i8) -> i1', x="i8"),
        "'predicate' must be one of the 10",
    ),
    "predicate of floats": (
        op('%r = "arith.cmpf"(%x, %x) {predicate = 15 : i64} : (f32, f32) -> i1', x="f32"),
        op('%r = "arith.cmpf"(%x, %x) : (f32, f32) -> i1', x="f32"),
        "it has no attribute 'predicate'",
    ),
    "result of a comparison": (
        op(f'%r = "arith.cmpf"(%x, %x) {{predicate = 1 : i64}} : ({F}, {F}) -> tensor<2x3xi1>', x=F),
        op(f'%r = "arith.cmpf"(%x, %x) {{predicate = 1 : i64}} : ({F}, {F}) -> {I8}', x=F),
        "'result' is i8, not i1",
    ),
    "choice": (
        op(f'%r = "arith.select"(%c, %x, %x) : (i1, {F}, {F}) -> {F}', c="i1", x=F),
        op(f'%r = "arith.select"(%c, %x, %x) : (tensor<3xi1>, {F}, {F}) -> {F}', c="tensor<3xi1>", x=F),
        "the condition must be one i1, or one for each element",
    ),
    "powers": (
        op('%r = "math.fpowi"(%x, %n) : (f32, i32) -> f32', x="f32", n="i32"),
        op('%r = "math.fpowi"(%x, %x) : (f32, f32) -> f32', x="f32"),
        "'rhs' is f32, not a signless integer",
    ),
    "wide products": (
        op('%l, %h = "arith.mulsi_extended"(%x, %x) : (i32, i32) -> (i32, i32)', x="i32"),
        op('%l = "arith.mulsi_extended"(%x, %x) : (i32, i32) -> i32', x="i32"),
        r"it has 1 result, not 2",
    ),
    "splat": (
        op('%r = "tensor.splat"(%x, %n) : (f32, index) -> tensor<?x3xf32>', x="f32", n="index"),
        op('%r = "tensor.splat"(%x) : (f32) -> tensor<?x3xf32>', x="f32"),
        "there must be one size for each unknown dim",
    ),
    "elements": (
        op('%r = "tensor.from_elements"(%x, %x) : (i8, i8) -> tensor<2x1xi8>', x="i8"),
        op('%r = "tensor.from_elements"(%x, %x) : (i8, i8) -> tensor<3xi8>', x="i8"),
        "with as many elements as are given",
    ),
    "element": (
        op(f'%r = "tensor.extract"(%x, %i, %i) : ({F}, index, index) -> f32', x=F, i="index"),
        op(f'%r = "tensor.extract"(%x, %i) : ({F}, index) -> f32', x=F, i="index"),
        "there must be one index for each dim",
    ),
    "cast of a shape": (
        op(f'%r = "tensor.cast"(%x) : ({T}) -> {F}', x=T),
        op(f'%r = "tensor.cast"(%x) : ({T}) -> tensor<3x2xf32>', x=T),
        "the shapes must agree",
    ),
    "reshape": (
        op(f'%r = "tensor.reshape"(%x, %s) : ({F}, tensor<1xi32>) -> tensor<6xf32>', x=F, s="tensor<1xi32>"),
        op(f'%r = "tensor.reshape"(%x, %s) : ({F}, tensor<1xi32>) -> tensor<5xf32>', x=F, s="tensor<1xi32>"),
        "must have as many elements",
    ),
    "collapsed": (
        op(f'%r = "tensor.collapse_shape"(%x) {{reassociation = [[0, 1]]}} : ({F}) -> tensor<6xf32>', x=F),
        op(f'%r = "tensor.collapse_shape"(%x) {{reassociation = [[0, 1]]}} : ({F}) -> tensor<5xf32>', x=F),
        "'reassociation' must be lists of the larger shape's dims",
    ),
    "joined": (
        op(f'%r = "tensor.concat"(%x, %x) {{dim = 0 : i64}} : ({F}, {F}) -> tensor<4x3xf32>', x=F),
        op(f'%r = "tensor.concat"(%x, %x) {{dim = 0 : i64}} : ({F}, {F}) -> tensor<2x6xf32>', x=F),
        "equal except in 'dim'",
    ),
    "slice": (
        op(
            '%r = "tensor.extract_slice"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = '
            "array<i64: 0, 1>, static_sizes = array<i64: 1, 2>, static_strides = array<i64: 1, 1>} : "
            f"({F}) -> tensor<1x2xf32>",
            x=F,
        ),
        op(
            '%r = "tensor.extract_slice"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = '
            "array<i64: 0, 2>, static_sizes = array<i64: 1, 2>, static_strides = array<i64: 1, 1>} : "
            f"({F}) -> tensor<1x2xf32>",
            x=F,
        ),
        "offsets, sizes and strides must be given for each dim of the tensor, and be within it",
    ),
    "shape": (
        op(f'%r = "shape.shape_of"(%x) : ({F}) -> tensor<2xindex>', x=F),
        op(f'%r = "shape.shape_of"(%x) : ({F}) -> tensor<2xi32>', x=F),
        "'result' is i32, not index",
    ),
    "call": (
        "func.func private @g(i8) -> i8\n" + op("%r = func.call @g(%x) : (i8) -> i8", x="i8"),
        "func.func private @g(i8) -> i8\n" + op("%r = func.call @g(%x) : (i16) -> i8", x="i16"),
        "@g is used as",
    ),
}

MAPS = "indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]"


def reduction(
    maps: str = MAPS, kinds: str = '"reduction", "parallel"', arguments: str = "%a: f32, %b: f32", out: str = "%b : f32"
) -> str:
    body = f"^bb0({arguments}):\n      linalg.yield {out}\n  "
    head = f"linalg.generic {{{maps}, iterator_types = [{kinds}]}}"
    return op(
        f"%r = {head} ins(%x : {F}) outs(%y : tensor<3xf32>) {{\n  {body}}} -> tensor<3xf32>", x=F, y="tensor<3xf32>"
    )


GENERIC: dict[str, tuple[str, str]] = {
    "a kind of iterator": (reduction(kinds='"reduction", "serial"'), "'iterator_types' must be a list of"),
    "a map too few": (reduction("indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]"), "'indexing_maps' must be"),
    "a dim too few": (reduction(MAPS.replace("-> (d0, d1)", "-> (d0)")), "'indexing_maps' must be affine maps"),
    "two sizes": (reduction(MAPS.replace("-> (d1)", "-> (d0)")), "of the size of a dim must be the same"),
    "arguments": (reduction(arguments="%a: f32, %b: f16", out="%a : f32"), "whose arguments are of the operands'"),
    "what is yielded": (reduction(out="%a, %b : f32, f32"), "ends with linalg.yield"),
}


def verdict(text: str) -> str:
    """The reason why a text is refused; empty if it is not."""
    module = parse_module(text)
    try:
        verify(module)
    except VerificationError as error:
        return str(error)
    assert difference(module, parse_module(print_module(module))) is None
    return ""


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_a_valid_op_and_an_invalid_one(name: str) -> None:
    valid, invalid, reason = PAIRS[name]
    assert verdict(valid) == ""
    with pytest.raises(VerificationError, match=reason):
        verify(parse_module(invalid))


@pytest.mark.parametrize("name", sorted(GENERIC))
def test_what_a_loop_must_say(name: str) -> None:
    text, reason = GENERIC[name]
    assert verdict(reduction()) == ""
    assert reason in verdict(text)


def test_quantized_numbers_are_no_operands_of_arithmetic() -> None:
    kind = "!quant.uniform<i8:f32, 0.5>"
    assert f"'lhs' is {kind}, not a float" in verdict(
        op(f'%r = "arith.addf"(%x, %x) : ({kind}, {kind}) -> {kind}', x=kind)
    )


@needs_mlir
def test_mlir_judges_the_same() -> None:
    texts = [text for valid, invalid, _ in PAIRS.values() for text in (valid, invalid)]
    texts += [reduction(), *(text for text, _ in GENERIC.values())]
    for text, made in zip(texts, run(texts), strict=True):
        assert bool(verdict(text)) == made.startswith("ERROR"), f"{text}\n{made}"
