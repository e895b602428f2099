"""Models of any size, of each way in which a small file can have many parts: results of one operator, readers of one
tensor, chains, signatures, functions, variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from support.handmade import Fields, code, data, model, operator, tensor

SHAPE = (1, 4)
ADD: Final = code("ADD", 0, 2)


def quantized(name: str, shape: tuple[int, ...] = SHAPE, scale: float = 0.1, type: str = "INT8", **more: Any) -> Fields:
    """A quantized tensor."""
    return tensor(name, shape, type, quantization={"scale": (scale,), "zero_point": (0,)}, **more)


def add(inputs: tuple[int, ...], output: int, row: int = 0) -> Fields:
    return operator(inputs, (output,), row, builtin_options=("AddOptions", {}))


def int32(*numbers: int) -> Fields:
    return {"data": np.array(numbers, np.int32).view(np.uint8)}


def split(count: int, type: str = "INT8") -> bytes:
    """One SPLIT of many results."""
    parts = [quantized(f"y{i}", (1, 1), type=type) for i in range(count)]
    options: Any = ("SplitOptions", {"num_splits": count})
    return model(
        [code("SPLIT", 49, 2)],
        [tensor("axis", (1,), "INT32", buffer=1), quantized("x", (1, count), type=type), *parts],
        [operator((0, 1), tuple(range(2, count + 2)), builtin_options=options)],
        (1,),
        tuple(range(2, count + 2)),
        (int32(1),),
    )


def unpack(count: int) -> bytes:
    """One UNPACK of many results, each added to the next."""
    parts = [quantized(f"u{i}", (4,)) for i in range(count)]
    sums = [quantized(f"y{i}", (4,), 0.2) for i in range(count)]
    options: Any = ("UnpackOptions", {"num": count, "axis": 0})
    operators = [operator((0,), tuple(range(1, count + 1)), builtin_options=options)]
    operators += [add((1 + i, 1 + (i + 1) % count), 1 + count + i, 1) for i in range(count)]
    outputs = tuple(range(count + 1, 2 * count + 1))
    return model([code("UNPACK", 88, 2), ADD], [quantized("x", (count, 4)), *parts, *sums], operators, (0,), outputs)


def readers(count: int) -> bytes:
    """Many readers of one tensor, each with an output."""
    results = [quantized(f"y{i}", scale=0.2) for i in range(count)]
    operators = [add((0, 0), i + 1) for i in range(count)]
    return model([ADD], [quantized("x"), *results], operators, (0,), tuple(range(1, count + 1)))


def lookups(count: int) -> bytes:
    """Many LOGISTIC of one tensor, each with an output."""
    results = [quantized(f"y{i}", scale=1 / 256) for i in range(count)]
    operators = [operator((0,), (i + 1,)) for i in range(count)]
    return model([code("LOGISTIC", 14, 2)], [quantized("x"), *results], operators, (0,), tuple(range(1, count + 1)))


def early(count: int) -> bytes:
    """Many outputs before an operator whose result has a size that only a run knows."""
    results = [quantized(f"y{i}", scale=0.2) for i in range(count)]
    last = [tensor("sizes", (2,), "INT32"), quantized("z", ())]
    operators = [add((0, 0), i + 2) for i in range(count)]
    operators.append(operator((0, count + 2), (count + 3,), 1, builtin_options=("ReshapeOptions", {})))
    tensors = [quantized("x"), tensor("unused", (1,)), *results, *last]
    outputs = (*range(2, count + 2), count + 3)
    return model([ADD, code("RESHAPE", 22)], tensors, operators, (0, count + 2), outputs)


def chain(count: int, *, scale: float = 0.1, type: str = "INT8") -> bytes:
    """x + x₀, over and over."""
    tensors = [quantized(f"x{i}", scale=scale, type=type) for i in range(count + 1)]
    return model([ADD], tensors, [add((i, 0), i + 1) for i in range(count)], (0,), (count,))


def unnamed_chain(count: int) -> bytes:
    """As `chain`, of tensors without names."""
    tensors = [{**quantized("x"), "name": f"x{i}" if i in (0, count) else None} for i in range(count + 1)]
    return model([ADD], tensors, [add((i, 0), i + 1) for i in range(count)], (0,), (count,))


def activations(count: int) -> bytes:
    """LOGISTIC, over and over."""
    tensors = [quantized(f"x{i}", scale=1 / 256 if i else 0.1) for i in range(count + 1)]
    operators = [operator((i,), (i + 1,)) for i in range(count)]
    return model([code("LOGISTIC", 14, 2)], tensors, operators, (0,), (count,))


def reshapes(count: int) -> bytes:
    """RESHAPE to another shape and back, over and over."""
    shapes = [(1, 4), (4, 1)]
    tensors = [quantized(f"x{i}", shapes[i % 2]) for i in range(count + 1)]
    tensors += [tensor("there", (2,), "INT32", buffer=1), tensor("back", (2,), "INT32", buffer=2)]
    operators = [operator((i, count + 2 - (i + 1) % 2), (i + 1,)) for i in range(count)]
    return model([code("RESHAPE", 22)], tensors, operators, (0,), (count,), (int32(4, 1), int32(1, 4)))


def diamonds(count: int) -> bytes:
    """x + x, over and over: as many ways through it as there are powers of two."""
    tensors = [quantized(f"x{i}", scale=0.1) for i in range(count + 1)]
    return model([ADD], tensors, [add((i, i), i + 1) for i in range(count)], (0,), (count,))


def fibonacci(count: int) -> bytes:
    """xᵢ + xᵢ₊₁, over and over, of two inputs."""
    tensors = [quantized(f"x{i}", scale=0.1) for i in range(count + 2)]
    return model([ADD], tensors, [add((i, i + 1), i + 2) for i in range(count)], (0, 1), (count + 1,))


def concatenation(count: int) -> bytes:
    """One CONCATENATION of many inputs under different scales."""
    tensors = [quantized(f"x{i}", (1, 1), 0.1 + (i % 7) / 70) for i in range(count)]
    options: Any = ("ConcatenationOptions", {"axis": 1})
    operators = [operator(tuple(range(count)), (count,), builtin_options=options)]
    tensors.append(quantized("y", (1, count)))
    return model([code("CONCATENATION", 2, 2)], tensors, operators, tuple(range(count)), (count,))


def pack(count: int) -> bytes:
    """One PACK of many inputs."""
    options: Any = ("PackOptions", {"values_count": count, "axis": 0})
    operators = [operator(tuple(range(count)), (count,), builtin_options=options)]
    tensors = [*(quantized(f"x{i}", (4,)) for i in range(count)), quantized("y", (count, 4))]
    return model([code("PACK", 83, 2)], tensors, operators, tuple(range(count)), (count,))


def constants(count: int) -> bytes:
    """A chain of additions, each of a constant of its own."""
    tensors = [quantized(f"x{i}", scale=0.1 + (i % 8) / 50) for i in range(count + 1)]
    tensors += [quantized(f"c{i}", buffer=i + 1) for i in range(count)]
    operators = [add((i, count + 1 + i), i + 1) for i in range(count)]
    return model(
        [ADD],
        tensors,
        operators,
        (0,),
        (count,),
        tuple(data(*(i >> s & 127 for s in (0, 1, 2, 7))) for i in range(count)),
    )


def signatures(count: int) -> bytes:
    """Many signatures of one function."""
    entries = [
        {
            "signature_key": f"s{i}",
            "inputs": [{"name": "x", "tensor_index": 0}],
            "outputs": [{"name": "y", "tensor_index": 1}],
        }
        for i in range(count)
    ]
    return model([ADD], [quantized("x"), quantized("y", scale=0.2)], [add((0, 0), 1)], signature_defs=entries)


def _entry(count: int, tensors: list[Fields], operators: list[Fields], codes: list[Fields]) -> bytes:
    """Functions that are alike, each with a signature of its own."""
    graph: Fields = {"tensors": tensors, "inputs": (0,), "outputs": (1,), "operators": operators}
    sides: Fields = {"inputs": [{"name": "x", "tensor_index": 0}], "outputs": [{"name": "y", "tensor_index": 1}]}
    entries = [{"signature_key": f"s{i}", **sides, "subgraph_index": i} for i in range(count)]
    others = tuple({**graph, "name": f"f{i}"} for i in range(1, count))
    return model(codes, tensors, operators, subgraphs=others, signature_defs=entries)


def functions(count: int) -> bytes:
    """Many functions of one addition, each with a signature of its own."""
    return _entry(count, [quantized("x"), quantized("y", scale=0.2)], [add((0, 0), 1)], [ADD])


def moving_functions(count: int) -> bytes:
    """As `functions`, each only moves its input."""
    operators = [operator((0,), (1,), builtin_options=("ReshapeOptions", {"new_shape": (4, 1)}))]
    return _entry(count, [quantized("x"), quantized("y", (4, 1))], operators, [code("RESHAPE", 22)])


def casts(count: int) -> bytes:
    """QUANTIZE to the parameters that a tensor has, over and over."""
    tensors = [quantized(f"x{i}") for i in range(count + 1)]
    operators = [operator((i,), (i + 1,), builtin_options=("QuantizeOptions", {})) for i in range(count)]
    return model([code("QUANTIZE", 114, 2)], tensors, operators, (0,), (count,))


def branches(count: int) -> bytes:
    """Many IF, each of the same two functions."""
    tensors = [quantized("x"), quantized("y")]
    graph: Fields = {"tensors": tensors, "inputs": (0,), "outputs": (1,), "operators": [add((0, 0), 1, 1)]}
    options: Any = ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2})
    tensors = [tensor("c", (1,), "BOOL"), *(quantized(f"x{i}") for i in range(count + 1))]
    operators = [operator((0, i + 1), (i + 2,), builtin_options=options) for i in range(count)]
    others = tuple({**graph, "name": name} for name in ("then", "else"))
    return model([code("IF", 118), ADD], tensors, operators, (0, 1), (count + 1,), subgraphs=others)


def variables(count: int) -> bytes:
    """Many variables, each assigned and read."""
    tensors = [quantized("x")]
    operators: list[Fields] = []
    for i in range(count):
        at = len(tensors)
        tensors += [tensor(f"h{i}", (1,), "RESOURCE"), quantized(f"r{i}"), quantized(f"y{i}", scale=0.2)]
        operators += [
            operator((), (at,), 0, builtin_options=("VarHandleOptions", {"container": "", "shared_name": f"v{i}"})),
            operator((at,), (at + 1,), 1, builtin_options=("ReadVariableOptions", {})),
            add((0, at + 1), at + 2, 3),
            operator((at, 0), (), 2, builtin_options=("AssignVariableOptions", {})),
        ]
    outputs = tuple(range(3, len(tensors), 3))
    codes = [code("VAR_HANDLE", 142), code("READ_VARIABLE", 143), code("ASSIGN_VARIABLE", 144), ADD]
    return model(codes, tensors, operators, (0,), outputs)


def accesses(count: int) -> bytes:
    """One variable that is read and assigned many times."""
    tensors = [quantized("x"), tensor("h", (1,), "RESOURCE")]
    operators = [operator((), (1,), 0, builtin_options=("VarHandleOptions", {"container": "", "shared_name": "v"}))]
    for i in range(count):
        at = len(tensors)
        tensors += [quantized(f"r{i}"), quantized(f"y{i}", scale=0.1)]
        operators += [
            operator((1,), (at,), 1, builtin_options=("ReadVariableOptions", {})),
            add((0, at), at + 1, 3),
            operator((1, at + 1), (), 2, builtin_options=("AssignVariableOptions", {})),
        ]
    codes = [code("VAR_HANDLE", 142), code("READ_VARIABLE", 143), code("ASSIGN_VARIABLE", 144), ADD]
    return model(codes, tensors, operators, (0,), (len(tensors) - 1,))


def unused(count: int) -> bytes:
    """Many operators whose results nothing needs, and unused tensors."""
    results = [quantized(f"y{i}", scale=0.2) for i in range(count)]
    spare = [quantized(f"t{i}") for i in range(count)]
    operators = [add((0, 0), i + 1) for i in range(count)]
    return model([ADD], [quantized("x"), *results, *spare], operators, (0,), (1,))


def fully_connected(count: int) -> bytes:
    """A chain of FULLY_CONNECTED of one set of weights."""
    weights = [
        quantized("w", (4, 4), buffer=1),
        tensor("b", (4,), "INT32", buffer=2, quantization={"scale": (0.01,), "zero_point": (0,)}),
    ]
    tensors = [*weights, *(quantized(f"x{i}") for i in range(count + 1))]
    options: Any = ("FullyConnectedOptions", {})
    operators = [operator((i + 2, 0, 1), (i + 3,), builtin_options=options) for i in range(count)]
    buffers = (data(*range(16)), int32(1, 2, 3, 4))
    return model([code("FULLY_CONNECTED", 9, 4)], tensors, operators, (2,), (count + 2,), buffers)


_FUNCTIONS = (
    *(split, unpack, readers, lookups, early, chain, unnamed_chain, activations, reshapes, diamonds, fibonacci),
    *(concatenation, pack, constants, signatures, functions, moving_functions, casts, branches, variables, accesses),
    *(unused, fully_connected),
)
GROWING: Final[dict[str, Callable[[int], bytes]]] = {f.__name__: f for f in _FUNCTIONS}
"""Makes each kind of model, of a size."""
