# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences step by step: retention, RWKV, a detector of voices, a codec, the best path of labels, a narrator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from .language import _Encoder
from .transformers import Blocks


class _Sound(Blocks):
    """Convolutions over time."""

    def conv(self, x: str, inputs: int, outputs: int, window: int, stride: int = 1, gain: float = 1.4) -> str:
        """A window with bias; padding keeps the length, divided by the stride."""
        g, w, more = self.g, self.w, window - stride
        kernel, shift = g.weight(w.conv(outputs, inputs, window, gain=gain)), g.weight(w.normal(outputs, scale=0.1))
        return g.op("Conv", x, kernel, shift, strides=[stride], pads=[more - more // 2, more // 2])


def retention(
    layers: int = 3, hidden: int = 512, heads: int = 8, sequence: int = 256, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, sequence, hidden] -> `y`: RetNet (Sun et al., 2023), all tokens at once: products that decay."""
    b = _Encoder("retention", seed)
    g, size = b.g, hidden // heads
    x = g.input("x", np.float32, [1, sequence, hidden])
    far = np.arange(sequence)[:, None] - np.arange(sequence)[None]
    keep = 1 - 2.0 ** (-5 - np.arange(heads))[:, None, None]
    decay = np.where(far >= 0, keep ** np.maximum(far, 0), 0.0)
    mask = g.weight((decay / np.sqrt(decay.sum(-1, keepdims=True)))[None].astype(np.float32))
    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k = (b.heads(b.linear(normal, hidden, hidden, False), [1, -1, heads, size]) for _ in range(2))
        v = b.heads(b.linear(normal, hidden, 2 * hidden, False), [1, -1, heads, 2 * size])
        scores = g.op("MatMul", q, g.op("Transpose", g.op("Mul", k, g.f32(size**-0.5)), perm=[0, 1, 3, 2]))
        y = g.op("Transpose", g.op("MatMul", g.op("Mul", scores, mask), v), perm=[0, 2, 1, 3])
        y = g.op("Reshape", b.rms(y, 2 * size), g.const([1, -1, 2 * hidden]))
        gate = b.linear(normal, hidden, 2 * hidden, False)
        gate = g.op("Mul", gate, g.op("Sigmoid", gate))
        x = g.op("Add", x, b.linear(g.op("Mul", gate, y), 2 * hidden, hidden, False))
        wide = b.gelu(b.linear(b.norm(x, hidden), hidden, 2 * hidden))
        x = g.op("Add", x, b.linear(wide, 2 * hidden, hidden))
    g.output(x, "y", np.float32, [1, sequence, hidden])
    return g.model()


def receptance(layers: int = 2, hidden: int = 512, sequence: int = 64, seed: int = 0) -> onnx.ModelProto:
    """`x` [1, sequence, hidden] -> `y`: RWKV-4 (Peng et al., 2023): shifted tokens, a Scan over channels' sums."""
    b = _Encoder("receptance", seed)
    g, w = b.g, b.w
    x = g.input("x", np.float32, [1, sequence, hidden])

    def mixed(x: str, before: str) -> str:
        share = np.abs(w.normal(hidden, scale=0.3)).clip(0, 1).astype(np.float32)
        return g.op("Add", g.op("Mul", x, g.weight(share)), g.op("Mul", before, g.weight(1 - share)))

    def shifted(x: str) -> str:
        first = g.op("Slice", x, g.const([0]), g.const([-1]), g.const([1]))
        return g.op("Pad", first, g.const([0, 1, 0, 0, 0, 0]))

    for layer in range(layers):
        normal = b.norm(x, hidden)
        before = shifted(normal)
        k, v, r = (b.linear(mixed(normal, before), hidden, hidden, False) for _ in range(3))
        k, v = g.op("Squeeze", k, g.const([0])), g.op("Squeeze", v, g.const([0]))
        states = [g.weight(np.zeros(hidden, np.float32)) for _ in range(2)]
        body = _weighted(g, w.normal(hidden, scale=0.5), -np.exp(w.normal(hidden, scale=0.5)), hidden, layer)
        low = g.weight(np.full(hidden, -1e30, np.float32))
        y = g.ops("Scan", *states, low, k, v, outputs=4, num_scan_inputs=2, body=body)[3]
        y = g.op("Mul", g.op("Sigmoid", r), g.op("Unsqueeze", y, g.const([0])))
        x = g.op("Add", x, b.linear(y, hidden, hidden, False))
        normal = b.norm(x, hidden)
        before = shifted(normal)
        wide = g.op("Relu", b.linear(mixed(normal, before), hidden, 4 * hidden, False))
        y = b.linear(g.op("Mul", wide, wide), 4 * hidden, hidden, False, 0.5)
        x = g.op("Add", x, g.op("Mul", g.op("Sigmoid", b.linear(mixed(normal, before), hidden, hidden, False)), y))
    g.output(x, "y", np.float32, [1, sequence, hidden])
    return g.model()


def _weighted(outer: Graph, bonus: np.ndarray, decay: np.ndarray, hidden: int, layer: int) -> onnx.GraphProto:
    """A step: the mean of values so far, weighted by exp(keys) that decay; the largest exponent is kept apart."""
    g, f32 = outer.inner(f"step{layer}"), np.float32
    above, below, most, k, v = (
        g.input(f"{g.name}_{name}", f32, [hidden]) for name in ("above", "below", "most", "k", "v")
    )

    def joined(key: str, kept: str) -> tuple[str, str, str]:
        top = g.op("Max", kept, key)
        old, new = g.op("Exp", g.op("Sub", kept, top)), g.op("Exp", g.op("Sub", key, top))
        sums = g.op("Add", g.op("Mul", old, above), g.op("Mul", new, v)), g.op("Add", g.op("Mul", old, below), new)
        return *sums, top

    first, second, _ = joined(g.op("Add", k, outer.weight(bonus)), most)
    results = *joined(k, g.op("Add", most, outer.weight(decay.astype(f32)))), g.op("Div", first, second)
    for name, value in zip(("above", "below", "most", "y"), results, strict=True):
        g.output(value, f"{g.name}_{name}_after", f32, [hidden])
    return g.as_attribute()


def voice(width: int = 128, samples: int = 576, bins: int = 129, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """`audio` [batch, samples], `h`, `c` -> `speech` and the new states: a detector of voices as Silero's."""
    b = _Sound("voice", seed)
    g, w, f32, size = b.g, b.w, np.float32, 2 * (bins - 1)
    x = g.op("Pad", g.input("audio", f32, [batch, samples]), g.const([0, 0, 0, size // 4]), mode="reflect")
    steps = (samples + size // 4 - size) // (size // 2) + 1
    kernel = g.weight(w.normal(2 * bins, 1, size, scale=size**-0.5))
    x = g.op("Conv", g.op("Unsqueeze", x, g.const([1])), kernel, strides=[size // 2])
    real, imaginary = g.ops("Split", x, g.const([bins, bins]), outputs=2, axis=1)
    x = g.op("Sqrt", g.op("Add", g.op("Mul", real, real), g.op("Mul", imaginary, imaginary)))
    inputs = bins
    for outputs, stride in ((width, 1), (width // 2, 2), (width // 2, 2), (width, 1)):
        kernel, shift = g.weight(w.conv(outputs, inputs, 3)), g.weight(w.normal(outputs, scale=0.1))
        x = g.op("Relu", g.op("Conv", x, kernel, shift, strides=[stride], pads=[1, 1]))
        inputs, steps = outputs, (steps - 1) // stride + 1
    states = [g.input(name, f32, [1, batch, width]) for name in "hc"]
    weights = [g.weight(w.linear(4 * width, width)[None]) for _ in range(2)]
    bias = g.weight(w.normal(1, 8 * width, scale=0.1))
    x = g.op("Transpose", x, perm=[2, 0, 1])
    y, *after = g.ops("LSTM", x, *weights, bias, "", *states, outputs=3, hidden_size=width)
    y = g.op("Transpose", g.op("Squeeze", y, g.const([1])), perm=[1, 2, 0])
    y = g.op("Conv", g.op("Relu", y), g.weight(w.conv(1, width, 1, gain=3.0)), g.weight(w.normal(1)))
    g.output(g.op("ReduceMean", g.op("Sigmoid", y), axes=[2], keepdims=0), "speech", f32, [batch, 1])
    for name, value in zip("hc", after, strict=True):
        g.output(value, f"{name}_after", f32, [1, batch, width])
    return g.model()


def codec(
    width: int = 32, rates: Sequence[int] = (2, 4, 5, 8), samples: int = 16000, words: int = 1024, books: int = 4,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`audio` [1, 1, samples] -> `codes`, `sound`: EnCodec's way in (Défossez et al., 2022), residual code books."""
    b = _Sound("codec", seed)
    g, w = b.g, b.w
    x = b.conv(g.input("audio", np.float32, [1, 1, samples]), 1, width, 7)
    for rate in rates:
        y = b.conv(g.op("Elu", x), width, width // 2, 3)
        x = g.op("Add", x, b.conv(g.op("Elu", y), width // 2, width, 1, gain=0.5))
        x, width = b.conv(g.op("Elu", x), width, 2 * width, 2 * rate, rate), 2 * width
    steps = samples // int(np.prod(rates))
    x = g.op("Transpose", x, perm=[2, 0, 1])
    weights = [g.weight(w.linear(4 * width, width)[None]) for _ in range(2)]
    y = g.ops("LSTM", x, *weights, g.weight(w.normal(1, 8 * width, scale=0.1)), outputs=1, hidden_size=width)[0]
    x = g.op("Transpose", g.op("Add", x, g.op("Squeeze", y, g.const([1]))), perm=[1, 2, 0])
    depth = width // 4
    rest = g.op("Squeeze", g.op("Transpose", b.conv(g.op("Elu", x), width, depth, 7), perm=[0, 2, 1]), g.const([0]))
    total, codes = None, []
    for _ in range(books):
        book = w.normal(words, depth)
        products = g.op("MatMul", rest, g.weight(2 * book.T))
        squares = g.op("ReduceSum", g.op("Mul", rest, rest), g.const([1]), keepdims=1)
        far = g.op("Add", g.op("Sub", squares, products), g.weight((book**2).sum(1)))
        codes.append(g.op("ArgMin", far, axis=1, keepdims=1))
        word = g.op("Gather", g.weight(book), g.op("Squeeze", codes[-1], g.const([1])))
        rest = g.op("Sub", rest, word)
        total = g.op("Add", total, word) if total else word
    g.output(g.op("Concat", *codes, axis=1), "codes", np.int64, [steps, books])
    g.output(total or rest, "sound", np.float32, [steps, depth])
    return g.model()


def best_path(tags: int = 24, hidden: int = 256, sequence: int = 64, seed: int = 0) -> onnx.ModelProto:
    """`x` [sequence, hidden] -> `path`, `scores`: a conditional random field's best path (Viterbi), by two Scans."""
    b = Blocks("best_path", seed)
    g, w, f32, i64 = b.g, b.w, np.float32, np.int64
    scores = b.linear(g.op("Tanh", b.linear(g.input("x", f32, [sequence, hidden]), hidden, hidden)), hidden, tags)
    change = g.weight(w.normal(tags, tags))
    first = g.op("Gather", scores, g.const(0))
    others = g.op("Slice", scores, g.const([1]), g.const([sequence]), g.const([0]))
    step = g.inner("forward")
    before, now = (step.input(f"forward_{name}", f32, [tags]) for name in ("before", "now"))
    ways = step.op("Add", step.op("Unsqueeze", before, g.const([1])), change)
    best = step.op("Add", step.op("ReduceMax", ways, axes=[0], keepdims=0), now)
    step.output(best, "forward_best", f32, [tags])
    step.output(step.op("ArgMax", ways, axis=0, keepdims=0), "forward_from", i64, [tags])
    last, sources = g.ops("Scan", first, others, outputs=2, num_scan_inputs=1, body=step.as_attribute())
    end = g.op("ArgMax", last, axis=0, keepdims=0)
    back = g.inner("back")
    tag, row = back.input("back_tag", i64, []), back.input("back_row", i64, [tags])
    source = back.op("Gather", row, tag, axis=0)
    back.output(source, "back_next", i64, [])
    back.output(back.op("Identity", source), "back_tag_out", i64, [])
    ways_back = dict(scan_input_directions=[1], scan_output_directions=[1])
    path = g.ops("Scan", end, sources, outputs=2, num_scan_inputs=1, body=back.as_attribute(), **ways_back)[1]
    g.output(g.op("Concat", path, g.op("Unsqueeze", end, g.const([0])), axis=0), "path", i64, [sequence])
    g.output(last, "scores", f32, [tags])
    return g.model()


def narrator(
    hidden: int = 256, heads: int = 2, sounds: int = 64, frames: int = 320, layers: int = 2, bands: int = 80,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`sounds` [1, sounds] -> `bands`: FastSpeech 2 (Ren et al., 2021): each sound repeated as long as it lasts."""
    b = _Encoder("narrator", seed)
    g, w = b.g, b.w

    def conv(x: str, inputs: int, outputs: int, window: int) -> str:
        kernel, shift = g.weight(w.conv(outputs, inputs, window)), g.weight(w.normal(outputs, scale=0.1))
        return g.op("Conv", x, kernel, shift, pads=[window // 2] * 2)

    def transposed(x: str) -> str:
        return g.op("Transpose", x, perm=[0, 2, 1])

    def block(x: str) -> str:
        x = b.norm(g.op("Add", x, b.attention(x, 1, hidden, heads)), hidden)
        y = conv(g.op("Relu", conv(transposed(x), hidden, 4 * hidden, 9)), 4 * hidden, hidden, 1)
        return b.norm(g.op("Add", x, transposed(y)), hidden)

    x = g.op("Gather", g.weight(w.normal(150, hidden)), g.input("sounds", np.int64, [1, sounds]))
    x = g.op("Add", x, g.weight(w.normal(1, sounds, hidden, scale=0.3)))
    for _ in range(layers):
        x = block(x)
    y = transposed(x)
    for _ in range(2):
        y = transposed(b.norm(transposed(g.op("Relu", conv(y, hidden, hidden, 3))), hidden))
    long = g.op("Squeeze", g.op("Exp", b.linear(transposed(y), hidden, 1, gain=0.3)), g.const([2]))
    long = g.op("Max", g.op("Round", g.op("Mul", long, g.f32(frames / sounds))), g.f32(1.0))
    ends = g.op("Unsqueeze", g.op("CumSum", long, g.const(1)), g.const([1]))
    times = g.weight(np.arange(frames, dtype=np.float32)[None, :, None])
    past = g.op("Cast", g.op("LessOrEqual", ends, times), to=onnx.TensorProto.INT64)
    which = g.op("Min", g.op("ReduceSum", past, g.const([2]), keepdims=0), g.const(sounds - 1))
    x = g.op("Gather", g.op("Squeeze", x, g.const([0])), which, axis=0)
    x = g.op("Add", x, g.weight(w.normal(1, frames, hidden, scale=0.3)))
    for _ in range(layers):
        x = block(x)
    g.output(b.linear(x, hidden, bands), "bands", np.float32, [1, frames, bands])
    return g.model()
