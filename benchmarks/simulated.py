"""Makes networks with fake quantization, in floats, and TensorFlow's own int8 of each.

    python benchmarks/simulated.py [FOLDER]        (needs tensorflow 2.21; by default tests/tools/quantize/simulated)

`trained` is a small network after ten steps of training with fake quantization of its activations
(`fake_quant_with_min_max_args`) and of its weights, per channel in convolutions. The others are not trained: they have
what the converter treats in a way of its own. NAME_float.tflite is what the converter makes of a network as it is:
operators on floats, and a QUANTIZE and a DEQUANTIZE for each fake quantization. NAME_int8.tflite is what it makes of it
with `Optimize.DEFAULT`, without data. The result is the same on every run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

FOLDER: Final = Path(__file__).resolve().parents[1] / "tests" / "tools" / "quantize" / "simulated"
NAMES: Final = ("trained", "branches", "mixed", "elementwise", "moved")
RANGES: Final = {
    "image": (-1.0, 1.0),
    "conv": (0.0, 6.0),
    "depthwise": (-4.0, 4.0),
    "sum": (-4.0, 8.0),
    "logits": (-8.0, 8.0),
}
"""Of the activations of the trained network, in its order."""
_STEPS: Final = 10
_RATE: Final = 0.02
_IMAGE: Final = (8, 8, 2)


class Network:
    """Weights, fake quantization, and the networks as functions of an image."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf
        rng = np.random.default_rng(7)
        shapes = {"conv": (3, 3, 2, 8), "depthwise": (3, 3, 8, 1), "dense": (128, 5)}
        self.weights = {n: tf.Variable(rng.normal(0, 0.3, s).astype(np.float32)) for n, s in shapes.items()}
        counts = {"conv": 8, "depthwise": 8, "dense": 5}
        self.biases = {n: tf.Variable(rng.normal(0, 0.1, c).astype(np.float32)) for n, c in counts.items()}

    def constant(self, *shape: int) -> Any:
        """Weights that are not trained."""
        rng = np.random.default_rng(sum(shape))
        return self.tf.constant(rng.normal(0, 0.3, shape).astype(np.float32))

    def fake(self, x: Any, low: float, high: float) -> Any:
        return self.tf.quantization.fake_quant_with_min_max_args(x, low, high)

    def per_channel(self, weights: Any, axis: int = 3) -> Any:
        """Weights, each channel of `axis` rounded by its own range."""
        tf = self.tf
        order = [i for i in range(4) if i != axis] + [axis]
        reach = tf.stop_gradient(tf.reduce_max(tf.abs(weights), order[:-1]))
        rounded = tf.quantization.fake_quant_with_min_max_vars_per_channel(
            tf.transpose(weights, order), -reach, reach, narrow_range=True
        )
        return tf.transpose(rounded, np.argsort(order).tolist())

    def whole(self, weights: Any) -> Any:
        """Weights, rounded by one range."""
        reach = self.tf.stop_gradient(self.tf.reduce_max(self.tf.abs(weights)))
        return self.tf.quantization.fake_quant_with_min_max_vars(weights, -reach, reach, narrow_range=True)

    def trained(self, image: Any) -> Any:
        """A convolution, a depthwise one, a residual ADD, a pool, a product."""
        nn, weights, biases = self.tf.nn, self.weights, self.biases
        x = self.fake(image, *RANGES["image"])
        conv = nn.conv2d(x, self.per_channel(weights["conv"]), 1, "SAME") + biases["conv"]
        conv = self.fake(nn.relu6(conv), *RANGES["conv"])
        kernel = self.per_channel(weights["depthwise"], 2)
        depthwise = nn.depthwise_conv2d(conv, kernel, [1, 1, 1, 1], "SAME") + biases["depthwise"]
        total = self.fake(self.fake(depthwise, *RANGES["depthwise"]) + conv, *RANGES["sum"])
        features = self.tf.reshape(nn.max_pool2d(total, 2, 2, "VALID"), [-1, 128])
        return self.fake(features @ self.whole(weights["dense"]) + biases["dense"], *RANGES["logits"])

    def branches(self, image: Any) -> Any:
        """Two convolutions of other ranges before a concatenation; a mean, a product, a SOFTMAX of another scale."""
        nn, x = self.tf.nn, self.fake(image, -1.0, 1.0)
        left = self.fake(nn.relu(nn.conv2d(x, self.per_channel(self.constant(3, 3, 2, 4)), 1, "SAME")), 0.0, 4.0)
        right = self.fake(nn.conv2d(x, self.per_channel(self.constant(1, 1, 2, 4)), 1, "SAME"), -4.0, 4.0)
        both = self.fake(self.tf.concat([left, right], -1), -4.0, 4.0)
        conv = self.fake(nn.relu6(nn.conv2d(both, self.per_channel(self.constant(3, 3, 8, 6)), 2, "SAME")), 0.0, 6.0)
        mean = self.fake(self.tf.reduce_mean(conv, [1, 2]), 0.0, 6.0)
        return self.fake(nn.softmax(self.fake(mean @ self.whole(self.constant(6, 5)), -6.0, 6.0)), 0.0, 1.0)

    def mixed(self, image: Any) -> Any:
        """An operator that has no quantized kernel, and two results."""
        x = self.fake(image, -1.0, 1.0)
        conv = self.fake(self.tf.nn.conv2d(x, self.per_channel(self.constant(3, 3, 2, 4)), 1, "SAME"), -4.0, 4.0)
        pooled = self.tf.nn.avg_pool2d(conv, 2, 2, "VALID")
        return self.fake(self.tf.sin(pooled), -1.0, 1.0), self.tf.reshape(pooled, [-1, 64])

    def elementwise(self, image: Any) -> Any:
        """Operators of fixed scales, and a constant that is rounded."""
        x = self.fake(image, -1.0, 1.0)
        scaled = self.fake(x * self.fake(self.constant(1, *_IMAGE), -1.0, 1.0), -1.0, 1.0)
        difference = self.fake(scaled - self.fake(self.tf.tanh(scaled), -1.0, 1.0), -2.0, 2.0)
        gate = self.fake(self.tf.sigmoid(difference), 0.0, 1.0)
        return self.fake(self.tf.pad(gate, [[0, 0], [1, 1], [1, 1], [0, 0]]), 0.0, 1.0)

    def moved(self, image: Any) -> Any:
        """A result that is moved after it was rounded, and returned as it is."""
        nn, x = self.tf.nn, self.fake(image, -1.0, 1.0)
        conv = nn.conv2d(x, self.per_channel(self.constant(3, 3, 2, 4)), 1, "SAME") + self.constant(4)
        return self.tf.reshape(self.tf.transpose(self.fake(nn.relu(conv), 0.0, 3.0), [0, 3, 1, 2]), [1, -1])


