# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stack of ONNX LSTM nodes, laid out as the PyTorch exporter does (sequence first, one direction)."""

from __future__ import annotations

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights


def lstm(
    layers: int = 4,
    hidden: int = 256,
    inputs: int = 256,
    sequence: int = 100,
    batch: int = 1,
    initial_state: bool = False,
    seed: int = 0,
) -> onnx.ModelProto:
    """`x` [sequence, batch, inputs] -> `y` [sequence, batch, hidden], `h`, `c` [layers, batch, hidden].

    With initial_state the graph takes `h0` and `c0` [layers, batch, hidden]; otherwise the state starts at zero.
    """
    g, w = GraphBuilder("lstm"), Weights(seed)
    x = g.input("x", np.float32, [sequence, batch, inputs])
    state = [g.input(n, np.float32, [layers, batch, hidden]) for n in ("h0", "c0")] if initial_state else []
    last: list[tuple[str, str]] = []
    for i in range(layers):
        with g.scope(f"lstm.{i}"):
            width = inputs if i == 0 else hidden
            kernel = g.weight(w.linear(4 * hidden, width, gain=1.0 if i == 0 else 4.0)[None], "W")
            recurrent = g.weight(w.linear(4 * hidden, hidden)[None], "R")
            bias = g.weight(w.normal(1, 8 * hidden, scale=0.1), "B")
            bounds = [g.const([i]), g.const([i + 1]), g.const([0])]
            start = [g.op("Slice", s, *bounds) for s in state]
            ends = ["", *start] if start else []  # "" = sequence_lens is not given
            y, h, c = g.ops("LSTM", x, kernel, recurrent, bias, *ends, outputs=3, hidden_size=hidden)
            x = g.op("Squeeze", y, g.const([1]))
            last.append((h, c))
    g.output(x, "y", np.float32, [sequence, batch, hidden])
    for position, name in enumerate(("h", "c")):
        states = [pair[position] for pair in last]
        value = g.op("Concat", *states, axis=0) if layers > 1 else states[0]
        g.output(value, name, np.float32, [layers, batch, hidden])
    return g.model()
