"""Whether `tflq debug` finds the operator that was spoiled in a quantized network, and what keeping it float is worth.

    python benchmarks/spoiled.py FOLDER SEED[,SEED...] MODEL.tflite ...

Of each network one operator, drawn at random, is spoiled in the int8 file: the scales of its weights times 1.5, the
range of its result cut to a tenth, or another zero point, whichever the file then allows. 64 samples to calibrate with,
100 others to judge: of MODEL.npz (`calibrating` and `judging`, for a network of one input) where that is there, else
drawn. A row per seed: of how many networks the operator is named first, and of how many the outputs' signal-to-noise
ratio, with that operator kept float, is at least that of the unspoiled network less 0.5 dB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tflq
from tflq.base.errors import TflqError
from tflq.dialects.declare import trait_of
from tflq.dialects.parameters import SameScale
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

WAYS = ("weights", "range", "zero point")
LEAST = -0.5


class _Network:
    def __init__(self, folder: Path, path: Path) -> None:
        self.path, self.right, self.wrong = path, folder / f"{path.stem}_int8.tflite", folder / f"{path.stem}_x.tflite"
        self.calibrating, self.judging = self._samples(64, 1), self._samples(100, 2)
        self.statistics = tflq.calibrate(path, self.calibrating).statistics
        tflq.quantize(path, self.right, statistics=self.statistics, force=True)
        self.decibels = self._decibels(self.right)

    def _samples(self, count: int, seed: int) -> list[Any]:
        stored = self.path.with_suffix(".npz")
        if stored.exists():
            with np.load(stored) as arrays:
                return list(arrays["calibrating" if seed == 1 else "judging"][:count])
        inputs, rng = tflq.read(self.path).main.inputs, np.random.default_rng(seed)
        shapes = [[dim or 1 for dim in value.type.shape or ()] for value in inputs]
        drawn = [[rng.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(count)]
        return [each[0] for each in drawn] if len(inputs) == 1 else drawn

    def _decibels(self, path: Path) -> float:
        from tflq.tools.quantize.fidelity import signal_to_noise

        return signal_to_noise(self.path, path, self.judging)

    def tried(self, rng: np.random.Generator) -> tuple[str, str, bool, float]:
        """Spoils an operator. Returns its name, how, whether it is named first, and by how many decibels the network is
        better than the unspoiled one when what is named is kept float."""
        for place, tensor, way in spoiled(self.right, self.wrong, rng):
            try:
                first = tflq.debug(self.path, self.wrong, self.judging).rows[0]
            except TflqError:  # the interpreter refuses what was made
                continue
            kept = [literal(first.tensor)]
            tflq.quantize(self.path, self.wrong, statistics=self.statistics, force=True, keep_float=kept)
            return tensor, way, first.number == place, self._decibels(self.wrong) - self.decibels
        raise ValueError(f"{self.right} has no operator to spoil")


def literal(name: str) -> str:
    """The pattern of a name alone."""
    import re

    return f"re:{re.escape(name)}"


def spoiled(right: Path, wrong: Path, rng: np.random.Generator) -> Iterator[tuple[int, str, str]]:
    """Writes networks with an operator spoiled, drawn, until one is taken. Yields its place, its result's name, and how
    it was spoiled."""
    for place, way in _drawn(tflq.read(right), rng):
        module = tflq.read(right)
        op = module.main.ops[place]
        readers = module.main.users().get(op.result, ())
        if way != "weights" and any(trait_of(reader, SameScale) for reader in readers):
            continue  # a kernel of one scale that reads the result would be wrong, too
        if not _spoil(op, way):
            continue
        if way == "range":
            _mend_biases(module, op.result)
        try:
            wrong.write_bytes(tflq.write(module))
            tflq.read(wrong)
        except TflqError:
            continue
        yield place, op.results[0].name, way


def _drawn(module: Module, rng: np.random.Generator) -> Iterator[tuple[int, str]]:
    """Places of operators, in an order drawn, with each way in an order drawn."""
    places = [i for i, op in enumerate(module.main.ops) if not isinstance(op, (Quantize, Dequantize))]
    for place in rng.permutation(places):
        for way in rng.permutation(WAYS):
            yield int(place), str(way)


def _spoil(op: Op, way: str) -> bool:
    """Spoils an operator; whether it has what is to be spoiled."""
    constants = [v for v in op.operands[1:2] if v is not None and v.is_constant]
    value = op.result if way != "weights" else constants[0] if constants else None
    element = None if value is None else value.type.element
    changed: Any = None
    if way == "weights" and isinstance(element, UniformQuantizedPerAxisType):
        changed = element.replace(scales=element.scales * np.float32(1.5))
    elif isinstance(element, UniformQuantizedType):
        if way == "zero point":
            changed = element.replace(zero_point=-128 if element.zero_point > 0 else 127)
        else:
            changed = element.replace(scale=element.scale * (1.5 if way == "weights" else 0.1))
    if value is None or changed is None:
        return False
    value.type = value.type.with_element(changed)
    return True


def _mend_biases(module: Module, value: Value) -> None:
    """Stores the biases of what reads a value at a tenth of their scale, since that is the product of its scale and the
    weights': else that operator would be wrong, too."""
    for op in module.main.users().get(value, ()):
        bias = op.operands[-1]
        if bias is None or not bias.is_constant:
            continue
        kind: Any = bias.type.element
        if isinstance(kind, UniformQuantizedPerAxisType) and kind.storage.bits >= 32:
            made: Any = kind.replace(scales=kind.scales * np.float32(0.1))
        elif isinstance(kind, UniformQuantizedType) and kind.storage.bits >= 32:
            made = kind.replace(scale=kind.scale * 0.1)
        else:
            continue
        stored = constant(bias.array * bias.array.dtype.type(10), kind.storage, bias.name)
        stored.type = bias.type.with_element(made)
        op.operands = [*op.operands[:-1], stored]


def main(folder: Path, seeds: list[int], models: list[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    networks = [_Network(folder, model) for model in models]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        first = held = 0
        for network in networks:
            tensor, way, named, gain = network.tried(rng)
            first, held = first + named, held + (gain >= LEAST)
            said = "" if named else "not "
            print(f"    {network.path.stem} '{tensor}' ({way}): {said}named first, {gain:+.2f} dB", flush=True)
        print(f"seed {seed}: of {len(networks)} networks {first} named first, {held} held", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(seed) for seed in sys.argv[2].split(",")], [Path(path) for path in sys.argv[3:]])
