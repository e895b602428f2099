"""TOSA flatbuffers that are read: what was written, what tosa-opt writes, and what is wrong with the rest."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.one_op import CASES, inputs_of
from support.running import reference, tosa_opt

from tflq.base.errors import InvalidModelError, UnsupportedError
from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.flatbuffer.layout import TOSA
from tflq.formats.tosa.read import read_tosa
from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.module import Module, difference
from tflq.ir.ops import Location

Tree = dict[str, Any]


def tree_of(name: str) -> Tree:
    return copy.deepcopy(decode(tosa_bytes(CASES[name]()), schema=TOSA))


def main_block(tree: Tree) -> Tree:
    block: Tree = tree["regions"][0]["blocks"][0]
    return block


def operator(tree: Tree, name: str) -> Tree:
    found: Tree = next(op for op in main_block(tree)["operators"] if op["op"] == name)
    return found


def tensor(tree: Tree, name: str) -> Tree:
    found: Tree = next(t for t in main_block(tree)["tensors"] if t["name"] == name)
    return found


def bare(module: Module, like: Module | None = None) -> Module:
    """The module without what only a file says, and without names that the other does not have."""
    for function in module.functions:
        for op in function.ops:
            op.location, op.info = None, {}
        for value in function.values():
            value.info = {}
    if like is not None:
        for ours, theirs in zip(module.functions, like.functions, strict=True):
            for value, other in zip(ours.values(), theirs.values(), strict=True):
                value.name = value.name if other.name else ""
    return module


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_read(name: str) -> None:
    module = bare(CASES[name]())
    data = tosa_bytes(module)
    again = read_tosa(data)
    assert tosa_bytes(again) == data
    if name != "cond_if":  # two functions have a value of one name
        assert difference(module, bare(again, module)) is None


def test_names_and_locations() -> None:
    module = read_tosa(tosa_bytes(CASES["while_loop"]()))
    assert [f.name for f in module.functions] == ["main", "cond", "body"]
    assert [v.name for v in (*module.main.inputs, *module.main.outputs)] == ["in", "out0"]
    add = module.functions[2].ops[0]
    assert add.location == Location("", 2, 1, "ADD", add.result.name)


def test_a_file_is_named_in_locations_and_errors(tmp_path: Path) -> None:
    path = tmp_path / "model.tosa"
    path.write_bytes(tosa_bytes(CASES["tile"]()))
    module = read_tosa(path)
    assert module.source == str(path)
    assert str(path) in str(module.main.ops[0].location)
    path.write_bytes(path.read_bytes()[:-16])
    with pytest.raises(InvalidModelError, match=r"model\.tosa: "):
        read_tosa(path)


def test_constants_are_views_of_the_file() -> None:
    data = tosa_bytes(CASES["conv2d i8"]())
    weights = read_tosa(data).main.ops[0].operand(1)
    assert weights.buffer is not None
    assert np.shares_memory(weights.buffer.data, np.frombuffer(data, np.uint8))


def test_data_padded_to_eight_bytes() -> None:
    """As tosa-opt and the reference model's serializer store it."""
    tree = tree_of("conv2d i4")
    for item in (*main_block(tree)["tensors"], *main_block(tree)["shapes"]):
        if item["data"] is not None:
            item["data"] = np.append(item["data"], np.zeros(-item["data"].size % 8, np.uint8))
    assert bare(read_tosa(encode(tree, schema=TOSA))) == bare(read_tosa(tosa_bytes(CASES["conv2d i4"]())))


def test_several_blocks_of_a_region() -> None:
    tree = tree_of("cond_if")
    main, *others = tree["regions"]
    main["blocks"] += [region["blocks"][0] for region in others]
    tree["regions"] = [main]
    module = read_tosa(encode(tree, schema=TOSA))
    assert [f.name for f in module.functions] == ["main", "then", "else"]
    assert module.main.ops[0].attributes["else_graph"] == 2


def test_variable_operators_by_their_own_name() -> None:
    tree = tree_of("variable")
    for op in main_block(tree)["operators"]:
        op["op"] = {"VariableReadAttribute": "VARIABLE_READ", "VariableWriteAttribute": "VARIABLE_WRITE"}.get(
            op["attribute"][0], op["op"]
        )
    names = [op.name for op in read_tosa(encode(tree, schema=TOSA)).main.ops]
    assert names == ["tosa.variable", "tosa.variable_read", "tosa.variable_write", "tosa.variable_read"]


def test_a_later_minor_version() -> None:
    tree = tree_of("tile")
    tree["version"] |= {"_minor": 1, "_draft": True}
    assert read_tosa(encode(tree, schema=TOSA)).warnings == [
        "written for TOSA 1.1.0 (draft), read as TOSA 1.0; verify what it is converted to"
    ]


