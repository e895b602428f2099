"""What each method of `tflq quantize` gains, and how near its best networks are beside litert-quantizer's best.

    python benchmarks/quantizers.py FOLDER [MODEL.tflite ...]     by default the float networks in models/

Samples are beside a network, in MODEL.calib.npz and MODEL.test.npz, arrays by input name; where they are not, 64 are
drawn to calibrate with and 100 to judge. A row per network, scheme and set of operators that stay float: decibels of
the worst output on the samples that judge, 10 log10(Σf² / Σ(f-q)²), of each method of both tools, the size of the best
of each, and how far apart these are. Some of the peer's algorithms are for a few kinds of operators, and leave others
float. Such networks are compared with tflq's in which the same operators are asked to stay float, in a row of their
own. Then, for each scheme and method of tflq, what it gains over `minmax`: the median of the networks, the least and
the largest.

FOLDER keeps the files. Needs the packages of `pip install '.[verify]' litert-quantizer==0.11`.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import tflq
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.ir.module import Module, Signature
from tflq.tools.quantize.correction.layers import stored_weights_of
from tflq.tools.quantize.fidelity import FloatNetwork

ROOT = Path(__file__).resolve().parent.parent


class Scheme(NamedTuple):
    """A scheme: what both tools call it, and which methods they have. activations: their bits; 0: floats, quantized as
    the network runs; -1: floats."""

    options: dict[str, Any]
    activations: int
    weights: int
    blocks: int = 0


class Outcome(NamedTuple):
    """The decibels and bytes of a network, and the names of operators that stay float: all where activations are
    quantized, else products."""

    decibels: float
    size: int
    floats: frozenset[str]


STATIC = ("minmax", "auto", "gptq", "reconstruct")
OF_WEIGHTS = ("minmax", "mse", "octav", "gptq", "reconstruct")
PEERS_STATIC = ("minmax", "ema", "MSE", "GPTQ")
PEERS_OF_WEIGHTS = ("minmax", "MSE", "OCTAV", "GPTQ", "OSCAR", "DECOMPOSED_HADAMARD_ROTATION")
SCHEMES = {
    "int8": Scheme({"scheme": "int8"}, 8, 8),
    "int16x8": Scheme({"scheme": "int16x8"}, 16, 8),
    "int8, weights int4": Scheme({"scheme": "int8", "weights": "int4"}, 8, 4),
    "int16x8, weights int4": Scheme({"scheme": "int16x8", "weights": "int4"}, 16, 4),
    "dynamic": Scheme({"scheme": "dynamic"}, 0, 8),
    "dynamic int4": Scheme({"scheme": "dynamic", "weights": "int4"}, 0, 4),
    "dynamic int4, blocks of 32": Scheme({"scheme": "dynamic", "weights": "int4", "blocks": 32}, 0, 4, 32),
    "dynamic int2": Scheme({"scheme": "dynamic", "weights": "int2"}, 0, 2),
    "weight-only": Scheme({"scheme": "weight-only"}, -1, 8),
    "weight-only int4": Scheme({"scheme": "weight-only", "weights": "int4"}, -1, 4),
}
PRODUCTS = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D_TRANSPOSE")
NARROW = ("FULLY_CONNECTED", "CONV_2D")
"""Operators of which the peer quantizes weights to 4 bits."""


class Network:
    """A network with a signature, and its samples."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.name = folder, model.stem.removesuffix("_float")
        module = tflq.read(model)
        self.path = model if module.signatures else with_signature(module, folder / model.name)
        (signature, *_) = tflq.read(self.path).signatures or []
        self.key = signature.key or ""
        shapes = {name or "": [dim or 1 for dim in value.type.shape or ()] for name, value in signature.inputs or []}
        self.calibrating, self.judging = (
            _rows(model.with_suffix(f".{kind}.npz"), shapes) or drawn(shapes, count, seed)
            for kind, count, seed in (("calib", 64, 1), ("test", 100, 2))
        )
        self.floats = FloatNetwork(self.path, signature=self.key)

    def decibels(self, data: bytes) -> float:
        """The ratio of the worst output."""
        path = self.folder / f"{self.name}.judged.tflite"
        path.write_bytes(data)
        pairs = list(self.floats.beside(path, self.judging))
        ratios = []
        for place in range(len(pairs[0][0])):
            signal = sum(float((floats[place] ** 2).sum()) for floats, _ in pairs)
            noise = sum(float(((floats[place] - others[place]) ** 2).sum()) for floats, others in pairs)
            ratios.append(10 * np.log10(signal / max(noise, 1e-300)))
        return float(min(ratios))


