"""Measures what ops of the integer form cost as builtins on this machine: python benchmarks/kernel_costs.py [OUT.json]

Each op that `rules/costs.json` lists is lowered by itself and run in the interpreter, with optimized kernels, without
delegate and on one thread; nanoseconds per element, the median of several sizes. Prints the figures beside those of the
file, and writes a file like it, which takes its place: `python benchmarks/kernel_costs.py rules/costs.json`. Needs
`pip install '.[verify]'`, and a machine that does nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from claims import machine
from run_time import interpreter

import tflq
from tflq.dialects.builder import Builder
from tflq.dialects.quant import RescaleF64, RoundingDivideByPot, Table2D
from tflq.formats.options import Options
from tflq.formats.tflite.backend import to_kernels
from tflq.formats.tflite.lowering.cost import Costs, costs, load_costs
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, i1, i8, i32
from tflq.numerics.fixed_point import Multiplier
from tflq.transforms.pass_manager import Pipeline

SIZES: Final = (200_000, 400_000, 1_200_000)
REPEAT: Final = 9
PART: Final = Multiplier(1431655765, -8)
SEVERAL: Final = Multiplier(1431655765, 3)
ACCUMULATED: Final = (-(1 << 20), 1 << 20)
RESCALES: Final = ("to_8_bits", "wide", "moved")
Made = Callable[[Builder, Value, Value], Value]
"""Makes one op of two operands, of which it may leave the second out."""


def scaled(to: ScalarType, multiplier: Multiplier, zero: int = 3) -> Made:
    """RESCALE of what an accumulator holds."""
    return lambda b, x, _: b.rescale(x, multiplier, to, output_zp=zero, input_range=ACCUMULATED)


def looked_up(b: Builder, x: Value, y: Value, *, both: bool) -> Value:
    """A table of one or two 8-bit tensors."""
    entries = constant(np.random.default_rng(0).integers(-128, 128, 1 << (16 if both else 8), np.int8))
    result = Value(x.type)
    kind, operands = (Table2D.op_name, [x, y, entries]) if both else ("tosa.table", [x, entries])
    b.ops.append(Op(kind, operands, [result], {}))
    return result


def with_number(kind: str, number: int, element: ScalarType = i32) -> Made:
    """An op of a tensor and one number, as requantizing has it."""

    def make(b: Builder, x: Value, _: Value) -> Value:
        result = Value(x.type.with_element(element))
        attributes = {"round": False} if kind == "tosa.arithmetic_right_shift" else {}
        b.ops.append(Op(kind, [x, constant(np.asarray(number, np.int32))], [result], attributes))
        return result

    return make


def selected(b: Builder, x: Value, y: Value) -> Value:
    """SELECT by the sign of x; the comparison is measured by itself and taken off."""
    return b.select(b.greater(x, constant(np.asarray(1, np.int32))), x, y)


WIDE: Final[Mapping[str, Made]] = {
    "tosa.cast": lambda b, x, _: b.cast(x, i8),
    "tosa.add": lambda b, x, y: b.add(x, y),
    "tosa.sub": lambda b, x, y: b.sub(x, y),
    "tosa.mul": lambda b, x, y: b.mul(x, y),
    "tosa.maximum": with_number("tosa.maximum", -100),
    "tosa.minimum": with_number("tosa.minimum", 100),
    "tosa.equal": with_number("tosa.equal", 1, i1),
    "tosa.greater": with_number("tosa.greater", 1, i1),
    "tosa.greater_equal": with_number("tosa.greater_equal", 1, i1),
    "tosa.arithmetic_right_shift": with_number("tosa.arithmetic_right_shift", 3),
    "tosa.logical_left_shift": with_number("tosa.logical_left_shift", 3),
    "tosa.intdiv": with_number("tosa.intdiv", 7),
    "to_8_bits": scaled(i8, PART),
    "wide": scaled(i32, SEVERAL, 0),
}
"""Ops on int32."""
BYTES: Final[Mapping[str, Made]] = {
    "tosa.identity": lambda b, x, _: b.identity(x),
    "tosa.clamp": lambda b, x, _: b.clamp(x, -100, 100),
    "tosa.table": lambda b, x, y: looked_up(b, x, y, both=False),
    Table2D.op_name: lambda b, x, y: looked_up(b, x, y, both=True),
    "moved": lambda b, x, _: b.rescale(x, Multiplier(1 << 30, 1), i32, input_zp=3),
}
"""Ops on int8."""
DERIVED: Final = {RescaleF64.op_name: "to_8_bits", RoundingDivideByPot.op_name: "wide"}
"""Ops that are lowered as others are."""


def model(make: Made, element: ScalarType, size: int) -> bytes:
    """The file of one op on tensors of so many elements."""
    x, y = (Value(TensorType((1, size // 100, 100), element), name) for name in "xy")
    b = Builder()
    output = make(b, x, y)
    output.name = "output"
    read = [v for v in (x, y) if any(v in op.operands for op in b.ops)]
    module = Module([Function("main", read, [output], b.ops)])
    passes = [item for item in to_kernels(Options(), "tosa") if item.name not in ("tabulate", "check-legality")]
    return bytes(tflq.write(Pipeline(passes, "integer").run(module).module))


def nanoseconds(make: Made, element: ScalarType) -> float:
    """What an op takes for each element."""
    found = []
    for size in SIZES:
        runner = interpreter(model(make, element, size))
        for detail in runner.get_input_details():
            if element is i32:
                values = np.random.default_rng(0).integers(*ACCUMULATED, detail["shape"], np.int32)
                runner.set_tensor(detail["index"], values)
        times = []
        for _ in range(REPEAT):
            start = time.thread_time_ns()
            runner.invoke()
            times.append(time.thread_time_ns() - start)
        found.append(statistics.median(times) / size)
    return statistics.median(found)


def measured() -> dict[str, float]:
    """All figures."""
    found = {name: nanoseconds(make, i32) for name, make in WIDE.items()}
    found |= {name: nanoseconds(make, i8) for name, make in BYTES.items()}
    found["tosa.select"] = max(nanoseconds(selected, i32) - found["tosa.greater"], 0.01)
    return found | {name: found[other] for name, other in DERIVED.items()}


def text(found: Mapping[str, float], known: Costs) -> str:
    """A file like `rules/costs.json`."""
    sections = {"elementwise": [kind.name for kind in known.elementwise], "rescale": RESCALES}
    figures = {section: {name: float(f"{found[name]:.3g}") for name in names} for section, names in sections.items()}
    return json.dumps({"machine": machine(), "date": f"{datetime.now(UTC):%Y-%m-%d}", **figures}, indent=1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path)
    arguments = parser.parse_args()
    known = costs()
    before = {kind.name: figure for kind, figure in known.elementwise.items()}
    before |= {key: getattr(known, key) for key in RESCALES}
    found = measured()
    print(f"{'op':28} {'listed':>7} {'here':>7}   nanoseconds per element")
    for name, figure in before.items():
        print(f"{name:28} {figure:7.2f} {found[name]:7.2f}")
    if arguments.out is not None:
        arguments.out.write_text(text(found, known), encoding="utf-8")
        load_costs(arguments.out)


if __name__ == "__main__":
    main()
