"""Conversions of models whose stated shapes were changed: casts, calls, every way of converting.

`scripts/stated_shapes.py` draws such models at random; some of its mutants are examined here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare

import tflq
from scripts import stated_shapes as drawing
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, Shape, TensorType, UniformQuantizedType, f32, i1, i8, i16, i32, i64, ui8

ROOT = Path(__file__).resolve().parents[1]
COUNT = 80
Q, R = UniformQuantizedType.of(i8, 0.0625, 3), UniformQuantizedType.of(i8, 0.125, -5)
WAYS: list[dict[str, Any]] = [
    *({}, {"target": "kernels"}, {"mac": "float32"}, {"target": str(ROOT / "rules" / "npu_example.toml")}),
    *({"semantics": "real"}, {"state": "variables"}),
]
SHAPES: list[tuple[Shape, Shape]] = [
    ((None, None, 4), (None, None, None)),
    ((None, None, None), (None, None, 4)),
    ((None, 2, None), (3, None, 4)),
    ((3, 2, 4), None),
    ((None, 2, 4), None),
    (None, (3, 2, 4)),
    (None, None),
    ((3, 2, 4), (1, 1, 1)),
    ((0, 2, 4), (None, 2, 4)),
    ((), None),
]
CASTS: list[tuple[str, ElementType, ElementType]] = [
    ("dequantize", Q, f32),
    ("quantize", f32, Q),
    ("quantize", Q, R),
    ("quantize", Q, UniformQuantizedType.of(ui8, 0.0625, 131)),
    ("quantize", UniformQuantizedType.of(i16, 0.01), Q),
    ("cast", i32, f32),
    ("relu", Q, Q),
    ("tanh", Q, UniformQuantizedType.of(i8, 1 / 128)),
]


def _model(ops: list[Op], x: Value, *functions: Function) -> bytes:
    return bytes(write(Module([Function("main", [x], [ops[-1].result], ops), *functions])))


def _size(shape: Shape) -> tuple[int, ...]:
    return () if shape is None else tuple(3 if d is None else d for d in shape)


def _data(shape: tuple[int, ...], element: ElementType) -> np.ndarray:
    rng = np.random.default_rng(0)
    if not isinstance(element, UniformQuantizedType):
        return rng.normal(0, 4, shape).astype(element.dtype)  # type: ignore[union-attr]
    return rng.integers(-100, 100, shape).astype(element.storage.dtype)


@pytest.mark.parametrize(("given", "said"), SHAPES, ids=[f"{g} {s}" for g, s in SHAPES])
@pytest.mark.parametrize(("name", "source", "target"), CASTS, ids=[f"{c[0]} {i}" for i, c in enumerate(CASTS)])
def test_casts(name: str, source: ElementType, target: ElementType, given: Shape, said: Shape) -> None:
    """Alone, and with the result as an operand of another operator: what the file says of the result does not count."""
    x = Value(TensorType(given, source), "x")
    y, z = Value(TensorType(said, target), "y"), Value(TensorType(given, target), "z")
    info = {"version": 2 if name == "quantize" else 1}
    op = Op(f"tfl.{name}", [x], [y], {}, info=info)
    after = Op("tfl.neg" if target in (f32, i32) else "tfl.relu", [y], [z], {})
    fits = given is None or said is None or len(given) == len(said)
    for ops in ([op], [op, after]):
        try:
            file = _model(ops, x)
            tflq.read(file)
        except tflq.InvalidModelError:  # stated shapes that contradict each other
            assert fits
            assert said == (1, 1, 1)
            continue
        batches = [[_data(_size(given), source)]]
        for way in WAYS:
            if 0 in _size(given):  # the interpreter may stop
                tflq.convert(file, **way)
            else:
                convert_and_compare(file, batches, **way)


@pytest.mark.parametrize("way", WAYS, ids=map(str, WAYS))
def test_a_cast_in_the_body_of_a_loop(way: dict[str, Any]) -> None:
    """DEQUANTIZE of ?x?x4 to what is stated as ?x?x?, which the loop carries."""
    n, x = argument((), i32, "n"), argument((None, None, None), f32, "x")
    test, body = [argument((), i32, name) for name in "ab"], argument((None, None, None), f32, "v")
    held = argument((None, None, None), f32, "u")
    short = Value(TensorType((), i1), "short")
    condition = Function(
        "cond", [test[0], held], [short], [Op("tfl.less", [test[0], const(np.asarray(3), i32)], [short], {})]
    )
    q = Value(TensorType((None, None, 4), Q), "q")
    back, more = Value(TensorType((None, None, None), f32), "back"), Value(TensorType((), i32), "more")
    options = {"fused_activation_function": "NONE", "pot_scale_int16": False}
    steps = [
        Op("tfl.quantize", [body], [q], {}),
        Op("tfl.dequantize", [q], [back], {}),
        Op("tfl.add", [test[1], const(np.asarray(1), i32)], [more], options),
    ]
    done = Value(TensorType((), i32), "done"), Value(TensorType((None, None, None), f32), "y")
    loop = Op("tfl.while", [n, x], list(done), {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    main = Function("main", [n, x], list(done), [loop])
    file = bytes(write(Module([main, condition, Function("body", [test[1], body], [more, back], steps)])))
    batches = [[np.asarray(0, np.int32), _data((2, 3, 4), f32)]]
    convert_and_compare(file, batches, **way)


def test_one_in_the_place_of_an_open_batch() -> None:
    """A file may state 1 for what follows from an open batch; the result can be resized all the same."""
    x = argument((None, 4), Q, "x")
    w = const(_data((5, 4), Q), UniformQuantizedType.of(i8, 0.02), "w")
    y = Value(TensorType((1, 5), R), "y")
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    options["asymmetric_quantize_inputs"] = False
    file = _model([Op("tfl.fully_connected", [x, w, None], [y], options, info={"version": 4})], x)
    for way in WAYS:
        for rows in (1, 3):
            convert_and_compare(file, [[_data((rows, 4), Q)]], **way)
    signature = tflq.read(tflq.convert(file).data).main.outputs[0].type.shape
    assert signature == (1, 5)


def test_a_scalar_of_unknown_rank() -> None:
    """As old files have them. TFLite takes it; TOSA has no such tensors, but for the shape that the caller gives."""
    x, y, z = (Value(TensorType(None, Q), name) for name in "xyz")
    options = {"fused_activation_function": "NONE", "pot_scale_int16": False}
    ops = [Op("tfl.relu", [x], [y], {}), Op("tfl.add", [x, y], [z], options, info={"version": 2})]
    file = _model(ops, x)
    convert_and_compare(file, [[np.asarray(v, np.int8)] for v in (-100, 3, 90)])
    for format in ("tosa", "mlir"):
        with pytest.raises(tflq.UnsupportedError, match="input 'x': its rank is not known; give its whole shape"):
            tflq.convert(file, format=format)
        assert tflq.convert(file, format=format, shapes={"x": ()}).data


def test_a_kernel_that_an_open_shape_keeps_from_its_rule_is_warned_of() -> None:
    """REDUCE_WINDOW reduces stored integers; of open shapes tflq computes what the parameters say."""
    x, first, y = argument((None, 4), Q, "x"), argument((), Q, "first"), Value(TensorType((None, 2), R), "y")
    numbers = [const(np.asarray(v, np.int64), i64) for v in ([1, 2], [1, 2], [1, 1])]
    op = Op("tfl.reduce_window", [x, first, *numbers], [y], {"reduce_function": "ADD"})
    file = bytes(write(Module([Function("main", [x, first], [y], [op])])))
    (row,) = tflq.convert(file).report.rows
    assert row.path == "float"
    assert "ignores scales and zero points; tflq computes what the parameters say" in row.warning
    assert not tflq.convert(file, semantics="real").report.warnings


@pytest.mark.slow
def test_mutants_end_well_or_say_why_not() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    outcomes = list(drawing.run(5, range(COUNT), "i8", tuple(drawing.WAYS)))
    assert len(outcomes) == COUNT
    found = [(number, name, what, way, result) for number, name, what, ways in outcomes for way, result in ways.items()]
    assert [f for f in found if f[-1] not in drawing.CLEAN] == []
    assert sum(f[-1] == "equal" for f in found) > COUNT // 2


def test_a_mutant_is_the_same_every_time() -> None:
    loads = list(drawing.seeds("i8").items())
    first, again = ([drawing.draw(loads, 3, number)[2] for number in range(20)] for _ in range(2))
    assert first == again
