"""Conversion speed and memory beside `tosa-converter-for-tflite --bytecode`, in one run.

    python benchmarks/convert_speed.py MODEL.tflite ... [--format tflite|tosa|mlir] [--large MEGABYTES]

Whole process (wall time, peak memory) and in process (after a warm-up) for each model given and for a fully connected
int8 model of `--large` MB that is made here (0: leave it out). The peer writes bytecode, or text beside our text. Needs
`pip install '.[bench]'`; without the peer, only our own figures.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import Figure, in_process, whole_process

from tflq import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i32


def fully_connected(megabytes: int) -> Module:
    """One int8 FULLY_CONNECTED with square weights of about `megabytes` MB, random from seed 0."""
    size = int((megabytes * 1e6) ** 0.5) // 16 * 16
    rng = np.random.default_rng(0)
    weights = constant(rng.integers(-127, 128, (size, size), np.int8), name="weights")
    weights.type = TensorType((size, size), UniformQuantizedType.of(i8, 0.004))
    bias = constant(rng.integers(-1000, 1000, size, np.int32), name="bias")
    bias.type = TensorType((size,), UniformQuantizedType.of(i32, 0.02 * 0.004))
    x = Value(TensorType((1, size), UniformQuantizedType.of(i8, 0.02, -3)), "input")
    y = Value(TensorType((1, size), UniformQuantizedType.of(i8, 0.9, 5)), "output")
    options = {
        "fused_activation_function": "NONE",
        "weights_format": "DEFAULT",
        "keep_num_dims": False,
        "asymmetric_quantize_inputs": False,
        "quantized_bias_type": "FLOAT32",
    }
    op = Op("tfl.fully_connected", [x, weights, bias], [y], options, info={"version": 4})
    return Module([Function("main", [x], [y], [op])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--format", choices=["tflite", "tosa", "mlir"], default="tflite")
    parser.add_argument("--large", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--make", type=Path, help="only write the large model to this path")
    arguments = parser.parse_args()
    if arguments.make:
        write(fully_connected(arguments.large), arguments.make)
        return
    with tempfile.TemporaryDirectory() as folder:
        models = list(arguments.models)
        if arguments.large:
            large = Path(folder) / f"fully_connected_{arguments.large}MB.tflite"
            # in a process of its own: a child's peak memory counts from its parent's size
            subprocess.run(
                [sys.executable, __file__, "--make", str(large), "--large", str(arguments.large)], check=True
            )
            models.append(large)
        version = whole_process([sys.executable, "-m", "tflq", "--version"], arguments.repeat)
        print(f"tflq --version: {version}")
        print(f"{'model':44} {'MB':>6}  {'tflq, process':>20} {'peer, process':>20}", end="")
        print(f" {'tflq, in':>9} {'peer, in':>9} {'in ratio':>8}")
        for model in models:
            print(_row(model, Path(folder), arguments.format, arguments.repeat), flush=True)


def _row(model: Path, folder: Path, format: str, repeat: int) -> str:
    out, size = folder / f"out.{format}", model.stat().st_size
    repeat = repeat if size < 1e8 else 3
    ours = whole_process([sys.executable, "-m", "tflq", "convert", str(model), str(out), "--force"], repeat)
    inside = in_process("import tflq", f"tflq.convert({str(model)!r}, {str(out)!r}, force=True)", repeat)
    row = f"{model.name[:44]:44} {size / 1e6:6.1f}  {ours!s:>20} "
    peer = shutil.which("tosa-converter-for-tflite", path=str(Path(sys.executable).parent)) or shutil.which(
        "tosa-converter-for-tflite"
    )
    if peer is None:
        return row + f"{'not installed':>20} {inside:9.3f}"
    kind = "--text" if format == "mlir" else "--bytecode"
    theirs: Figure = whole_process([peer, kind, str(model), "-o", str(folder / "peer")], repeat)
    text = ", t.TosaConverterOutputFormat.Text" if format == "mlir" else ""
    call = f"t.tflite_flatbuffer_to_tosa_mlir({str(model)!r}, {str(folder / 'peer')!r}{text})"
    peer_inside = in_process("import tosa_converter_for_tflite as t", call, repeat)
    return row + f"{theirs!s:>20} {inside:9.3f} {peer_inside:9.3f} {inside / peer_inside:8.2f}"


if __name__ == "__main__":
    main()
