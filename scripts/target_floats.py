"""Measure which operators a runtime has on floats, near what the reference kernels give: [floats] of
rules/portable.toml and rules/tflm.toml.

    python scripts/target_floats.py [--check] [--environments FOLDER]

Operators that stay in floats need not be exact, but the runtime must have them. One model of each operator on float32
runs in each runtime of a target, in the environments of measure_target.py. An operator is listed if all runtimes run
all its models, and no element is further from the reference than float kernels may be. With --check nothing is
written, and a difference from the files is exit code 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import numpy as np

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import tflq  # noqa: E402
from scripts.measure_target import MEASURED, MICRO, PORTABLE, settle  # noqa: E402
from scripts.target_running import ENVIRONMENTS, REFERENCE, Job, differing, environment, outcomes  # noqa: E402
from scripts.target_trials import made, plain, whole  # noqa: E402
from tflq.coverage import samples_of_layers as layers  # noqa: E402
from tflq.coverage.samples_of_layers import model_of  # noqa: E402
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv  # noqa: E402
from tflq.dialects.tfl.movement import SpaceToBatchND  # noqa: E402
from tflq.ir.types import f32, i1  # noqa: E402
from tflq.select.lowering import KernelBuilder  # noqa: E402

NEAR: Final = 1e-3
"""The largest difference of an element, on numbers about 1."""
TARGETS: Final = {PORTABLE: MEASURED, MICRO: ["tflm"]}
Model = tuple[str, bytes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the files, and do not write them")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="folder of environments")
    a = parser.parse_args()
    pythons = {tool: environment(tool, a.environments) for tool in MEASURED}
    if None in pythons.values():
        return 2
    every = list(models())
    near = {tool: had(tool, python, every) for tool, python in pythons.items() if python is not None}
    return max(
        settle(path, with_floats(path.read_text(), sorted(set.intersection(*(near[t] for t in tools)))), check=a.check)
        for path, tools in TARGETS.items()
    )


def models() -> Iterator[Model]:
    """Models of one operator on float32, by its name."""
    for name, entry in layers.ENTRIES.items():
        sides = [sum(isinstance(slot, tuple) for slot in side) for side in (entry.operands, entry.results)]
        yield name, model_of(name, entry, [f32] * sides[0], [f32] * sides[1])
    yield from weighted()


def weighted() -> Iterator[Model]:
    """Layers with and without biases and activations; blocks as batches, padded."""
    x, rows = plain(f32, (1, 9, 8, 6)), plain(f32, (3, 64))
    for activation in ("NONE", "RELU", "RELU6"):
        fused = {"fused_activation_function": activation}

        def dense(k: KernelBuilder, v, fused=fused, biased=True):  # type: ignore[no-untyped-def]
            bias = [whole(k, 9)] if biased else [None]
            return k.emit(FullyConnected, [v, whole(k, 9, 64), *bias], plain(f32, (3, 9)), **fused)

        def conv(k: KernelBuilder, v, fused=fused):  # type: ignore[no-untyped-def]
            return k.emit(
                Conv2D, [v, whole(k, 4, 3, 3, 6), whole(k, 4)], padding="SAME", stride_w=1, stride_h=1, **fused
            )

        def depthwise(k: KernelBuilder, v, fused=fused):  # type: ignore[no-untyped-def]
            options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "depth_multiplier": 1, **fused}
            return k.emit(DepthwiseConv2D, [v, whole(k, 1, 3, 3, 6), whole(k, 6)], **options)

        yield "fully_connected", made("fully_connected", activation, dense, rows).model
        yield "conv_2d", made("conv_2d", activation, conv, x).model
        yield "depthwise_conv_2d", made("depthwise_conv_2d", activation, depthwise, x).model

    def upward(k: KernelBuilder, v):  # type: ignore[no-untyped-def]
        operands = [k.constant([1, 18, 16, 10]), whole(k, 10, 3, 3, 6), v, whole(k, 10)]
        return k.emit(TransposeConv, operands, plain(f32, (1, 18, 16, 10)), padding="SAME", stride_w=2, stride_h=2)

    def padded(k: KernelBuilder, v):  # type: ignore[no-untyped-def]
        return k.emit(SpaceToBatchND, [v, k.constant([3, 2]), k.constant([[1, 2], [2, 0]])])

    yield "space_to_batch_nd", made("space_to_batch_nd", "padded", padded, x).model
    yield "fully_connected", made("fully_connected", "no bias", lambda k, v: dense(k, v, {}, False), rows).model
    yield "transpose_conv", made("transpose_conv", "bias", upward, x).model


def had(tool: str, python: Path, every: list[Model]) -> set[str]:
    """The operators of which a tool runs all models, near the reference kernels."""
    jobs = [Job(model, ".tflite", [inputs_of(name, model)]) for name, model in every]
    want, got = outcomes(REFERENCE, Path(sys.executable), jobs), outcomes(tool, python, jobs)
    lost = {name for (name, _), w, g in zip(every, want, got, strict=True) if not isinstance(w, str) and not near(w, g)}
    run = {name for (name, _), w in zip(every, want, strict=True) if not isinstance(w, str)}
    return run - lost


def near(want, got) -> bool:  # type: ignore[no-untyped-def]
    if isinstance(got, str):
        return False
    found = differing(want, got)
    return not isinstance(found, str) and found.apart <= NEAR


def inputs_of(name: str, model: bytes) -> dict[str, np.ndarray]:
    """Numbers about 1, and small indices."""
    rng, drawn = np.random.default_rng(crc32(name.encode())), {}
    for value in tflq.read(model).main.inputs:
        shape, element = [d or 1 for d in value.type.shape or ()], value.type.storage
        numbers = rng.uniform(0.1, 2, shape) if element.is_float else rng.integers(0, 2, shape)
        drawn[value.name] = numbers.astype(bool if element is i1 else element.dtype)
    return drawn


def with_floats(text: str, names: list[str]) -> str:
    """A target's file with these operators in floats, in front of its builtins."""
    plain_text = re.sub(r"\[floats\]\nrun = \[\n.*?\n\]\n\n", "", text, flags=re.DOTALL)
    lines = "".join(f'    "{name}",\n' for name in names)
    return plain_text.replace("[builtins]\n", f"[floats]\nrun = [\n{lines}]\n\n[builtins]\n", 1)


if __name__ == "__main__":
    sys.exit(main())