def trained(tf: Any) -> Network:
    """The networks, the first after a few steps towards random answers."""
    tf.config.experimental.enable_op_determinism()
    tf.keras.utils.set_random_seed(0)
    network, rng = Network(tf), np.random.default_rng(1)
    variables = [*network.weights.values(), *network.biases.values()]
    for _ in range(_STEPS):
        image, answer = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((16, *_IMAGE), (16, 5)))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network.trained(tf.constant(image)) - answer) ** 2)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(_RATE * gradient)
    return network


def converted(network: Network, name: str, *, quantized: bool) -> bytes:
    """A network as TensorFlow's converter writes it, for one image."""
    tf = network.tf
    holder = tf.Module()
    holder.kept = [*network.weights.values(), *network.biases.values()]
    call: Callable[[Any], Any] = getattr(network, name)
    function = tf.function(call, input_signature=[tf.TensorSpec([1, *_IMAGE], tf.float32, "image")])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], holder)
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if quantized else []
    return bytes(converter.convert())


def main(folder: Path) -> None:
    import tensorflow as tf

    network = trained(tf)
    for name in NAMES:
        for kind, quantized in (("float", False), ("int8", True)):
            data = converted(network, name, quantized=quantized)
            path = folder / f"{name}_{kind}.tflite"
            path.write_bytes(data)
            print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