def _rows(path: Path, shapes: dict[str, list[int]]) -> list[dict[str, np.ndarray]]:
    if not path.exists():
        return []
    arrays = dict(np.load(path))
    count = min(len(array) for array in arrays.values())
    return [{name: arrays[name][at : at + 1].reshape(shape) for name, shape in shapes.items()} for at in range(count)]


def drawn(shapes: dict[str, list[int]], count: int, seed: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [{n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()} for _ in range(count)]


def with_signature(module: Module, path: Path) -> Path:
    """litert-quantizer demands a signature, and reads an operator's code where newer files have it."""
    main = module.main
    module.operator_codes = []
    module.signatures = [
        Signature("serving_default", 0, *([(v.name, v) for v in side] for side in (main.inputs, main.outputs)))
    ]
    tflq.write(module, path)
    return path


def ours(network: Network, scheme: Scheme, method: str, floats: frozenset[str] = frozenset()) -> bytes:
    """The network by a method: of ranges for "minmax" and "auto", else of weights, with what "auto" chooses. floats:
    operators that are to stay float."""
    path = network.folder / f"{network.name}.tflq.tflite"
    options: dict[str, Any] = {"calibration": network.calibrating, "range": "auto", "force": True}
    options["keep_float"] = [f"re:{re.escape(name)}" for name in sorted(floats)]
    if method == "minmax":
        options |= {"range": "minmax"}
    elif method != "auto":
        options |= {"weight_method": method}
    tflq.quantize(network.path, path, **scheme.options, **options)
    return path.read_bytes()


def theirs(network: Network, scheme: Scheme, method: str) -> bytes:
    """The network of litert-quantizer: "minmax" and "ema" are ranges of activations, others algorithms of weights, on
    ranges of "minmax" where that works."""
    from litert_quantizer import qtyping, quantizer, recipe_manager

    operations = qtyping.TFLOperationName
    recipe = recipe_manager.RecipeManager()
    granularity = qtyping.QuantGranularity[f"BLOCKWISE_{scheme.blocks}" if scheme.blocks else "CHANNELWISE"]
    plain = quantizer.AlgorithmName.MIN_MAX_UNIFORM_QUANT
    algorithm = plain if method in ("minmax", "ema") else quantizer.AlgorithmName[method]
    if scheme.activations > 0:
        recipe.add_static_config(".*", operations.ALL_SUPPORTED, scheme.activations, 8, algorithm_key=algorithm)
    for name in PRODUCTS if scheme.weights == 8 else NARROW:
        with contextlib.suppress(ValueError):  # the algorithm, or the scheme, is not for this operator
            if scheme.activations <= 0:
                add = recipe.add_dynamic_config if scheme.activations == 0 else recipe.add_weight_only_config
                add(".*", operations[name], scheme.weights, granularity, algorithm)
            elif scheme.weights < 8:
                bits = scheme.activations, scheme.weights
                recipe.add_static_config(".*", operations[name], *bits, algorithm_key=algorithm)
    peer = quantizer.Quantizer(str(network.path))
    peer.load_quantization_recipe(recipe.get_quantization_recipe())
    with _silence():
        seen = _seen(network, peer, method) if peer.need_calibration else None
        return bytes(peer.quantize(seen).quantized_model)


def _seen(network: Network, peer: Any, method: str) -> Any:
    """What the peer's calibration saw: the least and the largest, or its moving average of them."""
    from litert_quantizer import calibrator
    from litert_quantizer.utils import qsv_utils

    def widest(old: Any, new: Any) -> Any:
        merges = "hessian" in new and bool(old)
        return (qsv_utils.gptq_and_moving_average_update(old, new) if merges else {}) | qsv_utils.min_max_update(
            old, new
        )

    data, mode = {network.key: network.calibrating}, calibrator.CalibrationMode.CALIBRATION_PRESERVE_ALL_TENSORS
    if method not in ("minmax", "MSE", "OCTAV", "GPTQ"):
        return peer.calibrate(data, mode=mode)
    watching = calibrator.Calibrator(str(network.path), mode=mode, qsv_update_func=widest)
    watching.calibrate(data, peer._recipe_manager)
    return watching.get_model_qsvs()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The peer reports at length."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def measured(
    network: Network, make: Any, scheme: Scheme, methods: tuple[str, ...], *floats: frozenset[str]
) -> dict[str, Outcome]:
    """The outcome of each method that gives a network that runs. floats: operators that are to stay float."""
    outcomes: dict[str, Outcome] = {}
    for method in methods:
        try:
            data = make(network, scheme, method, *floats)
            outcomes[method] = Outcome(network.decibels(data), len(data), _floats(tflq.read(data), scheme))
        except Exception as error:  # noqa: BLE001 - whatever a tool or the interpreter raises is an outcome
            print(f"    {network.name} {method} fails: {' '.join(str(error).split())[:160]}", flush=True)
    return outcomes


