"""Makes large networks for the benchmarks: python benchmarks/keras_networks.py [FOLDER]

ResNet50 and EfficientNetB0 of Keras with random weights, int8 activations and weights per channel, quantized after
training on random images. Needs tensorflow, in an environment of its own; without it nothing is made, and that is said.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench"
SAMPLES = 4
NETWORKS = ("ResNet50", "EfficientNetB0")


def images() -> Iterator[list[np.ndarray]]:
    """Random images as Keras' applications take them: 0 to 255."""
    rng = np.random.default_rng(0)
    for _ in range(SAMPLES):
        yield [rng.uniform(0, 255, (1, 224, 224, 3)).astype(np.float32)]


def network(tf: Any, name: str) -> bytes:
    """The file of a network of Keras, weights drawn from a fixed seed."""
    tf.keras.utils.set_random_seed(0)
    model = getattr(tf.keras.applications, name)(weights=None, input_shape=(224, 224, 3))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = images
    converter.inference_input_type = converter.inference_output_type = tf.int8
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return bytes(converter.convert())


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    try:
        import tensorflow as tf
    except ImportError:
        sys.exit("SKIPPED: no tensorflow here; say which Python has it: make bench-networks TENSORFLOW=/path/to/python")
    folder.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        path = folder / f"{name}.tflite"
        path.write_bytes(network(tf, name))
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
