"""Makes the models that TensorFlow's converter can make: networks with fixed weights, quantized or of floats.

    python models/make_models.py [FOLDER]

Needs tensorflow 2.20.0. The result is the same on every run, byte for byte, but for the `flatbuffers` package, by which
TensorFlow writes files: version 25.12.19 puts tables in another order than 25.9.23. The quantized files here are of the
latter, those of floats of the former, so without FOLDER a run replaces those of the version that it finds, and says
which it leaves. TensorFlow 2.21 makes the same networks and numbers under other names of constants.

The weights are drawn from fixed seeds, not trained: what matters here is the arithmetic. The classifier's weights are
scaled up, so that its answers are not all alike. `handmade.py` makes the models that the converter cannot make.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

TENSORFLOW = "2.20.0"
QUANTIZED_BY, FLOATS_BY = "25.9.23", "25.12.19"
"""The versions of tensorflow and flatbuffers with which the files here were made."""
HERE = Path(__file__).resolve().parent
SAMPLES = 64
CLASSES = 10


def images(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Smooth random images in [-1, 1], so that neighbouring pixels are alike as in a photograph."""
    noise = np.random.default_rng(seed).normal(size=(SAMPLES, *shape)).astype(np.float32)
    smooth = sum(np.roll(noise, (dy, dx), (1, 2)) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    return np.clip(np.asarray(smooth) / 6, -1, 1)


def initializer(seed: int, gain: float = 2.0) -> tf.keras.initializers.Initializer:
    return tf.keras.initializers.VarianceScaling(gain, seed=seed)


def residual_network(activation: Callable[[], tf.keras.layers.Layer], *, pooled: bool) -> tf.keras.Model:
    """Convolution, a depthwise separable block with a residual ADD, and a classifier of ten classes."""
    layers = tf.keras.layers
    inputs = layers.Input(batch_shape=(1, 24, 24, 3), name="image")
    x = layers.Conv2D(16, 3, 2, "same", kernel_initializer=initializer(1), bias_initializer=initializer_of_bias(2))(
        inputs
    )
    x = shortcut = activation()(x)
    x = layers.DepthwiseConv2D(
        3, padding="same", depthwise_initializer=initializer(3), bias_initializer=initializer_of_bias(4)
    )(x)
    x = activation()(x)
    x = layers.Conv2D(16, 1, kernel_initializer=initializer(5), bias_initializer=initializer_of_bias(6))(x)
    x = layers.Add()([x, shortcut])
    x = layers.Conv2D(32, 3, 2, "same", kernel_initializer=initializer(7), bias_initializer=initializer_of_bias(8))(x)
    x = activation()(x)
    x = layers.GlobalAveragePooling2D()(layers.MaxPooling2D(2)(x)) if pooled else layers.Flatten()(x)
    x = layers.Dense(CLASSES, kernel_initializer=initializer(9, 8.0), bias_initializer=initializer_of_bias(10))(x)
    return tf.keras.Model(inputs, layers.Softmax()(x) if pooled else x)


def initializer_of_bias(seed: int) -> tf.keras.initializers.Initializer:
    return tf.keras.initializers.RandomNormal(stddev=0.2, seed=seed)


def quantized(converter: Any, samples: Callable[[], Iterator[Any]], storage: tf.DType = tf.int8) -> bytes:
    """The network with integer activations, per-channel int8 weights, integer inputs and outputs."""
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.inference_input_type = converter.inference_output_type = storage
    int16x8 = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    converter.target_spec.supported_ops = [int16x8 if storage == tf.int16 else tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return bytes(converter.convert())


def cnn_int8() -> bytes:
    model = residual_network(lambda: tf.keras.layers.ReLU(6.0), pooled=True)
    return quantized(
        tf.lite.TFLiteConverter.from_keras_model(model), lambda: ([x[None]] for x in images((24, 24, 3), 11))
    )


def cnn_int16x8() -> bytes:
    model = residual_network(lambda: tf.keras.layers.LeakyReLU(negative_slope=0.1), pooled=False)
    return quantized(
        tf.lite.TFLiteConverter.from_keras_model(model), lambda: ([x[None]] for x in images((24, 24, 3), 12)), tf.int16
    )


class TwoHeads(tf.Module):
    """One trunk, two entry points: `classify` gives class scores, `embed` a vector of features; any number of images.

    Weights are constants: the converter does not freeze variables that two signatures share.
    """

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(21)
        shapes = {"first": (3, 3, 1, 8), "second": (3, 3, 8, 16), "head": (16, CLASSES)}
        self.weights = {
            name: rng.normal(size=s).astype(np.float32) / np.sqrt(np.prod(s[:-1])) for name, s in shapes.items()
        }
        self.biases = {name: rng.normal(scale=0.2, size=s[-1]).astype(np.float32) for name, s in shapes.items()}

    def trunk(self, image: tf.Tensor) -> tf.Tensor:
        first = tf.nn.relu(tf.nn.conv2d(image, self.weights["first"], 2, "SAME") + self.biases["first"])
        second = tf.nn.relu(tf.nn.conv2d(first, self.weights["second"], 2, "VALID") + self.biases["second"])
        return tf.reduce_mean(second, (1, 2))

    @tf.function(input_signature=[tf.TensorSpec((None, 16, 16, 1), tf.float32, "image")])
    def classify(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"scores": tf.nn.softmax(4 * (self.trunk(image) @ self.weights["head"] + self.biases["head"]))}

    @tf.function(input_signature=[tf.TensorSpec((None, 16, 16, 1), tf.float32, "image")])
    def embed(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"features": tf.nn.tanh(self.trunk(image))}


def two_signatures() -> bytes:
    module = TwoHeads()
    samples = images((16, 16, 1), 27)
    keys = ["classify", "embed"]
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={key: getattr(module, key) for key in keys})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=keys)
        return quantized(converter, lambda: ((key, {"image": x[None]}) for key in keys for x in samples))