def _floats(module: Module, scheme: Scheme) -> frozenset[str]:
    """The names of what operators compute as floats; of activations that are floats, of products with float weights."""
    products = (Conv2D, DepthwiseConv2D, FullyConnected)
    if scheme.activations <= 0:
        ops = [op for op in module.ops() if isinstance(op, products) and not stored_weights_of(op).type.quantized]
    else:
        ops = [op for op in module.ops() if op.results and op.name != "tfl.dequantize"]
        ops = [op for op in ops if getattr(op.results[0].type.element, "is_float", False)]
    return frozenset(op.results[0].name for op in ops)


def main(folder: Path, models: list[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    gains: dict[tuple[str, str], list[float]] = {}
    print("| network | scheme | float | tflq | litert-quantizer | bytes | best against best |\n|" + "---|" * 7)
    for model in models or sorted((ROOT / "models").glob("*_float.tflite")):
        network = Network(folder, model)
        with closing(network.floats):
            for name, scheme in SCHEMES.items():
                _print_rows(network, name, _compared(network, scheme, name, gains))
    print("\n| scheme | method | median | least | largest |\n|---|---|---|---|---|")
    for (name, method), gained in gains.items():
        if method != "minmax":
            print(f"| {name} | {method} | {median(gained):+.1f} | {min(gained):+.1f} | {max(gained):+.1f} |")


Outcomes = dict[str, Outcome]


def _compared(
    network: Network, scheme: Scheme, name: str, gains: dict[tuple[str, str], list[float]]
) -> list[tuple[Outcomes, Outcomes]]:
    """The outcomes of both tools for each set of operators that the peer leaves float: those of tflq are asked to stay
    float, unless they do in any case."""
    static = scheme.activations > 0
    methods = STATIC if static else OF_WEIGHTS
    mine = measured(network, ours, scheme, methods)
    for method, each in mine.items():
        if "minmax" in mine:
            gains.setdefault((name, method), []).append(each.decibels - mine["minmax"].decibels)
    other = measured(network, theirs, scheme, PEERS_STATIC if static else PEERS_OF_WEIGHTS)
    known = {v.name for op in tflq.read(network.path).ops() for v in op.results}
    sides = []
    for floats in sorted({each.floats for each in other.values()}, key=lambda each: (len(each), sorted(each))):
        names = floats & known
        is_whole = all(names <= each.floats for each in mine.values())
        some = {method: each for method, each in other.items() if each.floats == floats}
        sides.append((mine if is_whole else measured(network, ours, scheme, methods, names), some))
    return sides or [(mine, other)]


def _print_rows(network: Network, scheme: str, sides: list[tuple[Outcomes, Outcomes]]) -> None:
    """Rows for each set of operators that stay float, with their number; of both tools, where it differs."""
    for mine, other in sides:
        texts = [", ".join(f"{method} {each.decibels:.1f}" for method, each in side.items()) for side in (mine, other)]
        nothing = Outcome(np.nan, 0, frozenset())
        one, two = (max(side.values(), key=lambda each: each.decibels, default=nothing) for side in (mine, other))
        floats = len(one.floats) if len(one.floats) == len(two.floats) else f"{len(one.floats)}, {len(two.floats)}"
        row = [network.name, scheme, floats, *texts, f"{one.size}, {two.size}", f"{one.decibels - two.decibels:+.2f}"]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
