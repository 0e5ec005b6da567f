# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Triton in their usual forms, as peers: products, rows (softmax, norms), attention without gradients.

Tiles are the best of a short list, timed once (``triton.autotune``). Our compiler neither reads nor uses any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from bench.gpu.far.peers import Given, Skip

_TILES = [
    triton.Config({"M": m, "N": n, "K": k, "GROUP": 8}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in (
        (128, 256, 64, 8, 3),
        (128, 128, 64, 4, 4),
        (128, 128, 32, 4, 4),
        (64, 128, 64, 4, 4),
        (64, 64, 64, 4, 4),
        (16, 128, 128, 4, 4),
    )
]


@triton.autotune(_TILES, key=["m", "n", "k"])
@triton.jit
def _matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    """c [m, n] = a [m, k] b [k, n], all row-major; tasks in groups of rows for the L2 cache."""
    rows, columns = tl.cdiv(m, M), tl.cdiv(n, N)
    task = tl.program_id(0)
    first = task // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    inside = task % (GROUP * columns)
    i = (first + inside % size) * M + tl.arange(0, M)
    j = inside // size * N + tl.arange(0, N)
    p = tl.arange(0, K)
    at_a = a + (i % m)[:, None].to(tl.int64) * k + p[None, :]
    at_b = b + p[:, None].to(tl.int64) * n + (j % n)[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        left = k - step * K
        x = tl.load(at_a, mask=p[None, :] < left, other=0.0)
        y = tl.load(at_b, mask=p[:, None] < left, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        at_a += K
        at_b += K * n
    place = c + i[:, None].to(tl.int64) * n + j[None, :]
    tl.store(place, total.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def _softmax(x, y, columns, SIZE: tl.constexpr):
    """One row per task."""
    place = tl.program_id(0).to(tl.int64) * columns + tl.arange(0, SIZE)
    inside = tl.arange(0, SIZE) < columns
    row = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    power = tl.exp(row - tl.max(row, 0))
    tl.store(y + place, (power / tl.sum(power, 0)).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _norm(x, scale, shift, y, columns, epsilon, CENTER: tl.constexpr, SIZE: tl.constexpr):
    """LayerNormalization (CENTER) or RMSNormalization, one row per task."""
    column = tl.arange(0, SIZE)
    place = tl.program_id(0).to(tl.int64) * columns + column
    inside = column < columns
    row = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    if CENTER:
        row = tl.where(inside, row - tl.sum(row, 0) / columns, 0.0)
    row = row * tl.rsqrt(tl.sum(row * row, 0) / columns + epsilon)
    row = row * tl.load(scale + column, mask=inside, other=0.0).to(tl.float32)
    if CENTER:
        row += tl.load(shift + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, row.to(y.dtype.element_ty), mask=inside)


_BLOCKS = [
    triton.Config({"M": m, "N": n}, num_warps=warps, num_stages=stages)
    for m, n, warps, stages in ((128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3))
]


@triton.autotune(_BLOCKS, key=["queries", "keys", "CAUSAL"])
@triton.jit
def _attention(
    q,
    k,
    v,
    y,
    queries,
    keys,
    heads,
    group,
    scale,
    DEPTH: tl.constexpr,
    CAUSAL: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
):
    """Online softmax over blocks of keys; a task has M queries of one head. All tensors [batch, heads, rows, DEPTH]."""
    head = tl.program_id(1).to(tl.int64)
    other = head // heads * (heads // group) + head % heads // group
    i = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, DEPTH)
    at = head * queries * DEPTH + i[:, None] * DEPTH + d[None, :]
    block = tl.load(q + at, mask=i[:, None] < queries, other=0.0)
    top = tl.full((M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((M,), dtype=tl.float32)
    result = tl.zeros((M, DEPTH), dtype=tl.float32)
    factor = scale * 1.4426950408889634
    end = min(keys, (tl.program_id(0) + 1) * M) if CAUSAL else keys
    for start in range(0, end, N):
        j = start + tl.arange(0, N)
        place = other * keys * DEPTH + j[:, None] * DEPTH + d[None, :]
        x = tl.load(k + place, mask=j[:, None] < keys, other=0.0)
        scores = tl.dot(block, tl.trans(x)) * factor
        keep = j[None, :] < keys
        if CAUSAL:
            keep = keep & (j[None, :] <= i[:, None])
        scores = tl.where(keep, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        power = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(power, 1)
        x = tl.load(v + place, mask=j[:, None] < keys, other=0.0)
        result = tl.dot(power.to(x.dtype), x, result * shrink[:, None])
        top = higher
    tl.store(y + at, (result / total[:, None]).to(y.dtype.element_ty), mask=i[:, None] < queries)


def matmul(inputs: Sequence[torch.Tensor], attributes: Mapping[str, Any]) -> Callable[[], list[torch.Tensor]]:
    """The product of two matrices."""
    a, b = inputs
    m, k, n = *a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)

    def call() -> list[torch.Tensor]:
        _matmul[lambda meta: (triton.cdiv(m, meta["M"]) * triton.cdiv(n, meta["N"]),)](a, b, c, m, n, k)
        return [c]

    return call


def softmax(inputs: Sequence[torch.Tensor], attributes: Mapping[str, Any]) -> Callable[[], list[torch.Tensor]]:
    """Over the last dimension of a matrix."""
    x = inputs[0]
    y, (rows, columns) = torch.empty_like(x), x.shape
    size = triton.next_power_of_2(columns)

    def call() -> list[torch.Tensor]:
        _softmax[(rows,)](x, y, columns, SIZE=size, num_warps=8)
        return [y]

    return call


def norm(inputs: Sequence[torch.Tensor], attributes: Mapping[str, Any]) -> Callable[[], list[torch.Tensor]]:
    """Of the rows of a matrix, centered where there is a shift."""
    x, scale, *shift = inputs
    y, (rows, columns) = torch.empty_like(x), x.shape
    size, epsilon = triton.next_power_of_2(columns), attributes.get("epsilon", 1e-5)
    given = (x, scale, shift[0] if shift else scale, y, columns, epsilon)

    def call() -> list[torch.Tensor]:
        _norm[(rows,)](*given, CENTER=bool(shift), SIZE=size, num_warps=8)
        return [y]

    return call


def attention(inputs: Sequence[torch.Tensor], attributes: Mapping[str, Any]) -> Callable[[], list[torch.Tensor]]:
    """Of the operator Attention, without a mask's tensor."""
    q, k, v = inputs
    batch, heads, queries, depth = q.shape
    y, keys, group, causal = torch.empty_like(q), k.shape[2], heads // k.shape[1], bool(attributes.get("is_causal"))
    given = (q, k, v, y, queries, keys, heads, group, attributes.get("scale", depth**-0.5))

    def call() -> list[torch.Tensor]:
        _attention[lambda meta: (triton.cdiv(queries, meta["M"]), batch * heads)](*given, DEPTH=depth, CAUSAL=causal)
        return [y]

    return call


_KERNELS = {
    "MatMul": matmul,
    "Softmax": softmax,
    "LayerNormalization": norm,
    "RMSNormalization": norm,
    "Attention": attention,
}


def make(given: Given) -> Callable[[], list[torch.Tensor]]:
    """The kernel for a case of one operator.

    Raises:
        Skip: there is none.
    """
    nodes = [node for node in given.case["graph"]["nodes"] if node["op"] != "Identity"]
    if len(nodes) != 1 or nodes[0]["op"] not in _KERNELS:
        raise Skip("no kernel in Triton for this graph")
    return _KERNELS[nodes[0]["op"]]([*given.inputs, *given.weights], nodes[0]["attributes"])
