"""Files for `scripts/fuzz.py --forms`: valid models of one or a few operators, changed in one to three places so that
mostly their structure stays valid and their meaning does not.

A draw begins with a case of `tests/matrix`. What is changed: the element type or the quantization of a tensor, an
operand or result, a tensor listed twice, a constant that becomes an input and the reverse, a shape, an option; the
whole model inside of nested IF, WHILE and composites; as text, storage types that files lack; as TOSA, its fields. Some
are single operators instead (`fuzz_operators.py`). File N of a seed is the same in every run.
"""

from __future__ import annotations

import copy
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]

from matrix import GENERATORS  # noqa: E402
from matrix.run import case_of  # noqa: E402

from scripts.fuzz_mutants import Tree, changed_field, fields_of, mutate_fields  # noqa: E402
from scripts.fuzz_operators import operator  # noqa: E402
from tflq.base.errors import TflqError  # noqa: E402
from tflq.formats.flatbuffer.codec import decode, encode  # noqa: E402
from tflq.formats.flatbuffer.layout import TFLITE  # noqa: E402


@dataclass
class Draft:
    """A model, the subgraph of it that is changed, and the source of random numbers."""

    model: Tree
    graph: Tree
    rng: random.Random


TYPES: Final = list(TFLITE.enum("TensorType").values)
_BITS: Final = """
    INT2=2 INT4=4 UINT4=4 FLOAT16=16 BFLOAT16=16 INT16=16 UINT16=16 FLOAT32=32 INT32=32 UINT32=32 FLOAT64=64 INT64=64
    UINT64=64 COMPLEX64=64 COMPLEX128=128
"""
_WIDTHS: Final = {name: int(bits) for name, bits in (pair.split("=") for pair in _BITS.split())}
"""Bits of an element; 8 for other types."""
SCALES: Final = (0.5, 0.0625, 0.003, 1.0, 7.7, 1e-6, 1e-30, 1e-40, 0.0, 1e30, float("inf"))
MOST_DEPTH: Final = 300
TEXTS: Final = [path for path in sorted((ROOT / "tests").rglob("*.mlir")) if path.stat().st_size < 20_000]


def drawn(seed: int, number: int) -> bytes:
    """File `number` of a seed."""
    rng = random.Random(f"forms:{seed}:{number}")  # noqa: S311
    kinds = (_tflite, operator, _nested_calls, _text, _nested_text, _tosa)
    kind = rng.choices(kinds, (50, 15, 6, 16, 3, 10))[0]
    return kind(rng)


def _case(rng: random.Random) -> bytes:
    return case_of(rng.choice(list(GENERATORS)), rng.randrange(1 << 20), 0).model


# --- TFLite


def _tflite(rng: random.Random) -> bytes:
    model = decode(_case(rng), schema=TFLITE)
    _change(model, rng)
    return encode(model, schema=TFLITE)


