"""What each scheme and method of `tflq quantize` costs in accuracy and in decibels.

    python benchmarks/quantizer_methods.py FOLDER [SEEDS]

Digits: scikit-learn's 1,797 images of 8 by 8, 1,400 to train and to calibrate with, 397 to test; a CNN with depthwise
layers, trained once for each of SEEDS seeds (5; 0: none). The mean accuracy over the seeds.

Products: FULLY_CONNECTED 256 → 128 → 16 with weights of 4 bits, 512 samples to calibrate with, 200 to judge: inputs
that are made of 32 factors, and uncorrelated ones. Decibels, and how many above `minmax`, of tflq and of
litert-quantizer.

Needs the packages of `pip install '.[verify]' litert-quantizer==0.11 tensorflow-cpu==2.21 scikit-learn`.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tflq
from tflq.tools.quantize.fidelity import decibels

TRAINED = 1400
EPOCHS = 30
STATIC = ("int8", "int16x8")
RANGES = ("minmax", "ema", "percentile:99.9", "mse")
WEIGHT_RANGES = ("minmax", "mse", "octav")
RECIPES = {
    "weight-only": "weight_only_wi4_afp32",
    "dynamic": "dynamic_wi4_afp32",
    "dynamic blocks": "dynamic_wi4b32_afp32",
}
"""litert-quantizer's names of schemes."""


def options(blocks: int) -> dict[str, dict[str, Any]]:
    """Every scheme with every method, by what is printed."""
    found: dict[str, dict[str, Any]] = {
        f"{scheme} {method}": {"scheme": scheme, "range": method} for scheme in STATIC for method in RANGES
    }
    for scheme in ("dynamic", "weight-only"):
        for bits in ("int8", "int4"):
            for method in (*WEIGHT_RANGES, "gptq"):
                found[f"{scheme} {bits} {method}"] = {"scheme": scheme, "weights": bits, "weight_method": method}
    for method in WEIGHT_RANGES:
        text = f"dynamic int4 {method}, blocks of {blocks}"
        found[text] = {"scheme": "dynamic", "weights": "int4", "weight_method": method, "blocks": blocks}
    return found | {"float16": {"scheme": "float16"}}


def digits(folder: Path, seeds: int) -> None:
    from sklearn.datasets import load_digits

    data = load_digits()
    images, labels = (data.images[..., None] / 8 - 1).astype(np.float32), data.target
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(images))
        train, test = order[:TRAINED], order[TRAINED:]
        model = folder / f"digits_{seed}.tflite"
        model.write_bytes(_classifier(images[train], labels[train], seed))
        statistics = tflq.calibrate(model, list(images[train][:, None])).statistics
        found.setdefault("float", []).append(_accuracy(model, images[test], labels[test]))
        for name, asked in options(32).items():
            made = folder / f"digits_{seed}_quantized.tflite"
            more: dict[str, Any] = {"statistics": statistics} if asked["scheme"] in STATIC else {}
            more |= {"calibration": list(images[train][:, None])} if asked.get("weight_method") == "gptq" else {}
            tflq.quantize(model, made, force=True, **asked, **more)
            found.setdefault(name, []).append(_accuracy(made, images[test], labels[test]))
    print(f"| digits, {seeds} seeds | mean | against float | worst seed |\n|---|---|---|---|")
    for name, each in found.items():
        apart = np.array(each) - np.array(found["float"])
        print(f"| {name} | {np.mean(each):.2%} | {np.mean(apart) * 100:+.2f} | {apart.min() * 100:+.2f} |", flush=True)


def _classifier(images: np.ndarray, labels: np.ndarray, seed: int) -> bytes:
    """A CNN with two depthwise layers, trained."""
    import tensorflow as tf

    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(seed)
    model = tf.keras.Sequential(
        [
            layers.Input(images.shape[1:]),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.DepthwiseConv2D(3, padding="same", activation="relu"),
            layers.Conv2D(32, 1, activation="relu"),
            layers.MaxPooling2D(2),
            layers.DepthwiseConv2D(3, padding="same", activation="relu"),
            layers.Conv2D(32, 1, activation="relu"),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=32, epochs=EPOCHS, verbose=0)
    with contextlib.redirect_stdout(io.StringIO()):
        return bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())


