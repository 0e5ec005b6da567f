# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the six benchmark programs compute, as loops over NumPy arrays: axes are levels, then those of the leaves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "fractal"


def example(name: str) -> ModuleType:
    """The module of a program."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def lstm_step(h, c, x, gates):
    """The next h and c; gates: for i, f, o, g a triple of weights and bias."""
    i, f, o, g = (x @ w + h @ u + b for w, u, b in gates)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def stacked_lstm(xss, ws, us, bs):
    for layer in range(len(ws)):
        gates = [(ws[layer, k], us[layer, k], bs[layer, k]) for k in range(4)]
        out = np.zeros_like(xss)
        for n in range(xss.shape[1]):
            h = c = np.zeros(xss.shape[2:])
            for t in range(len(xss)):
                h, c = lstm_step(h, c, xss[t, n], gates)
                out[t, n] = h
        xss = out
    return xss


def dilated_lstm(xss, ws, us, bs):
    for layer in range(len(ws)):
        zero, hidden = np.zeros(xss.shape[2:]), xss.shape[-1]
        parts = [slice(k * hidden, (k + 1) * hidden) for k in range(4)]
        gates = [(ws[layer][:, p], us[layer][:, p], bs[layer][:, p]) for p in parts]
        out, distance = np.zeros_like(xss), 2**layer
        for n in range(len(xss)):
            state = {}
            for t in range(xss.shape[1]):
                h, c = state.get(t - distance, (zero, zero))
                state[t] = lstm_step(h, c, xss[n, t], gates)
                out[n, t] = state[t][0]
        xss = out
    return xss


def grid_rnn(sources, targets, wx, ux, bx, wy, uy, by):
    (batch, rows), columns, leaf = sources.shape[:2], targets.shape[1], sources.shape[2:]
    x = np.broadcast_to(sources[:, :, None], (batch, rows, columns, *leaf))
    y = np.broadcast_to(targets[:, None], (batch, rows, columns, *leaf))
    for d in range(len(wx)):
        hx, hy = np.zeros((2, batch, rows + 1, columns + 1, *leaf))  # row and column 0 are the border
        for n, i, j in np.ndindex(batch, rows, columns):
            s = np.concatenate([hx[n, i, j + 1], hy[n, i + 1, j]], 1)
            hx[n, i + 1, j + 1] = np.tanh(x[n, i, j] @ wx[d] + s @ ux[d] + bx[d])
            hy[n, i + 1, j + 1] = np.tanh(y[n, i, j] @ wy[d] + s @ uy[d] + by[d])
        x, y = hx[:, 1:, 1:], hy[:, 1:, 1:]
    return x, y


def b2b_gemm(a, b, c):
    whole = [m.swapaxes(1, 2).reshape(m.shape[0] * m.shape[2], -1) for m in (a, b.swapaxes(0, 1), c.swapaxes(0, 1))]
    product = whole[0] @ whole[1] @ whole[2]
    return product.reshape(len(a), a.shape[2], len(c), c.shape[3]).swapaxes(1, 2)


def attention(q, k, v):
    rows = [m.reshape(*m.shape[:2], -1, m.shape[-1]) for m in (q, k, v)]
    return (softmax(rows[0] @ rows[1].swapaxes(2, 3)) @ rows[2]).reshape(q.shape)


def bigbird(q, k, v):
    out, count = np.zeros_like(q), q.shape[1]
    for n, i in np.ndindex(*q.shape[:2]):
        near = [0, (i - 1) % count, i, (i + 1) % count, count - 1] if 2 <= i < count - 2 else range(count)
        keys, rows = (np.concatenate([m[n, j] for j in near]) for m in (k, v))
        out[n, i] = softmax(q[n, i] @ keys.T) @ rows
    return out