def test_accumulators_of_half_floats() -> None:
    tree = tree_of("avg_pool2d f32")
    block = main_block(tree)
    for item in block["tensors"]:
        item["type"] = "FP16"
        item["data"] = None if item["data"] is None else item["data"][: item["data"].size // 2]
    operator(tree, "AVG_POOL2D")["attribute"][1]["acc_type"] = "FP16"
    module = read_tosa(encode(tree, schema=TOSA))
    assert module.main.ops[0].info["acc_type"] == "f16"
    assert (
        decode(tosa_bytes(module), schema=TOSA)["regions"][0]["blocks"][0]["operators"][-1]["attribute"][1]["acc_type"]
        == "FP16"
    )


def test_bfloat16() -> None:
    tree = tree_of("clamp f32")
    for item in main_block(tree)["tensors"]:
        item["type"] = "BF16"
    bounds = operator(tree, "CLAMP")["attribute"][1]
    bounds |= {key: bounds[key][2:] for key in ("min_val", "max_val")}
    data = encode(tree, schema=TOSA)
    module = read_tosa(data)
    assert module.main.ops[0].attributes == {"min_val": 0.5, "max_val": 6.0}
    assert read_tosa(tosa_bytes(module)) == module
    tree = tree_of("pad")
    for item in main_block(tree)["tensors"]:
        if item["type"] == "FP32":
            item["type"] = "BF16"
            item["data"] = None if item["data"] is None else item["data"][2:]
    module = read_tosa(encode(tree, schema=TOSA))
    assert module.main.ops[1].attributes["pad_const"] == 0.5
    assert read_tosa(tosa_bytes(module)) == module


def test_data_behind_the_flatbuffer() -> None:
    """As files of more than 2 GiB have it."""
    tree = tree_of("constants")
    wanted = bare(read_tosa(encode(tree, schema=TOSA)))
    row = next(t for t in main_block(tree)["tensors"] if t["data"] is not None and t["shape"] == (1, 3))
    data, row["data"] = row["data"].tobytes(), None
    row |= {"offset": 1 << 20, "size": len(data)}
    front = encode(tree, schema=TOSA)
    row["offset"] = len(front)
    front = encode(tree, schema=TOSA)
    assert bare(read_tosa(front + data)) == wanted
    with pytest.raises(InvalidModelError, match="outside the file"):
        read_tosa(front + data[:-1])


def unsupported(tree: Tree) -> None:
    """Two things that the tosa form lacks."""
    operator(tree, "ADD")["op"] = "CUSTOM"
    operator(tree, "CUSTOM")["attribute"] = ("CustomAttribute", {})


def computed_shape(tree: Tree) -> None:
    op = operator(tree, "CONST_SHAPE")
    op["op"], op["attribute"], op["inputs"] = "ADD_SHAPE", ("AddShapeAttribute", {}), ()


def run_time_multiplier(tree: Tree) -> None:
    op = operator(tree, "RESCALE")
    op["inputs"] = (op["inputs"][0], op["inputs"][0], *op["inputs"][2:])


def signed_elsewhere(tree: Tree) -> None:
    main_block(tree)["operators"].append(
        {"op": "IDENTITY", "attribute": ("IdentityAttribute", {}), "inputs": ("in",), "outputs": ("more",)}
    )
    main_block(tree)["tensors"].append({"name": "more", "shape": (2, 3), "type": "INT8"})


def nan_ignored(tree: Tree) -> None:
    operator(tree, "REDUCE_MAX")["attribute"][1]["nan_mode"] = "IGNORE"


def version(**fields: int) -> Callable[[Tree], None]:
    return lambda tree: tree["version"].update(fields)


def block_scaled(tree: Tree) -> None:
    tensor(tree, "in")["block_shape"] = "BLOCK_SHAPE_32"


def of_type(name: str) -> Callable[[Tree], None]:
    return lambda tree: tensor(tree, "in").update(type=name)


def features(tree: Tree) -> None:
    tree["compatibility"] = {"features": 2}


def no_initial_value(tree: Tree) -> None:
    tensor(tree, "state")["data"] = None


REFUSED: list[tuple[str, Callable[[Tree], None], str]] = [
    ("constants", unsupported, r"operator \d+ \(CUSTOM\), tensor '.*': the tosa form has no CUSTOM"),
    ("slice", computed_shape, r"the tosa form has no ADD_SHAPE"),
    ("rescale per channel", run_time_multiplier, r"RESCALE.*its operand multiplier \('in'\) is computed at run time"),
    ("rescale unsigned", signed_elsewhere, "signed here and unsigned to a RESCALE"),
    ("reduce_max f32", nan_ignored, "nan_mode IGNORE"),
    ("tile", version(_major=0, _minor=80), r"TOSA 0\.80"),
    ("tile", version(_major=2), r"TOSA 2\.0"),
    ("tile", block_scaled, "MXFP"),
    ("tile", of_type("FP4E2M1"), "FP4E2M1"),
    ("tile", of_type("INT64"), "INT64"),
    ("tile", features, "MXFP"),
    ("tile", lambda t: tensor(t, "in").update(shape=(1,) * 99), "99 dims"),
    ("variable", no_initial_value, "no initial value"),
]


@pytest.mark.parametrize(("name", "change", "message"), REFUSED)
def test_refused_by_name(name: str, change: Callable[[Tree], None], message: str) -> None:
    tree = tree_of(name)
    change(tree)
    with pytest.raises(UnsupportedError, match=message):
        read_tosa(encode(tree, schema=TOSA))


def renamed(side: str, name: str, place: int = 0) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        op = main_block(tree)["operators"][-1]
        op[side] = (*op[side][:place], name, *op[side][place + 1 :])

    return change


def field(**fields: Any) -> Callable[[Tree], None]:
    return lambda tree: main_block(tree)["operators"][-1].update(fields)


def option(**fields: Any) -> Callable[[Tree], None]:
    return lambda tree: main_block(tree)["operators"][-1]["attribute"][1].update(fields)


def in_block(**fields: Any) -> Callable[[Tree], None]:
    return lambda tree: main_block(tree).update(fields)


def in_tensor(name: str, /, **fields: Any) -> Callable[[Tree], None]:
    return lambda tree: tensor(tree, name).update(fields)


def twice(key: str) -> Callable[[Tree], None]:
    return lambda tree: main_block(tree)[key].append(copy.deepcopy(main_block(tree)[key][0]))


def recursion(tree: Tree) -> None:
    body = tree["regions"][2]["blocks"][0]
    loop = main_block(tree)["operators"][0]
    body["operators"] = [{**loop, "inputs": body["inputs"], "outputs": body["outputs"]}]


def other_arguments(tree: Tree) -> None:
    body = tree["regions"][2]["blocks"][0]
    constant = body["operators"][0]
    body["inputs"], body["operators"], body["outputs"] = (), [constant], constant["outputs"]


INVALID: list[tuple[str, Callable[[Tree], None], str]] = [
    ("tile", lambda t: t.update(version=None), "version: it is missing"),
    ("tile", lambda t: t.update(regions=[]), "no block to run"),
    ("tile", lambda t: t["regions"][0].update(blocks=None), "it has no block"),
    ("cond_if", lambda t: t["regions"][1].update(name="main"), "another region called 'main'"),
    ("tile", renamed("inputs", "nothing"), r"operators\[1\]: 'nothing' is used before it is computed"),
    ("tile", renamed("inputs", "nothing", 1), "'nothing' is not a shape"),
    ("tile", renamed("outputs", "nothing"), "there is no tensor 'nothing'"),
    ("tile", renamed("outputs", "in"), "'in' is defined a second time"),
    ("tile", in_block(outputs=("nothing",)), "outputs"),
    ("tile", in_block(inputs=("in", "in")), "defined a second time"),
    ("tile", twice("tensors"), "another one called 'in'"),
    ("tile", twice("operators"), "defined a second time"),
    ("tile", in_tensor("in", name=None), "has no name"),
    ("tile", field(inputs=("in",)), "1 operands, not 2"),
    ("tile", field(attribute=("AddAttribute", {})), "TILE has a AddAttribute"),
    ("tile", field(op="UNKNOWN"), "UNKNOWN"),
    ("reverse i8", field(attribute=None), "REVERSE has none"),
    ("add i32", in_tensor("y", type="INT16"), "'input2' is i16"),
    ("max_pool2d i8", option(kernel=(2,)), "kernel"),
    ("max_pool2d i8", option(pad=None), "pad"),
    ("resize nearest", option(mode="UNKNOWN"), "no ResizeMode"),
    ("clamp i16", option(min_val=np.zeros(1, np.uint8)), "1 bytes are too few for i16"),
    ("conv2d i8", option(acc_type="INT16"), "INT16, where the types ask for i32"),
    ("conv2d i8", option(acc_type="UNKNOWN"), "not a type to accumulate in"),
    ("constants", in_tensor("out2", shape=(2, 2)), "2 bytes, its type and shape ask for 4"),
    ("constants", in_tensor("out2", data=np.array([1, 2], np.uint8)), "neither 0 nor 1"),
    ("reshape", in_tensor("out0", shape=(6,)), "the shape is"),
    ("rescale per channel", in_tensor("c0", type="INT16", shape=(6,)), "multiplier .* is i16, not i32"),
    ("rescale per channel", in_tensor("c2", shape=(2,), data=np.zeros(8, np.uint8)), "input_zp .* has 2 elements"),
    ("cond_if", option(then_graph="nowhere"), "no region called 'nowhere'"),
    ("cond_if", option(then_graph=None), "no region called ''"),
    ("while_loop", recursion, "calls itself"),
    ("while_loop", other_arguments, "takes other arguments"),
]


@pytest.mark.parametrize(("name", "change", "message"), INVALID)
def test_invalid(name: str, change: Callable[[Tree], None], message: str) -> None:
    tree = tree_of(name)
    change(tree)
    with pytest.raises(InvalidModelError, match=message):
        read_tosa(encode(tree, schema=TOSA))


def test_not_a_tosa_graph() -> None:
    data = bytearray(tosa_bytes(CASES["tile"]()))
    data[4:8] = b"TFL3"
    with pytest.raises(InvalidModelError, match="not a TOSA graph"):
        read_tosa(bytes(data))


TEXT = """
module attributes {tosa.target_env = #tosa.target_env<specification_version = "1.0", level = "8k",
                   profiles = [pro_int, pro_fp], extensions = [int16, int4, controlflow, variable]>} {
  tosa.variable @state = dense<[1, 2]> : tensor<2xi8>
  func.func @main(%x: tensor<1x4x4x2xi8>, %y: tensor<2xi8>, %c: tensor<i1>)
      -> (tensor<1x2x2x2xi8>, tensor<2xi8>, tensor<1x4x4x3xi32>, tensor<2xi8>) {
    %three = "tosa.const"() <{values = dense<3> : tensor<1xi8>}> : () -> tensor<1xi8>
    %none = "tosa.const"() <{values = dense<0> : tensor<1xi4>}> : () -> tensor<1xi4>
    %w = "tosa.const"() <{values = dense<[[[[1, -2]]], [[[3, 4]]], [[[5, 6]]]]> : tensor<3x1x1x2xi4>}>
      : () -> tensor<3x1x1x2xi4>
    %b = "tosa.const"() <{values = dense<[1, 2, 3]> : tensor<3xi32>}> : () -> tensor<3xi32>
    %p = tosa.avg_pool2d %x, %three, %three {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>,
      stride = array<i64: 2, 2>, acc_type = i32}
      : (tensor<1x4x4x2xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x2xi8>
    %v = tosa.conv2d %x, %w, %b, %three, %none {acc_type = i32, dilation = array<i64: 1, 1>,
      pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}
      : (tensor<1x4x4x2xi8>, tensor<3x1x1x2xi4>, tensor<3xi32>, tensor<1xi8>, tensor<1xi4>) -> tensor<1x4x4x3xi32>
    %old = tosa.variable_read @state : tensor<2xi8>
    tosa.variable_write @state, %y : tensor<2xi8>
    %i = tosa.cond_if %c (%a = %y) : tensor<i1> (tensor<2xi8>) -> tensor<2xi8> {
    ^bb0(%a: tensor<2xi8>):
      %q = tosa.clamp %a {min_val = -3 : i8, max_val = 7 : i8} : (tensor<2xi8>) -> tensor<2xi8>
      tosa.yield %q : tensor<2xi8>
    } else {
    ^bb0(%a: tensor<2xi8>):
      tosa.yield %a : tensor<2xi8>
    }
    return %p, %old, %v, %i : tensor<1x2x2x2xi8>, tensor<2xi8>, tensor<1x4x4x3xi32>, tensor<2xi8>
  }
}
"""


def test_what_tosa_opt_writes(tmp_path: Path) -> None:
    """Is read, and runs as before when it is written again."""
    text, file = tmp_path / "model.mlir", tmp_path / "model.tosa"
    text.write_text(TEXT)
    command = [tosa_opt(), str(text), f"--tosa-serialize=tosa-flatbuffer-filename={file}", "-o", "/dev/null"]
    subprocess.run(command, check=True, capture_output=True)
    module = read_tosa(file)
    names = [op.name.removeprefix("tosa.") for op in module.main.ops]
    assert names == ["variable", "avg_pool2d", "conv2d", "variable_read", "variable_write", "cond_if"]
    assert len(module.functions) == 3
    assert module.main.ops[1].attributes["input_zp"] == 3
    assert module.main.ops[2].operand(1).array.reshape(-1).tolist() == [1, -2, 3, 4, 5, 6]
    inputs = inputs_of(module)
    wanted, _ = pytest.importorskip("tosa_reference_model").run(file.read_bytes(), inputs)
    for want, got in zip(wanted, reference(module, inputs), strict=True):
        np.testing.assert_array_equal(want, got)
