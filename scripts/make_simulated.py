"""Makes the network that was trained with fake quantization: in floats, and TensorFlow's own int8 of it.

    python scripts/make_simulated.py [FOLDER]        (needs tensorflow 2.21; by default tests/passes/simulated)

A small network is trained for ten steps with fake quantization of its activations (`fake_quant_with_min_max_args`) and
of its weights, per channel in convolutions. `float.tflite` is what the converter makes of it as it is: operators on
floats, and a QUANTIZE and a DEQUANTIZE for each fake quantization. `int8.tflite` is what it makes of it with
`Optimize.DEFAULT`, without data.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

FOLDER: Final = Path(__file__).resolve().parents[1] / "tests" / "passes" / "simulated"
RANGES: Final = {
    "image": (-1.0, 1.0),
    "conv": (0.0, 6.0),
    "depthwise": (-4.0, 4.0),
    "sum": (-4.0, 8.0),
    "logits": (-8.0, 8.0),
}
"""Of the activations, in the order of the network."""
_STEPS: Final = 10
_RATE: Final = 0.02


def network(tf: Any) -> Any:
    """The network: a convolution, a depthwise one, a residual ADD, a pool, a product."""

    class Network(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            rng = np.random.default_rng(7)
            shapes = {"conv": (3, 3, 2, 8), "depthwise": (3, 3, 8, 1), "dense": (128, 5)}
            self.weights = {n: tf.Variable(rng.normal(0, 0.3, s).astype(np.float32)) for n, s in shapes.items()}
            biases = {"conv": 8, "depthwise": 8, "dense": 5}
            self.biases = {n: tf.Variable(rng.normal(0, 0.1, s).astype(np.float32)) for n, s in biases.items()}

        def fake(self, x: Any, name: str) -> Any:
            return tf.quantization.fake_quant_with_min_max_args(x, *RANGES[name])

        def per_channel(self, name: str, axis: int) -> Any:
            """The weights, each channel of `axis` rounded by its own range."""
            weights = self.weights[name]
            order = [i for i in range(4) if i != axis] + [axis]
            reach = tf.stop_gradient(tf.reduce_max(tf.abs(weights), order[:-1]))
            rounded = tf.quantization.fake_quant_with_min_max_vars_per_channel(
                tf.transpose(weights, order), -reach, reach, narrow_range=True
            )
            return tf.transpose(rounded, np.argsort(order).tolist())

        @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], tf.float32, "image")])  # type: ignore[untyped-decorator]
        def __call__(self, image: Any) -> Any:
            x = self.fake(image, "image")
            conv = tf.nn.conv2d(x, self.per_channel("conv", 3), 1, "SAME") + self.biases["conv"]
            conv = self.fake(tf.nn.relu6(conv), "conv")
            kernel = self.per_channel("depthwise", 2)
            depthwise = tf.nn.depthwise_conv2d(conv, kernel, [1, 1, 1, 1], "SAME") + self.biases["depthwise"]
            total = self.fake(self.fake(depthwise, "depthwise") + conv, "sum")
            features = tf.reshape(tf.nn.max_pool2d(total, 2, 2, "VALID"), [-1, 128])
            dense = self.weights["dense"]
            reach = tf.stop_gradient(tf.reduce_max(tf.abs(dense)))
            rounded = tf.quantization.fake_quant_with_min_max_vars(dense, -reach, reach, narrow_range=True)
            return self.fake(features @ rounded + self.biases["dense"], "logits")

    return Network()


def trained(tf: Any) -> Any:
    """The network after a few steps towards random answers."""
    tf.config.experimental.enable_op_determinism()
    tf.keras.utils.set_random_seed(0)
    module, rng = network(tf), np.random.default_rng(1)
    for _ in range(_STEPS):
        image, answer = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((16, 8, 8, 2), (16, 5)))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((module(tf.constant(image)) - answer) ** 2)
        variables = module.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(_RATE * gradient)
    return module


def converted(tf: Any, module: Any, *, quantized: bool) -> bytes:
    """The network as TensorFlow's converter writes it, for one image."""
    call = module.__call__.get_concrete_function(tf.TensorSpec([1, 8, 8, 2], tf.float32, "image"))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([call], module)
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if quantized else []
    return bytes(converter.convert())


def main(folder: Path) -> None:
    import tensorflow as tf

    module = trained(tf)
    for name, quantized in (("float", False), ("int8", True)):
        data = converted(tf, module, quantized=quantized)
        (folder / f"{name}.tflite").write_bytes(data)
        print(f"{folder / name}.tflite: {len(data)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