def _accuracy(path: Path, images: np.ndarray, labels: np.ndarray) -> float:
    outputs = _outputs(path, [image[None] for image in images])
    return float(np.mean([output.argmax() == label for output, label in zip(outputs, labels, strict=True)]))


def _outputs(path: Path, samples: list[np.ndarray]) -> list[np.ndarray]:
    """The first output of each sample, on the default kernels, with XNNPACK."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    outputs = []
    for sample in samples:
        interpreter.set_tensor(given, sample)
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(made).astype(np.float64))
    return outputs


def products(folder: Path) -> None:
    print("| 4 bits | inputs | method | tflq | litert-quantizer |\n|---|---|---|---|---|")
    for kind in ("32 factors", "uncorrelated"):
        rng = np.random.default_rng(0)
        model = folder / "products.tflite"
        model.write_bytes(_products(rng))
        factors = rng.normal(size=(32, 256)) / np.sqrt(32)
        drawn = rng.normal(size=(712, 32)) @ factors if kind == "32 factors" else rng.normal(size=(712, 256))
        samples = [row[None].astype(np.float32) for row in drawn]
        judge = _outputs(model, samples[512:])
        for scheme in ("weight-only", "dynamic"):
            bases = [0.0, 0.0]
            for method in (*WEIGHT_RANGES, "gptq"):
                shown = []
                for place, make in enumerate((_ours, _theirs)):
                    path = folder / f"products_{place}.tflite"
                    make(path, model, scheme, method, samples[:512])
                    others = _outputs(path, samples[512:])
                    ratio = decibels(([f], [q]) for f, q in zip(judge, others, strict=True))
                    bases[place] = ratio if method == "minmax" else bases[place]
                    shown.append(f"{ratio:.2f} dB ({ratio - bases[place]:+.2f})")
                print(f"| {scheme} | {kind} | {method} | {shown[0]} | {shown[1]} |", flush=True)
        _blocks(folder, model, samples[512:], judge, kind)


def _blocks(folder: Path, model: Path, samples: list[np.ndarray], judge: list[np.ndarray], kind: str) -> None:
    shown = []
    for place, make in enumerate((_ours, _theirs)):
        path = folder / f"blocks_{place}.tflite"
        make(path, model, "dynamic blocks", "minmax", [])
        others = _outputs(path, samples)
        shown.append(f"{decibels(([f], [q]) for f, q in zip(judge, others, strict=True)):.2f} dB")
    print(f"| dynamic, blocks of 32 | {kind} | minmax | {shown[0]} | {shown[1]} |", flush=True)


def _ours(path: Path, model: Path, scheme: str, method: str, samples: list[np.ndarray]) -> None:
    more: dict[str, Any] = {"blocks": 32} if scheme.endswith("blocks") else {}
    more |= {"calibration": samples} if method == "gptq" else {}
    tflq.quantize(model, path, scheme=scheme.split()[0], weights="int4", weight_method=method, force=True, **more)


def _theirs(path: Path, model: Path, scheme: str, method: str, samples: list[np.ndarray]) -> None:
    from litert_quantizer import quantizer
    from litert_quantizer import recipe as recipes

    names = {"minmax": "MIN_MAX_UNIFORM_QUANT", "mse": "MSE", "octav": "OCTAV", "gptq": "GPTQ"}
    algorithm = getattr(quantizer.AlgorithmName, names[method])
    peer = quantizer.Quantizer(str(model))
    peer.load_quantization_recipe(getattr(recipes, RECIPES[scheme])(algorithm_key=algorithm))
    with contextlib.redirect_stdout(io.StringIO()):
        data = {"serving_default": [{"x": sample} for sample in samples]}
        seen = peer.calibrate(data) if peer.need_calibration else None
        path.write_bytes(bytes(peer.quantize(seen).quantized_model))


def _products(rng: np.random.Generator) -> bytes:
    import tensorflow as tf

    layers = tf.keras.layers
    inputs = layers.Input(batch_shape=(1, 256), name="x")
    hidden = layers.Dense(128, activation="relu", use_bias=False)(inputs)
    model = tf.keras.Model(inputs, layers.Dense(16, use_bias=False)(hidden))
    model.set_weights([rng.normal(size=w.shape) / np.sqrt(w.shape[0]) for w in model.weights])
    with contextlib.redirect_stdout(io.StringIO()):
        return bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())


def main(folder: Path, seeds: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if seeds:
        digits(folder, seeds)
    products(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
