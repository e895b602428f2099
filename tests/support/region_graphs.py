"""Hand-made graphs of logical kernels, as text, and a target for them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Final

from tflq.dialects.regions import Region, Rescale
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.print_types import type_text
from tflq.ir.types import BareType, ElementType

A, B, C = "!quant.uniform<i8:f32, 0.5:-3>", "!quant.uniform<i8:f32, 2.0:7>", "!quant.uniform<i8:f32, 0.25>"
KERNELS: Final = """
[target]
name = "example"

[kernels]
relu = "qi8 -> qi8; same_scale"
relu6 = "qi8 -> qi8; same_scale"
tanh = "qi8 -> qi8"
logistic = "qi8 -> qi8; fixed_scale 0.00390625 -128"
softmax = "qi8 -> qi8; fixed_scale 0.00390625 -128"
add = "qi8 qi8 -> qi8"
maximum = ["qi8 qi8 -> qi8; same_scale", "qi16:0 qi16:0 -> qi16:0; same_scale"]
average_pool_2d = "qi8 -> qi8; same_scale"
reshape = "qi8 plain -> qi8; same_scale"
concatenation = "qi8* -> qi8; same_scale"
split = "plain qi8 -> qi8*; same_scale"
fully_connected = "qi8 qi8:0 qi32:0? -> qi8; multiplier_accumulator_scale"
mul = "q q -> q"
"""


def region(results: str, kernel: str, operands: str, inputs: str, outputs: str, attributes: str = "") -> str:
    """A region of one op on tensors of 4 reals: `operands` and `results` such as "%a, %b"."""
    names, made = operands.split(", "), results.split(", ")
    types, out = (", ".join(["tensor<4xf32>"] * len(side)) for side in (names, made))
    tag = made[0][1:]
    inner = [f"%x{i}{tag}" for i in range(len(names))]
    arguments = ", ".join(f"{name}: tensor<4xf32>" for name in inner)
    returned = ", ".join(f"%z{i}{tag}" for i in range(len(made)))
    result = "({})" if len(made) > 1 else "{}"
    return f"""{results} = "quant.region"({operands}) ({{
    ^bb0({arguments}):
      {returned} = "tfl.{kernel}"({", ".join(inner)}) {attributes}: ({types}) -> {result.format(out)}
      "quant.return"({returned}) : ({out}) -> ()
  }}) {{input_specs = [{inputs}], output_specs = [{outputs}], kernel = "{kernel}"}}
      : ({types}) -> {result.format(out)}"""


def text(ops: Sequence[str], results: str = "%r", arguments: str = "%a, %b", size: int = 4) -> str:
    """A function @f of ops on tensors of 4 reals; `size`: of the results."""
    given = ", ".join(f"{name}: tensor<4xf32>" for name in arguments.split(", "))
    types = ", ".join([f"tensor<{size}xf32>"] * len(results.split(", ")))
    body = "\n  ".join(ops)
    return f"func.func @f({given}) -> ({types}) {{\n  {body}\n  return {results} : {types}\n}}"


def specs(op: Region) -> list[str]:
    """The specs of a region's ports, inputs first."""
    return [shown(spec) for spec in (*op.input_specs, *op.output_specs)]


def shown(spec: ElementType) -> str:
    return type_text(BareType.of(spec))


def rescales(module: Module) -> list[tuple[str, str]]:
    """What each `quant.rescale` of the main function is from and to, in order."""
    return [(shown(op.source), shown(op.target)) for op in module.main.ops if isinstance(op, Rescale)]


def reordered(function: Function, generator: random.Random | None = None) -> None:
    """Puts the ops into another topological order, drawn; without a generator into the one that the results alone
    give, for comparing."""
    if generator is None:
        function.ops = _from_results(function)
        return
    made: list[Op] = []
    known: set[Value] = set(function.inputs)
    waiting = list(function.ops)
    while waiting:
        ready = [op for op in waiting if all(v is None or v.producer is None or v in known for v in op.operands)]
        op = generator.choice(ready)
        waiting.remove(op)
        known.update(op.results)
        made.append(op)
    function.ops = made


def _from_results(function: Function) -> list[Op]:
    made: dict[Op, None] = {}

    def visit(op: Op | None) -> None:
        if op is None or op in made:
            return
        for value in op.operands:
            visit(None if value is None else value.producer)
        made[op] = None

    for value in function.outputs:
        visit(value.producer)
    said: dict[Op, str] = {}
    inputs = {value: str(place) for place, value in enumerate(function.inputs)}
    for op in function.ops:
        needed = [inputs.get(v) or said.get(v.producer) for v in op.operands if v is not None]  # type: ignore[arg-type]
        said[op] = hashlib.sha256(f"{op.name} {list(op.attributes.items())} {needed}".encode()).hexdigest()
    for op in sorted(function.ops, key=lambda op: (isinstance(op, Rescale), said[op])):
        visit(op)
    return list(made)
