"""docs/tour.md: one ADD from bytes to bytes, with the text of the IR after each pass that changed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from scripts.short_text import shortened
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.conversion.convert import convert_with_dump
from tflq.formats.sources import read_any_form
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8

HEAD = """# A tour: one ADD from bytes to bytes

What happens to `sum = RELU(x + y)` on int8 tensors of three scales. Made by `scripts/make_docs.py`, which converts the
model and shows the text of the IR after each pass that changed it, as `tflq convert model.tflite out.tflite --dump-ir
FOLDER` writes it. Locations, and what only concerns the file, are left out here; long constants are shortened.

| tensor | real value |
|---|---|
| `x` | 0.05 (stored - 3) |
| `y` | 0.1 (stored + 7) |
| `sum` | 0.12 (stored - 10) |
"""
READ = """The file is {size} bytes: a flatbuffer, `TFL3` at byte 4. `formats/flatbuffer/structure.py` checks every
offset before anything is decoded. The reader makes one op per operator: an `Add` (`dialects/tfl/arithmetic.py`), whose
operands are `op.lhs` and `op.rhs`. The traits of the declaration check the file: here that all three tensors have
quantization parameters, and that shapes broadcast."""
SAID = {
    "legalize": """\
`tflq/ir/index.py` lists the modules with rules of `Add`: first `legalize/arithmetic.py`, whose rule writes what the
reference kernel computes: `z + m (((x - z1) << 20) m1 + ((y - z2) << 20) m2)`, products by m and m1 rounded twice.
Multipliers and shifts come from `numerics/elementwise.py`. `y` has the larger scale, and its multiplier m2 is
exactly one half: with the shift by 20, `y` is multiplied by 2^19, which rounds nothing. The fused RELU is a clamp
from the zero point of the result up. `quant.scast` stands where the model's quantized tensors meet plain integers.""",
    "tabulate": """What is multiplied by m1 and rounded depends on `x` alone: one table of 256 numbers takes its place.
A table of both operands would have 65,536 entries and take the place of all {ops} ops. It is left out of this result:
tables may make the result of a source below 100 KB at most 20 times as large. `y` needs no table, since a subtraction
and a product are as quick.""",
    "dce": """What nothing reads any more is removed.""",
    "select": """Each op has one lowering to builtins that the interpreter gets right on plain integers
(`rules/integer.json` lists them). A table is a GATHER. The rescale by m with two roundings is a division of integers
whose constants are proven for all sums that `x` and `y` can give: subtractions with RELU limit the sum to that range.
`quant.scast` at the model's inputs and outputs becomes a CAST,
whose kernel copies the stored integers.""",
    "trim-edges": """Kernels that disregard quantization parameters read the inputs and write the outputs directly.""",
    "name-tensors": """The last tensor of an operator keeps its name; the others are named after it, and by what they
are to it: {names}.""",
    "lower-to-tosa": """For TOSA no table of 65,536 entries is made: TOSA's TABLE of 8 bits has 256. The ops of the
integer form are TOSA's already; operands that TOSA wants as constants (shifts, zero points) are attributes here and
become constants when the file is written.""",
}
"""What each pass did here, by its name."""
COMMON = ("legalize",)
"""Passes that both formats have, shown once."""
STORED = np.array([[3, 40, -128, 127]], np.int8), np.array([[-7, 13, 5, 127]], np.int8)


def model() -> bytes:
    """The file: one ADD with RELU."""
    x, y, total = (
        Value(TensorType((1, 4), UniformQuantizedType.of(i8, scale, zero)), name)
        for name, scale, zero in (("x", 0.05, 3), ("y", 0.1, -7), ("sum", 0.12, 10))
    )
    op = Op("tfl.add", [x, y], [total], {"fused_activation_function": "RELU"})
    return bytes(write(Module([Function("main", [x, y], [total], [op])])))


def page() -> str:
    """The page's text."""
    source = model()
    lines = [HEAD, "## Read", "", READ.format(size=len(source)), ""]
    lines += [*passes(source, "tflite"), "## The same for TOSA", "", *passes(source, "tosa")]
    return "\n".join(lines).rstrip() + "\n"


def passes(source: bytes, format: str) -> Iterator[str]:
    """A section for each pass that changed the text of the model, on the way to a format."""
    with TemporaryDirectory() as folder:
        conversion = convert_with_dump(source, format=format, dump_ir=folder)
        texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.mlir"))}
    first = texts.pop("00-read")
    last, ops = shortened(first), 0
    if format == "tflite":
        yield from ("```mlir", last, "```", "")
    for stem, text in texts.items():
        name, short = stem.partition("-")[2], shortened(text)
        names = ", ".join(f"`{value.name}`" for value in read_any_form(text.encode()).main.values() if value.name)
        if short != last and name not in SAID:
            raise ValueError(f"'{name}' changed the model: say how in SAID")
        if name in SAID and (format == "tflite" or name not in COMMON):
            yield from (f"### {name}", "", SAID[name].format(ops=ops, names=names), "")
            if short != last:
                yield from ("```mlir", short, "```", "", evaluated(text), "")
        last, ops = short, text.count('"tosa.') - text.count('"tosa.const"')
    yield f"Passes, in order: {', '.join(f'`{timing.name}`' for timing in conversion.timings)}."
    yield f"The file is {len(conversion.data):,} bytes."
    yield ""


def evaluated(text: str) -> str:
    """What the evaluator computes from the text, and the real result."""
    main = read_any_form(text.encode()).main
    env = evaluate_function(main, dict(zip(main.inputs, STORED, strict=True)))
    x, y, result = (array.ravel().astype(int) for array in (*STORED, env[main.outputs[0]]))
    real = np.maximum(0.05 * (x - 3) + 0.1 * (y + 7), 0) / 0.12 + 10
    shown = ", ".join(f"{value:.2f}" for value in real)
    return f"x = {x.tolist()}, y = {y.tolist()}: evaluated {result.tolist()}, before rounding and clamping [{shown}]."
