# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences without attention: convolutions over audio, a temporal net, recurrent taggers, Mamba, linear attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights
from .transformers import Blocks


def _conv(g: Graph, w: Weights, x: str, inputs: int, outputs: int, window: int, **more: object) -> str:
    kernel = g.weight(w.conv(outputs, inputs // int(more.get("group", 1)), window))  # type: ignore[call-overload]
    return g.op("Conv", x, kernel, g.weight(w.normal(outputs, scale=0.1)), kernel_shape=[window], **more)


def wav2vec(widths: Sequence[int] = (512,) * 7, samples: int = 16000, seed: int = 0) -> onnx.ModelProto:
    """`audio` [1, 1, samples] -> `frames`: the feature encoder of wav2vec 2.0 (Baevski et al., 2020)."""
    g, w = Graph("wav2vec", 17), Weights(seed)
    x, inputs, length = g.input("audio", np.float32, [1, 1, samples]), 1, samples
    windows = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
    for i, (width, (window, stride)) in enumerate(zip(widths, windows, strict=False)):
        x, length = _conv(g, w, x, inputs, width, window, strides=[stride]), (length - window) // stride + 1
        if i == 0:
            flat = g.op("Reshape", x, g.const([0, width, -1]))
            x = g.op("InstanceNormalization", flat, g.weight(w.near_one(width)), g.weight(w.normal(width, scale=0.1)))
        bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
        x, inputs = g.op("Mul", g.op("Mul", x, bent), g.f32(0.5)), width
    g.output(x, "frames", np.float32, [1, inputs, length])
    return g.model()


def temporal(levels: int = 6, width: int = 64, inputs: int = 32, length: int = 512, seed: int = 0) -> onnx.ModelProto:
    """`x` [1, inputs, length] -> `y`: a temporal convolutional net (Bai et al., 2018), dilated and causal."""
    g, w = Graph("temporal", 17), Weights(seed)
    x = g.input("x", np.float32, [1, inputs, length])
    for level in range(levels):
        y, before, far = x, inputs, 2**level
        for _ in range(2):
            y = _conv(g, w, g.op("Pad", y, g.const([0, 0, 2 * far, 0, 0, 0])), inputs, width, 3, dilations=[far])
            y, inputs = g.op("Relu", y), width
        x = _conv(g, w, x, before, width, 1) if before != width else x
        x = g.op("Relu", g.op("Add", x, g.op("Mul", y, g.f32(0.5))))
    g.output(x, "y", np.float32, [1, width, length])
    return g.model()


def tagger(
    kind: str = "LSTM", hidden: int = 256, inputs: int = 128, layers: int = 2, sequence: int = 64, tags: int = 17,
    batch: int = 1, seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`tokens` [sequence, batch] -> `tags`: bidirectional LSTM or GRU layers over embeddings, a dense layer."""
    g, w = Graph("tagger", 17), Weights(seed)
    gates = 4 if kind == "LSTM" else 3
    x = g.op("Gather", g.weight(w.normal(10000, inputs)), g.input("tokens", np.int64, [sequence, batch]))
    for _ in range(layers):
        kernel = g.weight(np.stack([w.linear(gates * hidden, inputs) for _ in range(2)]), "W")
        recurrent = g.weight(np.stack([w.linear(gates * hidden, hidden) for _ in range(2)]), "R")
        bias = g.weight(w.normal(2, 2 * gates * hidden, scale=0.1), "B")
        more = {} if kind == "LSTM" else {"linear_before_reset": 1}
        y = g.ops(kind, x, kernel, recurrent, bias, outputs=1, hidden_size=hidden, direction="bidirectional", **more)[0]
        y = g.op("Transpose", y, perm=[0, 2, 1, 3])
        x, inputs = g.op("Reshape", y, g.const([sequence, batch, 2 * hidden])), 2 * hidden
    y = g.op("Add", g.op("MatMul", x, g.weight(w.linear(tags, inputs).T)), g.weight(w.normal(tags, scale=0.1)))
    g.output(y, "tags", np.float32, [sequence, batch, tags])
    return g.model()


def mamba(
    layers: int = 2, hidden: int = 256, state: int = 16, sequence: int = 64, rank: int = 16, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, sequence, hidden] -> `y`: Mamba blocks (Gu and Dao, 2023), the scan as ONNX Scan."""
    g, w, wide = Graph("mamba", 17), Weights(seed), 2 * hidden
    x = g.input("x", np.float32, [1, sequence, hidden])

    def linear(x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        return g.op("MatMul", x, g.weight(w.linear(outputs, inputs, gain).T))

    def silu(x: str) -> str:
        return g.op("Mul", x, g.op("Sigmoid", x))

    for _ in range(layers):
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
        normal = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, g.f32(1e-5))))
        u, gate = g.ops("Split", linear(normal, hidden, 2 * wide), g.const([wide, wide]), outputs=2, axis=-1)
        u = g.op("Transpose", u, perm=[0, 2, 1])
        u = _conv(g, w, g.op("Pad", u, g.const([0, 0, 3, 0, 0, 0])), wide, wide, 4, group=wide)
        u = silu(g.op("Transpose", u, perm=[0, 2, 1]))
        sizes = g.const([rank, state, state])
        low, b, c = g.ops("Split", linear(u, wide, rank + 2 * state), sizes, outputs=3, axis=-1)
        delta = g.op("Unsqueeze", g.op("Softplus", linear(low, rank, wide)), g.const([3]))  # [1, sequence, wide, 1]
        decay = g.weight(-np.tile(np.arange(1, state + 1, dtype=np.float32), (wide, 1)))
        keep = g.op("Squeeze", g.op("Exp", g.op("Mul", delta, decay)), g.const([0]))
        new = g.op("Mul", g.op("Mul", delta, g.op("Unsqueeze", u, g.const([3]))), g.op("Unsqueeze", b, g.const([2])))
        new, c = g.op("Squeeze", new, g.const([0])), g.op("Squeeze", c, g.const([0]))
        start = g.weight(np.zeros((wide, state), np.float32))
        y = g.ops("Scan", start, keep, new, c, outputs=2, num_scan_inputs=3, body=_step(g, wide, state))[1]
        y = g.op("Add", g.op("Unsqueeze", y, g.const([0])), g.op("Mul", u, g.weight(w.near_one(wide))))
        x = g.op("Add", x, linear(g.op("Mul", y, silu(gate)), wide, hidden, 0.5))
    g.output(x, "y", np.float32, [1, sequence, hidden])
    return g.model()


def _step(outer: Graph, wide: int, state: int) -> onnx.GraphProto:
    g, f32 = outer.inner(f"step{outer._unique('step')[1:].replace('/', '_')}"), np.float32
    h, keep, new = (g.input(f"{g.name}_{n}", f32, [wide, state]) for n in ("h", "keep", "new"))
    c = g.input(f"{g.name}_c", f32, [state])
    after = g.op("Add", g.op("Mul", h, keep), new)
    y = g.op("ReduceSum", g.op("Mul", after, c), outer.const([1]), keepdims=0)
    g.output(after, f"{g.name}_after", f32, [wide, state])
    g.output(y, f"{g.name}_y", f32, [wide])
    return g.as_attribute()


def linear_attention(
    layers: int = 2, hidden: int = 64, heads: int = 4, sequence: int = 48, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, sequence, hidden] -> `y`: attention as running sums of keys and values (Katharopoulos et al., 2020)."""
    b = Blocks("linear_attention", seed)
    g, head = b.g, hidden // heads
    x = g.input("x", np.float32, [1, sequence, hidden])
    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden), [1, sequence, heads, head]) for _ in range(3))
        q, k = (g.op("Add", g.op("Elu", y), g.f32(1.0)) for y in (q, k))
        pairs = g.op("Mul", g.op("Unsqueeze", k, g.const([4])), g.op("Unsqueeze", v, g.const([3])))
        states = g.op("CumSum", pairs, g.const(2))  # [1, heads, sequence, head, head]
        above = g.op("Squeeze", g.op("MatMul", g.op("Unsqueeze", q, g.const([3])), states), g.const([3]))
        below = g.op("ReduceSum", g.op("Mul", q, g.op("CumSum", k, g.const(2))), g.const([3]), keepdims=1)
        y = g.op("Transpose", g.op("Div", above, below), perm=[0, 2, 1, 3])
        x = g.op("Add", x, b.linear(g.op("Reshape", y, g.const([1, sequence, hidden])), hidden, hidden))
    g.output(b.norm(x, hidden), "y", np.float32, [1, sequence, hidden])
    return g.model()
