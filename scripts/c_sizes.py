"""Write the table of docs/guide/c.md: bytes of code, constants, arena and state of networks in C.

    python scripts/c_sizes.py [MODEL.tflite ...] [--cc "gcc -Os"]

Without models it takes networks of models/ and, where they are, some of the zoo (in `TFLQ_CORPUS`, or in `shared` next
to the checkout). Code is what `size` calls text, without the constants that tflq counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from scripts.marked import replaced  # noqa: E402
from tflq.formats.c.program import program_of  # noqa: E402

PAGE: Final = ROOT / "docs" / "guide" / "c.md"
MODELS: Final = ("cnn_int8", "cnn_uint8", "cnn_int16x8", "two_signatures", "log_softmax", "l2_normalization")
ZOO: Final = (
    *("tflite-micro/hello_world_int8", "tflite-micro/micro_speech_quantized", "tflite-micro/keyword_scrambled"),
    *("tflite-micro/person_detect", "tiny/kws_ref_model", "tiny/pretrainedResnet_large_int8", "tiny/vww_96_int8"),
    *("tiny/model_ToyCar_quant_fullint", "test_data/keras_lstm_mnist_ptq", "test_data/mobilenet_v1_0.25_128_quant"),
)


def row(model: Path, compiler: list[str]) -> str:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "net.c")
        program = program_of(tflq.convert(model, source, choices={"data": "inline"}).module)
        object_file = source.with_suffix(".o")
        subprocess.run([*compiler, "-std=c99", "-c", source, "-o", object_file], check=True)
        printed = subprocess.run(["size", object_file], capture_output=True, text=True, check=True).stdout
    text, size = int(printed.splitlines()[1].split()[0]), model.stat().st_size
    code = text - program.constant_bytes
    cells = [size, code, program.constant_bytes, program.arena_bytes, program.state_bytes]
    return f"| {model.stem} | {' | '.join(f'{cell:,}' for cell in cells)} | {text / size:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--cc", default="gcc -Os")
    options = parser.parse_args()
    corpus = Path(os.environ.get("TFLQ_CORPUS", ROOT.parent / "shared"))
    usual = [*(ROOT / "models" / f"{name}.tflite" for name in MODELS), *(corpus / "zoo" / f"{n}.tflite" for n in ZOO)]
    models = options.models or [path for path in usual if path.exists()]
    head = "| network | .tflite | code | constants | arena | state | flash / .tflite |\n|---|---|---|---|---|---|---|"
    table = "\n".join([head, *(row(model, options.cc.split()) for model in models)])
    print(table)
    if not options.models:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), "sizes", f"{table}\n"), encoding="utf-8")


if __name__ == "__main__":
    main()