# Networks of floats, to quantize.


def residual() -> tf.keras.Model:
    """Depthwise separable blocks, a residual ADD, a concatenation of two branches, and a classifier."""
    layers = tf.keras.layers
    inputs = layers.Input(batch_shape=(1, 24, 24, 3), name="image")
    x = layers.ReLU(6.0)(layers.Conv2D(12, 3, 2, "same")(inputs))
    deep = layers.ReLU(6.0)(layers.DepthwiseConv2D(3, padding="same")(x))
    x = layers.Add()([layers.Conv2D(12, 1)(deep), x])
    wide = layers.Conv2D(12, 1)(layers.LeakyReLU(negative_slope=0.1)(layers.DepthwiseConv2D(5, padding="same")(x)))
    x = layers.Concatenate()([layers.MaxPooling2D(2)(x), layers.AveragePooling2D(2)(wide)])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.Conv2D(24, 3, padding="same")(x)))
    return drawn(tf.keras.Model(inputs, layers.Dense(CLASSES)(x)), 31)


def transformer() -> tf.keras.Model:
    """A transformer block: attention of three heads, two layer normalizations, GELU between two products."""
    layers = tf.keras.layers
    inputs = layers.Input(batch_shape=(1, 12, 24), name="tokens")
    x = layers.LayerNormalization()(inputs)
    x = shortcut = layers.Add()([layers.MultiHeadAttention(3, 8)(x, x), inputs])
    x = layers.Dense(48, activation="gelu")(layers.LayerNormalization()(x))
    return drawn(tf.keras.Model(inputs, layers.Add()([layers.Dense(24)(x), shortcut])), 32)


def unet() -> tf.keras.Model:
    """A U-Net of two levels, TRANSPOSE_CONV on the way up, and a mask."""
    layers = tf.keras.layers
    inputs = layers.Input(batch_shape=(1, 16, 16, 2), name="image")
    first = layers.Conv2D(6, 3, padding="same", activation="relu")(inputs)
    second = layers.Conv2D(12, 3, 2, "same", activation="relu")(first)
    x = layers.Conv2D(16, 3, 2, "same", activation="relu")(second)
    x = layers.Concatenate()([layers.Conv2DTranspose(12, 2, 2, "same")(x), second])
    x = layers.Conv2D(12, 3, padding="same", activation="relu")(x)
    x = layers.Concatenate()([layers.Conv2DTranspose(6, 3, 2, "same", activation="relu")(x), first])
    return drawn(tf.keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x)), 33)


def lstm() -> tf.keras.Model:
    """An LSTM of eight steps, unrolled, and a product."""
    layers = tf.keras.layers
    inputs = layers.Input(batch_shape=(1, 8, 10), name="sequence")
    return drawn(tf.keras.Model(inputs, layers.Dense(4)(layers.LSTM(16, unroll=True)(inputs))), 34)


FLOAT_NETWORKS: dict[str, Callable[[], tf.keras.Model]] = {
    f"{make.__name__}_float": make for make in (residual, transformer, unet, lstm)
}


def drawn(model: tf.keras.Model, seed: int) -> tf.keras.Model:
    """The network with biases, and scales of normalizations, that are not all alike."""
    rng = np.random.default_rng(seed)
    for weights in model.weights:
        if len(weights.shape) == 1:
            weights.assign(weights + rng.normal(scale=0.2, size=weights.shape))
    return model


def new_session() -> None:
    """What follows is the same on every run."""
    tf.keras.utils.set_random_seed(0)
    tf.keras.backend.clear_session()


def float_network(make: Callable[[], tf.keras.Model]) -> bytes:
    return bytes(tf.lite.TFLiteConverter.from_keras_model(make()).convert())


def pinned(names: dict[str, str]) -> list[str]:
    """The files here that these packages make again byte for byte, of some with the version of flatbuffers that made
    each. Ends the program with another TensorFlow."""
    if tf.__version__ != TENSORFLOW:
        sys.exit(f"the files in {HERE} are of tensorflow {TENSORFLOW}, and here is {tf.__version__}: give a FOLDER")
    here = version("flatbuffers")
    for name, wanted in names.items():
        if wanted != here:
            print(f"{name} stays: it is of flatbuffers {wanted}, and here is {here}")
    return [name for name, wanted in names.items() if wanted == here]


def main(folder: Path) -> None:
    integers = {make.__name__: make for make in (cnn_int8, cnn_int16x8, two_signatures)}
    makers = integers | {name: partial(float_network, net) for name, net in FLOAT_NETWORKS.items()}
    names = list(makers)
    if folder == HERE:
        names = pinned({name: QUANTIZED_BY if name in integers else FLOATS_BY for name in makers})
    tf.config.experimental.enable_op_determinism()
    for name in names:
        new_session()
        data = makers[name]()
        path = folder / f"{name}.tflite"
        path.write_bytes(data)
        print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
