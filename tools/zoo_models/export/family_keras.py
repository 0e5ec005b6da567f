# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of Keras by tf2onnx, with an open batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
from keras import layers

from .storing import Made

BATCHES = (4, 1, 7)
WORDS = 50
Variant = Callable[[Path], Made]


def model(make: Callable[[], keras.Model]) -> Variant:
    """A model of Keras: floats, or numbers of words where its input is of integers."""

    def write(folder: Path) -> Made:
        keras.utils.set_random_seed(0)
        built = make()
        path = folder / "model.onnx"
        convert(built, path)
        random = np.random.default_rng(0)
        found = []
        for batch in BATCHES:
            given = {}
            for tensor in built.inputs:
                shape = [batch, *tensor.shape[1:]]
                integer = "int" in str(tensor.dtype)
                drawn = random.integers(1, WORDS, shape) if integer else random.normal(size=shape)
                given[tensor.name] = drawn.astype(tensor.dtype)
            results = built(list(given.values()) if len(given) > 1 else next(iter(given.values())), training=False)
            outputs = results if isinstance(results, list | tuple) else [results]
            found.append((renamed(path, given), {f"output_{i}": np.asarray(r) for i, r in enumerate(outputs)}))
        return Made(found, 1e-4, "tf2onnx")

    return write


def convert(built: keras.Model, path: Path) -> None:
    """Write the model as a file whose first dimension is open."""
    import tensorflow as tf
    import tf2onnx

    signature = [tf.TensorSpec((None, *t.shape[1:]), t.dtype, name=f"input_{i}") for i, t in enumerate(built.inputs)]

    @tf.function(input_signature=signature)
    def call(*inputs: tf.Tensor) -> list[tf.Tensor]:
        return built(list(inputs) if len(inputs) > 1 else inputs[0], training=False)

    tf2onnx.convert.from_function(call, input_signature=signature, opset=17, output_path=str(path))


def renamed(path: Path, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs under the names that the file gives them, in its order."""
    import onnx

    names = [i.name for i in onnx.load(str(path)).graph.input]
    return dict(zip(names, given.values(), strict=True))


def sequential(shape: tuple[int | None, ...], *parts: layers.Layer, dtype: str = "float32") -> keras.Model:
    """Layers one after the other."""
    return keras.Sequential([keras.Input(shape, dtype=dtype), *parts])


def residual() -> keras.Model:
    """Convolutions with a residual, and normalization."""
    x = first = keras.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, padding="same")(x)
    y = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x)))
    x = layers.add([x, y])
    x = layers.SeparableConv2D(16, 3, strides=2)(x)
    return keras.Model(first, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def smooth(x: keras.KerasTensor) -> keras.KerasTensor:
    """GELU by tanh."""
    return keras.activations.gelu(x, approximate=True)


def transformer(activation: str | Callable = smooth) -> keras.Model:
    """One block of a transformer over words."""
    words = keras.Input((12,), dtype="int32")
    x = layers.Embedding(WORDS, 32)(words)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation=activation)(x)))
    return keras.Model(words, layers.Dense(3)(layers.GlobalMaxPooling1D()(x)))


def unet() -> keras.Model:
    """Down and up again, with a skip."""
    first = keras.Input((16, 16, 3))
    a = layers.Conv2D(8, 3, padding="same", activation="relu")(first)
    b = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(a))
    c = layers.Conv2DTranspose(8, 2, strides=2)(b)
    x = layers.concatenate([a, c, layers.UpSampling2D(interpolation="bilinear")(b)])
    return keras.Model(first, layers.Conv2D(2, 1, activation="sigmoid")(x))


def two_inputs() -> keras.Model:
    """Numbers and words together."""
    numbers, words = keras.Input((5,)), keras.Input((3,), dtype="int32")
    x = layers.concatenate([layers.Dense(8)(numbers), layers.Flatten()(layers.Embedding(WORDS, 4)(words))])
    return keras.Model([numbers, words], [layers.Dense(1)(x), layers.Dense(2, activation="tanh")(x)])


def variants(_out: Path) -> dict[str, Variant]:
    """The models by name."""
    mobile = {"input_shape": (32, 32, 3), "weights": None, "classes": 10}
    return {
        "mlp": model(lambda: sequential(
            (16,), layers.Dense(32, "elu"), layers.Dropout(0.5), layers.Dense(4, "softmax"),
        )),
        "cnn": model(lambda: sequential(
            (16, 16, 3), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(16, 3),
            layers.LeakyReLU(), layers.Flatten(), layers.Dense(10),
        )),
        "residual": model(residual),
        "lstm": model(lambda: sequential((9, 8), layers.LSTM(16, return_sequences=True), layers.LSTM(8))),
        "bidirectional_gru": model(lambda: sequential((9, 8), layers.Bidirectional(layers.GRU(16)), layers.Dense(3))),
        "words_conv1d": model(lambda: sequential(
            (20,), layers.Embedding(WORDS, 16), layers.Conv1D(8, 3, padding="causal", activation="swish"),
            layers.GlobalAveragePooling1D(), layers.Dense(1, "sigmoid"), dtype="int32",
        )),
        "transformer": model(transformer),
        "transformer_erfc": model(lambda: transformer("gelu")),  # tf2onnx leaves Erfc, which is no operator of ONNX
        "unet": model(unet),
        "two_inputs": model(two_inputs),
        "mobilenet_v2": model(lambda: keras.applications.MobileNetV2(alpha=0.35, **mobile)),
    }  # fmt: skip