def _change(model: Tree, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        graph = rng.choice(model["subgraphs"])
        if graph["tensors"] and graph["operators"]:
            rng.choices(list(CHANGES), list(CHANGES.values()))[0](Draft(model, graph, rng))


def change_type(draft: Draft) -> None:
    """Gives a tensor another element type, and a constant as many bytes as it then takes."""
    tensor = draft.rng.choice(draft.graph["tensors"])
    tensor["type"] = draft.rng.choice(TYPES)
    if draft.rng.random() < 0.5:
        tensor["quantization"] = None
    _refill(draft.model, tensor, draft.rng)


def change_types_alike(draft: Draft) -> None:
    """Gives all tensors of one element type another one."""
    old, new = draft.rng.choice(draft.graph["tensors"])["type"], draft.rng.choice(TYPES)
    for tensor in draft.graph["tensors"]:
        if tensor["type"] == old:
            tensor["type"] = new
            _refill(draft.model, tensor, draft.rng)


def change_quantization(draft: Draft) -> None:
    """Gives a tensor no quantization, or one of another kind."""
    tensor = draft.rng.choice(draft.graph["tensors"])
    shape = tensor["shape"] or ()
    kind = draft.rng.choice(("none", "tensor", "axis", "axis", "blockwise", "other", "range"))
    fields: Tree = dict.fromkeys(("details", "min", "max", "scale", "zero_point"))
    fields["quantized_dimension"] = draft.rng.randrange(max(len(shape), 1))
    count = 1
    if kind == "axis" and len(shape):
        count = int(shape[fields["quantized_dimension"]])
    if kind in ("tensor", "axis") and count < 1000:
        fields["scale"] = tuple(draft.rng.choice(SCALES) for _ in range(count))
        zero = draft.rng.choice((0, 0, 0, 1, -5, 128, -128, 32767))
        fields["zero_point"] = (zero,) * draft.rng.choice((1, count))
    if kind == "blockwise":
        details = {
            "scales": draft.rng.randrange(len(draft.graph["tensors"])),
            "zero_points": -1,
            "block_size": draft.rng.choice((2, 4)),
        }
        fields["details"] = ("BlockwiseQuantization", details)
    if kind == "range":
        fields["min"], fields["max"] = (-1.0,), (1.0,)
    if kind == "other":
        tensor["quantization"] = copy.deepcopy(draft.rng.choice(draft.graph["tensors"])["quantization"])
    else:
        tensor["quantization"] = None if kind == "none" else fields


def list_twice(draft: Draft) -> None:
    """Lists an input or an output of a subgraph, or an operand, a second time."""
    holder, key = draft.rng.choice(
        ((draft.graph, "inputs"), (draft.graph, "outputs"), (draft.rng.choice(draft.graph["operators"]), "inputs"))
    )
    listed = list(holder[key] or ())
    if listed:
        listed.insert(draft.rng.randrange(len(listed) + 1), draft.rng.choice(listed))
        holder[key] = tuple(listed)


def change_operand(draft: Draft) -> None:
    """Puts another tensor, or none, in the place of an operand."""
    op = draft.rng.choice(draft.graph["operators"])
    listed = list(op["inputs"] or ())
    if listed:
        listed[draft.rng.randrange(len(listed))] = draft.rng.randrange(-1, len(draft.graph["tensors"]))
        op["inputs"] = tuple(listed)


def change_arity(draft: Draft) -> None:
    """Takes an operand or a result away, or adds one."""
    key = draft.rng.choice(("inputs", "inputs", "outputs"))
    op = draft.rng.choice(draft.graph["operators"])
    listed = list(op[key] or ())
    if listed and draft.rng.random() < 0.5:
        listed.pop(draft.rng.randrange(len(listed)))
    else:
        listed.append(draft.rng.randrange(len(draft.graph["tensors"])))
    op[key] = tuple(listed)


def constant_as_input(draft: Draft) -> None:
    """Makes a constant an input."""
    constants = [i for i, tensor in enumerate(draft.graph["tensors"]) if _data(draft.model, tensor) is not None]
    if constants:
        place = draft.rng.choice(constants)
        draft.graph["tensors"][place]["buffer"] = 0
        draft.graph["inputs"] = (*(draft.graph["inputs"] or ()), place)


def input_as_constant(draft: Draft) -> None:
    """Makes an input a constant."""
    if draft.graph["inputs"]:
        place = draft.rng.choice(draft.graph["inputs"])
        draft.graph["inputs"] = tuple(i for i in draft.graph["inputs"] if i != place)
        draft.model["buffers"].append({"data": np.zeros(0, np.uint8), "offset": 0, "size": 0})
        draft.graph["tensors"][place]["buffer"] = len(draft.model["buffers"]) - 1
        _refill(draft.model, draft.graph["tensors"][place], draft.rng, always=True)


def any_output(draft: Draft) -> None:
    """Makes any tensor an output."""
    draft.graph["outputs"] = (*(draft.graph["outputs"] or ()), draft.rng.randrange(len(draft.graph["tensors"])))


def change_shape(draft: Draft) -> None:
    """Changes a dim or the rank of a tensor; some dims become unknown."""
    tensor = draft.rng.choice(draft.graph["tensors"])
    shape = [int(d) for d in (() if tensor["shape"] is None else tensor["shape"])]
    kind = draft.rng.choice(("dim", "dim", "insert", "delete", "none", "open"))
    if kind == "open" and shape:
        signature = [-1 if draft.rng.random() < 0.5 else d for d in shape]
        tensor["shape_signature"] = tuple(signature)
        return
    if kind == "dim" and shape:
        shape[draft.rng.randrange(len(shape))] = draft.rng.choice((0, 1, 2, 3, 5, 8, 17))
    elif kind == "insert":
        shape.insert(draft.rng.randrange(len(shape) + 1), draft.rng.choice((1, 1, 2)))
    elif kind == "delete" and shape:
        shape.pop(draft.rng.randrange(len(shape)))
    tensor["shape"] = None if kind == "none" else tuple(shape)
    tensor["shape_signature"] = None
    _refill(draft.model, tensor, draft.rng)


def change_data(draft: Draft) -> None:
    """Gives a constant other elements: small numbers, or random bytes."""
    constants = [tensor for tensor in draft.graph["tensors"] if _data(draft.model, tensor) is not None]
    if constants:
        _refill(draft.model, draft.rng.choice(constants), draft.rng, always=True)


def change_option(draft: Draft) -> None:
    """Changes one option of an operator."""
    union = draft.rng.choice(draft.graph["operators"])["builtin_options"]
    if union is not None:
        places = list(fields_of(TFLITE, *union))
        if places:
            holder, item = draft.rng.choice(places)
            holder[item.name] = changed_field(TFLITE, holder[item.name], item, draft.rng)


def change_operator(draft: Draft) -> None:
    """Makes an operator code that of another operator of the same options, or of any."""
    row = draft.rng.choice(draft.model["operator_codes"])
    name = draft.rng.choice([n for n in TFLITE.enum("BuiltinOperator").values if "PLACEHOLDER" not in n])
    code = TFLITE.enum("BuiltinOperator").values[name]
    row["builtin_code"], row["deprecated_builtin_code"] = name, min(code, 127)
    row["version"] = draft.rng.choice((1, 1, 2, 3, 5))


def set_variable(draft: Draft) -> None:
    """Makes a tensor a variable."""
    tensor = draft.rng.choice(draft.graph["tensors"])
    tensor["is_variable"] = not tensor["is_variable"]


CHANGES: Final[dict[Callable[[Draft], None], int]] = {
    change_type: 25,
    change_types_alike: 12,
    change_quantization: 15,
    list_twice: 6,
    change_operand: 8,
    change_arity: 3,
    constant_as_input: 8,
    input_as_constant: 6,
    any_output: 3,
    change_shape: 8,
    change_data: 6,
    change_option: 6,
    change_operator: 6,
    set_variable: 1,
}
"""How often each is drawn."""


def _data(model: Tree, tensor: Tree) -> Any:
    """The data of a constant; None if a tensor has none."""
    data = model["buffers"][tensor["buffer"]]["data"] if tensor["buffer"] < len(model["buffers"]) else None
    return data if data is not None and len(data) else None


def _refill(model: Tree, tensor: Tree, rng: random.Random, *, always: bool = False) -> None:
    """Gives a constant a buffer of its own, of as many bytes as its type and shape take."""
    data = _data(model, tensor)
    if data is None and not always:
        return
    elements = int(np.prod([int(d) for d in (() if tensor["shape"] is None else tensor["shape"])], dtype=np.int64))
    size = -(-elements * _WIDTHS.get(tensor["type"], 8) // 8)
    if size > 1 << 20:
        return
    content: bytes
    if tensor["type"] == "STRING":
        content = _strings(elements, rng)
    elif rng.random() < 0.6:
        content = _small_numbers(tensor["type"], elements, size, rng)
    else:
        old = b"" if data is None else bytes(data)
        content = (old * (size // max(len(old), 1) + 1))[:size] if old else rng.randbytes(size)
    if not content and not always:
        return
    model["buffers"].append({"data": np.frombuffer(content, np.uint8), "offset": 0, "size": 0})
    tensor["buffer"] = len(model["buffers"]) - 1


def _small_numbers(type: str, elements: int, size: int, rng: random.Random) -> bytes:
    kinds = {"FLOAT32": np.float32, "FLOAT16": np.float16, "FLOAT64": np.float64, "INT64": np.int64, "INT32": np.int32}
    kinds |= {"INT16": np.int16, "UINT32": np.uint32, "UINT64": np.uint64, "UINT16": np.uint16}
    numbers = [rng.choice((0, 0, 1, 1, 2, 3, 4)) for _ in range(elements)]
    if type in kinds:
        return np.asarray(numbers, kinds[type]).tobytes()
    return (bytes(numbers) + bytes(size))[:size]


def _strings(count: int, rng: random.Random) -> bytes:
    texts = [rng.choice((b"", b"a", b"text")) for _ in range(count)]
    starts = np.cumsum([4 * (count + 2), *map(len, texts)])
    return np.asarray([count, *starts], "<i4").tobytes() + b"".join(texts)


# --- calls inside of calls


def _nested_calls(rng: random.Random) -> bytes:
    """The model behind IF, WHILE, CALL_ONCE or composites, mostly a few deep, sometimes some hundreds."""
    model = decode(_case(rng), schema=TFLITE)
    model["signature_defs"] = None
    depth = rng.choice((1, 1, 2, 3, 10, 100, 200, MOST_DEPTH))
    kinds = [rng.choice(("IF", "WHILE", "STABLEHLO_COMPOSITE"))] if depth > 3 else ["IF", "STABLEHLO_COMPOSITE"]
    for _ in range(depth):
        nest(model, rng.choice(kinds))
    if rng.random() < 0.5:
        _change(model, rng)
    return encode(model, schema=TFLITE)


def nest(model: Tree, kind: str) -> None:
    """Moves the first subgraph of a model to the end; the first one then is one operator that calls it."""
    graphs = model["subgraphs"]
    inner, place = graphs[0], len(graphs)
    for graph in graphs:
        for op in graph["operators"] or ():
            _renumber(op, place)
    outer = {**copy.deepcopy({key: value for key, value in inner.items() if key != "operators"}), "name": "main"}
    for tensor in outer["tensors"]:
        tensor["buffer"] = 0
    operands, results = tuple(inner["inputs"] or ()), tuple(inner["outputs"] or ())
    outer["operators"] = []
    graphs[0] = outer
    graphs.append(inner)
    if kind == "WHILE":
        union: Any = ("WhileOptions", {"cond_subgraph_index": place + 1, "body_subgraph_index": place})
        alike = [inner["tensors"][i] for i in operands] == [inner["tensors"][i] for i in results]
        graphs.append(_never(outer, operands))
        inner["outputs"] = results if alike else operands
        results = tuple(range(len(outer["tensors"]), len(outer["tensors"]) + len(operands)))
        outer["tensors"] += [copy.deepcopy(outer["tensors"][i]) for i in operands]
        outer["outputs"] = results
    elif kind == "IF":
        union = ("IfOptions", {"then_subgraph_index": place, "else_subgraph_index": place})
        operands = (_add_truth(outer, 0), *operands)
        outer["inputs"] = operands
    else:
        fields = {"name": "tests.nested", "decomposition_subgraph_index": place, "version": 0}
        fields |= {"composite_attributes": None, "composite_attributes_format": "FLEXBUFFERS"}
        union = ("StableHLOCompositeOptions", fields)
    outer["operators"].append(_operator(_row_of(model, kind), operands, results, union))


def _renumber(op: Tree, first: int) -> None:
    """Gives the first subgraph another number where an operator calls it."""
    for union in (op["builtin_options"], op["builtin_options_2"]):
        for key in union[1] if union is not None else ():
            if key.endswith("subgraph_index") and union[1][key] == 0:
                union[1][key] = first


def _add_truth(graph: Tree, buffer: int) -> int:
    """Adds a tensor of one truth value."""
    fields = dict.fromkeys(("quantization", "shape_signature", "sparsity", "variant_tensors"))
    scalar: Tree = {"type": "BOOL", "shape": (), "buffer": buffer, "name": "truth", "has_rank": True}
    graph["tensors"].append({**fields, **scalar, "is_variable": False, "external_buffer": 0})
    return len(graph["tensors"]) - 1


def _never(outer: Tree, operands: tuple[int, ...]) -> Tree:
    """A subgraph that reads the operands and returns a truth value, itself an input of no operator."""
    graph = {**copy.deepcopy(outer), "name": "never", "inputs": operands, "operators": []}
    graph["outputs"] = (_add_truth(graph, 0),)
    graph["tensors"][-1]["is_variable"] = True
    return graph


def _row_of(model: Tree, kind: str) -> int:
    """The index of the operator code of a builtin, which is added if the model has none."""
    code = TFLITE.enum("BuiltinOperator").values[kind]
    row = {"builtin_code": kind, "deprecated_builtin_code": min(code, 127), "custom_code": None, "version": 1}
    if row not in model["operator_codes"]:
        model["operator_codes"].append(row)
    rows: list[Tree] = model["operator_codes"]
    return rows.index(row)


def _operator(row: int, operands: tuple[int, ...], results: tuple[int, ...], union: tuple[str, Tree]) -> Tree:
    later = union[0].startswith("StableHLO")
    fields = dict.fromkeys(("custom_options", "intermediates", "mutating_variable_inputs"))
    return {
        **fields,
        "opcode_index": row,
        "inputs": operands,
        "outputs": results,
        "builtin_options": None if later else union,
        "builtin_options_2": union if later else None,
        "custom_options_format": "FLEXBUFFERS",
        "debug_metadata_index": -1,
        "large_custom_options_offset": 0,
        "large_custom_options_size": 0,
    }


# --- text

STORAGES: Final = """
    i1 i2 i3 i4 i5 i7 i8 i10 i12 i15 i16 i17 i24 i32 i64 i128 u2 u4 u6 u7 u8 u10 u12 u15 u16 u32
""".split()
ELEMENTS: Final = """
    i1 i4 i5 i8 i16 i32 i64 i128 ui8 ui16 si8 f16 bf16 f32 f64 f8E4M3FN index none complex<f32> tensor<i8> !tfl.string
""".split()
_STORAGE = re.compile(r"(?<=!quant\.uniform<)[iu]\d+")
_PLAIN = re.compile(r"(?<=x)(?:i|f|ui|bf)\d+(?=>)")


def _text(rng: random.Random) -> bytes:
    """A model as text, with other element types, all alike or one by one."""
    import tflq
    from tflq.ir.text.printer import print_module

    is_stored = rng.random() < 0.3
    text = rng.choice(TEXTS).read_text(encoding="utf-8") if is_stored else print_module(tflq.read(_case(rng)))
    for _ in range(rng.choice((1, 1, 2))):
        text = rng.choice((_other_storage, _other_storage, _other_element, _other_type, _other_attribute))(text, rng)
    return text.encode()


def _substitute(text: str, pattern: re.Pattern[str], new: str, rng: random.Random) -> str:
    """Puts a word in the place of matches: all that are alike, or one."""
    matches = list(pattern.finditer(text))
    if not matches:
        return text
    chosen = rng.choice(matches)
    alike = [m for m in matches if m[0] == chosen[0]] if rng.random() < 0.7 else [chosen]
    for match in reversed(alike):
        text = text[: match.start()] + new + text[match.end() :]
    return text


def _other_storage(text: str, rng: random.Random) -> str:
    return _substitute(text, _STORAGE, rng.choice(STORAGES), rng)


def _other_element(text: str, rng: random.Random) -> str:
    return _substitute(text, _PLAIN, rng.choice(ELEMENTS), rng)


def _other_type(text: str, rng: random.Random) -> str:
    """Other quantized types in the place of quantized or plain ones: of blocks, of other bounds, of another axis."""
    storage = rng.choice(STORAGES)
    new = rng.choice(
        (
            f"!quant.uniform<{storage}:f32:{{0:1}}, {{{{0.5}}, {{0.25}}}}>",
            f"!quant.uniform<{storage}:f32:{{0:2, 1:1}}, {{{{0.5}}}}>",
            f"!quant.uniform<{storage}<-3:3>:f32, 0.5>",
            f"!quant.uniform<{storage}:f16, 0.5:1>",
            f"!quant.uniform<{storage}:f32:0, {{0.5, 0.25:1}}>",
            f"!quant.any<{storage}:f32>",
            "!quant.calibrated<f32<-1.0:1.0>>",
            rng.choice(ELEMENTS),
        )
    )
    return _substitute(text, re.compile(r"!quant\.uniform<[^>]*>|(?<=x)[if]\d+(?=>)"), new, rng)


def _other_attribute(text: str, rng: random.Random) -> str:
    words = ("-1", "0", "1.5", "true", "unit", '"x"', "[]", "dense<1> : tensor<i32>", "9223372036854775807")
    return _substitute(text, re.compile(r"(?<= = )(?:-?\d+|true|false)(?=[,}])"), rng.choice(words), rng)


def _nested_text(rng: random.Random) -> bytes:
    """Text in which one thing is inside of itself some hundred or thousand times."""
    depth = rng.choice((50, MOST_DEPTH, 1000, 20000))
    opened, closed = rng.choice((("[", "]"), ("{a = ", "}"), ("dense<[", "]>"), ("tuple<", ">"), ("tensor<2x", ">")))
    where = rng.choice(("attribute", "type", "constant", "location"))
    inner = rng.choice(("1", "i32", "", "f32"))
    nested = opened * depth + inner + closed * depth
    if where == "type":
        return f"func.func @main(%a: {nested}) -> i32 {{\n  return %a : i32\n}}\n".encode()
    if where == "attribute":
        return f"module attributes {{tflq.x = {nested}}} {{\n}}\n".encode()
    if where == "location":
        return f"module {{\n}} loc({'callsite(' * depth}unknown at unknown{')' * depth})\n".encode()
    body = f'%0 = "tfl.pseudo_const"() {{value = dense<{nested}> : tensor<1xi32>}} : () -> tensor<1xi32>'
    return f"func.func @main() -> tensor<1xi32> {{\n  {body}\n  return %0 : tensor<1xi32>\n}}\n".encode()


# --- TOSA


def _tosa(rng: random.Random) -> bytes:
    """A model as TOSA, with fields changed."""
    import tflq

    while True:
        try:
            files = tflq.convert(_case(rng), format="tosa", batch=2).files
        except TflqError:
            continue
        data = next(iter(files.values()))
        return mutate_fields(data, rng) if rng.random() < 0.9 else data
