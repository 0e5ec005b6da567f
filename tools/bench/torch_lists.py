# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of `examples/fractal` in eager PyTorch: nested Python lists of tensors, and loops.

Each takes the arguments of its example, in that order, and gives what it gives.
"""

from __future__ import annotations

import math
from typing import Any

import torch

Leaf = torch.Tensor
Leaves = list[torch.Tensor]


def stacked_lstm(xss: list[Leaves], ws: list[Leaves], us: list[Leaves], bs: list[Leaves]) -> list[Leaves]:
    """xss[time][sentence]; parameters[layer][gate]."""
    for weights, recurrent, biases in zip(ws, us, bs, strict=True):
        states = [(torch.zeros_like(x), torch.zeros_like(x)) for x in xss[0]]
        hss = []
        for xs in xss:
            states = [
                _cell(h, c, [x @ w + h @ u + b for w, u, b in zip(weights, recurrent, biases, strict=True)])
                for (h, c), x in zip(states, xs, strict=True)
            ]
            hss.append([h for h, _ in states])
        xss = hss
    return xss


def _cell(h: Leaf, c: Leaf, gates: Leaves) -> tuple[Leaf, Leaf]:
    i, f, o = (torch.sigmoid(gate) for gate in gates[:3])
    c = f * c + i * torch.tanh(gates[3])
    return o * torch.tanh(c), c


def dilated_lstm(xss: list[Leaves], ws: Leaves, us: Leaves, bs: Leaves) -> list[Leaves]:
    """xss[sentence][word]; parameters[layer], the four gates side by side."""
    return [_dilated(xs, ws, us, bs) for xs in xss]


def _dilated(xs: Leaves, ws: Leaves, us: Leaves, bs: Leaves) -> Leaves:
    for t, (w, u, b) in enumerate(zip(ws, us, bs, strict=True)):
        hs: Leaves = [xs[0]] * len(xs)
        for first in range(min(2**t, len(xs))):
            h = c = torch.zeros_like(xs[0])
            for at in range(first, len(xs), 2**t):
                h, c = _cell(h, c, list(torch.chunk(xs[at] @ w + h @ u + b, 4, dim=1)))
                hs[at] = h
        xs = hs
    return xs


def grid_rnn(sources: list[Leaves], targets: list[Leaves], *parameters: Leaves) -> tuple[list, list]:
    """sources[sentence][word], targets[sentence][word]; parameters wx, ux, bx, wy, uy, by[layer]."""
    results = [_grid(xs, ys, parameters) for xs, ys in zip(sources, targets, strict=True)]
    return [xss for xss, _ in results], [yss for _, yss in results]


def _grid(source: Leaves, target: Leaves, parameters: tuple[Leaves, ...]) -> tuple[list[Leaves], list[Leaves]]:
    xss, yss = [[x for _ in target] for x in source], [list(target) for _ in source]
    for wx, ux, bx, wy, uy, by in zip(*parameters, strict=True):
        above = [torch.zeros_like(bx) for _ in target]
        next_xss, next_yss = [], []
        for xs, ys in zip(xss, yss, strict=True):
            row_x, row_y, left = [], [], torch.zeros_like(by)
            for up, x, y in zip(above, xs, ys, strict=True):
                state = torch.cat([up, left], dim=1)
                left = torch.tanh(y @ wy + state @ uy + by)
                row_x.append(torch.tanh(x @ wx + state @ ux + bx))
                row_y.append(left)
            above = row_x
            next_xss.append(row_x)
            next_yss.append(row_y)
        xss, yss = next_xss, next_yss
    return xss, yss


def b2b_gemm(a: list[Leaves], b: list[Leaves], c: list[Leaves]) -> list[Leaves]:
    """a[M/m][K/k], b[N/n][K/k], c[P/p][N/n]."""
    return [[_b2b_block(row, b, column) for column in c] for row in a]


def _b2b_block(row: Leaves, b: list[Leaves], column: Leaves) -> Leaf:
    parts = []
    for bs, below in zip(b, column, strict=True):
        parts.append(_total([x @ y for x, y in zip(row, bs, strict=True)]) @ below)
    return _total(parts)


def _total(xs: Leaves) -> Leaf:
    result = xs[0]
    for x in xs[1:]:
        result = result + x
    return result


def attention(qsss: list[list[Leaves]], ksss: list[list[Leaves]], vsss: list[list[Leaves]]) -> list[list[Leaves]]:
    """[batch][head][block]: a running softmax over blocks of keys and values."""
    return [
        [[_fold(q, ks, vs) for q in qs] for qs, ks, vs in zip(*heads, strict=True)]
        for heads in zip(qsss, ksss, vsss, strict=True)
    ]


def _fold(q: Leaf, ks: Leaves, vs: Leaves) -> Leaf:
    m, s, o = torch.full((q.shape[0], 1), -math.inf), torch.zeros(q.shape[0], 1), torch.zeros_like(q)
    for k, v in zip(ks, vs, strict=True):
        scores = q @ k.T
        top = torch.amax(scores, 1, keepdim=True)
        exps = torch.exp(scores - top)
        largest = torch.maximum(m, top)
        old, new = torch.exp(m - largest) * s, torch.exp(top - largest)
        both = old + new * exps.sum(1, keepdim=True)
        m, s, o = largest, both, (o * old + new * (exps @ v)) / both
    return o


def bigbird(qss: list[Leaves], kss: list[Leaves], vss: list[Leaves]) -> list[Leaves]:
    """[sentence][block]: two blocks at each end attend to all, others to both ends and a window of three."""
    return [_sentence(qs, ks, vs) for qs, ks, vs in zip(qss, kss, vss, strict=True)]


def _sentence(qs: Leaves, ks: Leaves, vs: Leaves) -> Leaves:
    keys, values = torch.cat(ks), torch.cat(vs)
    result = []
    for i, q in enumerate(qs):
        if 2 <= i < len(qs) - 2:
            near, there = [ks[0], *ks[i - 1 : i + 2], ks[-1]], [vs[0], *vs[i - 1 : i + 2], vs[-1]]
            result.append(_attend(q, torch.cat(near), torch.cat(there)))
        else:
            result.append(_attend(q, keys, values))
    return result


def _attend(q: Leaf, k: Leaf, v: Leaf) -> Leaf:
    return torch.softmax(q @ k.T, dim=-1) @ v


def tree_lstm(tree: Any, w: Leaf, u: Leaf, b: Leaf) -> tuple[Leaf, Leaf]:
    """A leaf, or (left, right); gates i, o, u, then both forget gates."""
    if not isinstance(tree, tuple):
        i, o, new = torch.chunk(tree @ w + b[:, : w.shape[1]], 3, dim=1)
        c = torch.sigmoid(i) * torch.tanh(new)
        return torch.sigmoid(o) * torch.tanh(c), c
    (hl, cl), (hr, cr) = (tree_lstm(part, w, u, b) for part in tree)
    i, o, new, fl, fr = torch.chunk(torch.cat([hl, hr], dim=1) @ u + b, 5, dim=1)
    c = torch.sigmoid(i) * torch.tanh(new) + torch.sigmoid(fl) * cl + torch.sigmoid(fr) * cr
    return torch.sigmoid(o) * torch.tanh(c), c


def recursive_autoencoder(tree: Any, w: Leaf, b: Leaf) -> Leaf:
    """A leaf, or (left, right): a layer joins two vectors."""
    if not isinstance(tree, tuple):
        return tree
    left, right = (recursive_autoencoder(part, w, b) for part in tree)
    return torch.tanh(torch.cat([left, right], dim=1) @ w + b)


def tree_of(leaves: Leaf, children: list[list[int]]) -> Any:
    """Nested pairs of leaves; nodes stand behind their children, the root is the last one."""
    nodes: list[Any] = [leaf.contiguous() for leaf in leaves]
    for left, right in children[len(leaves) :]:
        nodes.append((nodes[left], nodes[right]))
    return nodes[-1]


def nested(x: Leaf, depth: int) -> Any:
    """A tensor whose first axes are levels as nested lists of its leaves."""
    return [nested(part, depth - 1) for part in x] if depth else x.contiguous()


def stacked(value: Any) -> Leaf:
    """Nested lists of leaves as one tensor."""
    return torch.stack([stacked(part) for part in value]) if isinstance(value, list) else value


PROGRAMS = {
    program.__name__: program
    for program in (
        *(stacked_lstm, dilated_lstm, grid_rnn, b2b_gemm, attention, bigbird),
        *(tree_lstm, recursive_autoencoder),
    )
}
