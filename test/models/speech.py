# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sound and signals: a Conformer, a vocoder, a reader of lines, log-mel spectra, WaveNet, a GRU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._image_net import ImageNet
from ._weights import Weights
from .transformers import Blocks


def conformer(
    layers: int = 3, hidden: int = 256, heads: int = 4, frames: int = 400, bands: int = 80, window: int = 31,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`bands` [1, frames, bands] -> `logits`: Conformer (Gulati et al., 2020): attention, then depthwise windows."""
    b = Blocks("conformer", seed)
    g, w = b.g, b.w
    x = g.op("Unsqueeze", g.input("bands", np.float32, [1, frames, bands]), g.const([1]))
    inputs = 1
    for _ in range(2):
        kernel, shift = g.weight(w.conv(hidden, inputs, 3, 3)), g.weight(w.normal(hidden, scale=0.1))
        x, inputs = g.op("Relu", g.op("Conv", x, kernel, shift, strides=[2, 2])), hidden
        frames, bands = (frames - 3) // 2 + 1, (bands - 3) // 2 + 1
    x = g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.const([1, frames, hidden * bands]))
    x = b.linear(x, hidden * bands, hidden)

    def silu(x: str) -> str:
        return g.op("Mul", x, g.op("Sigmoid", x))

    def dense(x: str) -> str:
        y = b.linear(silu(b.linear(b.norm(x, hidden), hidden, 4 * hidden)), 4 * hidden, hidden)
        return g.op("Add", x, g.op("Mul", y, g.f32(0.5)))

    for _ in range(layers):
        x = dense(x)
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden), [1, -1, heads, hidden // heads]) for _ in range(3))
        y = g.op("Reshape", b.attend(q, k, v, (hidden // heads) ** -0.5), g.const([1, -1, hidden]))
        x = g.op("Add", x, b.linear(y, hidden, hidden))
        y = g.op("Transpose", b.norm(x, hidden), perm=[0, 2, 1])
        y = g.op("Conv", y, g.weight(w.conv(2 * hidden, hidden, 1)), g.weight(w.normal(2 * hidden, scale=0.1)))
        left, right = g.ops("Split", y, g.const([hidden, hidden]), outputs=2, axis=1)
        y = g.op("Mul", left, g.op("Sigmoid", right))
        pads = [window // 2] * 2
        y = g.op("Conv", y, g.weight(w.conv(hidden, 1, window)), g.weight(w.normal(hidden)), group=hidden, pads=pads)
        y = g.op("Conv", silu(y), g.weight(w.conv(hidden, hidden, 1)), g.weight(w.normal(hidden, scale=0.1)))
        x = b.norm(dense(g.op("Add", x, g.op("Transpose", y, perm=[0, 2, 1]))), hidden)
    logits = g.op("LogSoftmax", b.linear(x, hidden, 128), axis=-1)
    g.output(logits, "logits", np.float32, [1, frames, 128])
    return g.model()


def vocoder(
    width: int = 128, rates: Sequence[int] = (8, 8, 2, 2), frames: int = 32, bands: int = 80, seed: int = 0
) -> onnx.ModelProto:
    """`bands` [1, bands, frames] -> `audio`: HiFi-GAN (Kong et al., 2020): transposed and dilated windows over time."""
    g, w = Graph("vocoder", 17), Weights(seed)

    def conv(x: str, inputs: int, outputs: int, window: int, far: int = 1, gain: float = 1.0) -> str:
        pads = [window // 2 * far] * 2
        kernel, shift = g.weight(w.conv(outputs, inputs, window, gain=gain)), g.weight(w.normal(outputs, scale=0.1))
        return g.op("Conv", x, kernel, shift, pads=pads, dilations=[far])

    def bent(x: str) -> str:
        return g.op("LeakyRelu", x, alpha=0.1)

    x = conv(g.input("bands", np.float32, [1, bands, frames]), bands, width, 7)
    for rate in rates:
        kernel = g.weight(w.normal(width, width // 2, 2 * rate, scale=(2 * width) ** -0.5))
        pads, shift = [rate // 2] * 2, g.weight(w.normal(width // 2, scale=0.1))
        x, width = g.op("ConvTranspose", bent(x), kernel, shift, strides=[rate], pads=pads), width // 2
        parts = []
        for window in (3, 7, 11):
            y = x
            for far in (1, 3, 5):
                z = conv(bent(conv(bent(y), width, width, window, far)), width, width, window, gain=0.5)
                y = g.op("Add", y, z)
            parts.append(y)
        x = g.op("Div", g.op("Add", g.op("Add", parts[0], parts[1]), parts[2]), g.f32(3.0))
    audio = g.op("Tanh", conv(bent(x), width, 1, 7, gain=0.3))
    g.output(audio, "audio", np.float32, [1, 1, frames * int(np.prod(rates))])
    return g.model()


def reader(
    widths: Sequence[int] = (64, 128, 256, 256), hidden: int = 256, wide: int = 160, seed: int = 0
) -> onnx.ModelProto:
    """`line` [1, 1, 32, wide] -> `letters`: CRNN (Shi et al., 2015): convolutions, then bidirectional LSTM."""
    n = ImageNet("reader", seed)
    g, w = n.g, n.w
    x = n.input("line", [1, 1, 32, wide])
    for i, width in enumerate(widths):
        x = n.conv(x, width)
        high, along = (2, 2) if i < 2 else (2, 1)
        x = n.known(g.op("MaxPool", x, kernel_shape=[high, along], strides=[high, along]), width)
    steps, inputs = wide // 4, 2 * widths[-1]
    x = g.op("Reshape", x, g.const([1, inputs, steps]))
    x = g.op("Transpose", x, perm=[2, 0, 1])
    for _ in range(2):
        kernel = g.weight(np.stack([w.linear(4 * hidden, inputs) for _ in range(2)]))
        recurrent = g.weight(np.stack([w.linear(4 * hidden, hidden) for _ in range(2)]))
        bias = g.weight(w.normal(2, 8 * hidden, scale=0.1))
        y = g.ops("LSTM", x, kernel, recurrent, bias, outputs=1, hidden_size=hidden, direction="bidirectional")[0]
        x = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([steps, 1, 2 * hidden]))
        inputs = 2 * hidden
    y = g.op("Add", g.op("MatMul", x, g.weight(w.linear(37, inputs).T)), g.weight(w.normal(37)))
    g.output(g.op("LogSoftmax", y, axis=-1), "letters", np.float32, [steps, 1, 37])
    return g.model()


def spectrum(samples: int = 16000, size: int = 400, step: int = 160, bands: int = 80, seed: int = 0) -> onnx.ModelProto:
    """`audio` [1, samples] -> `bands`: the logarithm of a mel spectrum, as front ends of speech models compute it."""
    g, w = Graph("spectrum", 17), Weights(seed)
    x = g.input("audio", np.float32, [1, samples])
    window = g.weight(np.hanning(size + 1)[:-1].astype(np.float32))
    y = g.op("STFT", x, g.const(step), window, g.const(size), onesided=1)
    power = g.op("ReduceSum", g.op("Mul", y, y), g.const([3]), keepdims=0)
    mel = np.abs(w.normal(size // 2 + 1, bands)) * (np.random.default_rng(seed).random((size // 2 + 1, bands)) < 0.05)
    z = g.op("MatMul", power, g.weight(mel.astype(np.float32)))
    z = g.op("Log", g.op("Max", z, g.f32(1e-10)))
    mean = g.op("ReduceMean", z, axes=[1], keepdims=1)
    g.output(g.op("Sub", z, mean), "bands", np.float32, [1, (samples - size) // step + 1, bands])
    return g.model()


def wavenet(
    width: int = 64, skip: int = 128, layers: int = 8, length: int = 2048, classes: int = 256, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, width, length] -> `logits`: WaveNet (van den Oord et al., 2016): gated and dilated windows of two."""
    g, w = Graph("wavenet", 17), Weights(seed)

    def conv(x: str, inputs: int, outputs: int, window: int = 1, far: int = 1) -> str:
        kernel, shift = g.weight(w.conv(outputs, inputs, window, gain=1.0)), g.weight(w.normal(outputs, scale=0.1))
        return g.op("Conv", x, kernel, shift, pads=[(window - 1) * far, 0], dilations=[far])

    x, total = g.input("x", np.float32, [1, width, length]), None
    for i in range(layers):
        left, right = (conv(x, width, width, 2, 2 ** (i % 8)) for _ in range(2))
        y = g.op("Mul", g.op("Tanh", left), g.op("Sigmoid", right))
        more = conv(y, width, skip)
        total = more if total is None else g.op("Add", total, more)
        x = g.op("Add", x, conv(y, width, width))
    y = conv(g.op("Relu", conv(g.op("Relu", total), skip, skip)), skip, classes)
    g.output(y, "logits", np.float32, [1, classes, length])
    return g.model()


def gru(
    hidden: int = 512, inputs: int = 256, sequence: int = 50, batch: int = 16, before: int = 0, seed: int = 0
) -> onnx.ModelProto:
    """`x` [sequence, batch, inputs] -> `y`, `h`: one GRU, ONNX's default form (`before`: linear_before_reset)."""
    g, w = Graph("gru", 17), Weights(seed)
    kernel, recurrent = g.weight(w.linear(3 * hidden, inputs)[None]), g.weight(w.linear(3 * hidden, hidden)[None])
    bias = g.weight(w.normal(1, 6 * hidden, scale=0.1))
    x = g.input("x", np.float32, [sequence, batch, inputs])
    y, h = g.ops("GRU", x, kernel, recurrent, bias, outputs=2, hidden_size=hidden, linear_before_reset=before)
    g.output(g.op("Squeeze", y, g.const([1])), "y", np.float32, [sequence, batch, hidden])
    g.output(h, "h", np.float32, [1, batch, hidden])
    return g.model()
