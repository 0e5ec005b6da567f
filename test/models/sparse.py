# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with pruned weights, and nets whose zeros a run brings; each with inputs that have the zeros.

Sources of the cases: SparTA (OSDI 2022), figure 15; nmSPARSE (MLSys 2023), figures 9 and 10; PIT (SOSP 2023), figures
8, 10 and 15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder
from tilewright.frontend.pruning.requests import parse

from ._graph import Graph
from ._weights import Weights

#: The part of all elements that are scattered in a mixture of blocks and single elements.
RESIDUAL = 0.02
_BLOCK = 32


def pruned_weight(k: int, n: int, pattern: str, seed: int = 0) -> np.ndarray:
    """[k, n], a random matrix pruned by magnitude: a pattern of `tw.sparsify`, "dense", or "mixture@S".

    A mixture has the density 1 - S: `RESIDUAL` of the elements anywhere, the rest in blocks of 32 x 32.
    """
    weight = Weights(seed).linear(n, k).T.copy()
    if pattern == "dense":
        return weight
    scores = np.abs(weight)[None]
    if pattern.startswith("mixture@"):
        sparsity = float(pattern.removeprefix("mixture@"))
        blocks = parse(f"block:{_BLOCK}x{_BLOCK}@{1 - (1 - sparsity - RESIDUAL) / (1 - RESIDUAL):.6f}").keep(scores)
        single = np.random.default_rng(seed + 1).random(scores.shape) < RESIDUAL
        return np.where((blocks | single)[0], weight, np.float32(0))
    return np.where(parse(pattern).keep(scores)[0], weight, np.float32(0))


def pruned_linear(
    m: int = 1024, n: int = 1024, k: int = 1024, pattern: str = "2:4", relu: bool = False, seed: int = 0
) -> onnx.ModelProto:
    """`x` [m, k] -> `y` [m, n]: a product with a constant pruned weight; `relu`: of the positive part of x."""
    g = GraphBuilder("pruned_linear")
    x = g.input("x", np.float32, [m, k])
    product = g.op("MatMul", g.op("Relu", x) if relu else x, g.weight(pruned_weight(k, n, pattern, seed)))
    g.output(product, "y", np.float32, [m, n])
    return g.model()


def _ffn(g: GraphBuilder, w: Weights, x: str, experts: int, hidden: int, wide: int) -> str:
    """Two products for each expert with a ReLU between: [experts or 1, rows, hidden] -> [experts, rows, hidden]."""
    up = g.weight(w.normal(experts, hidden, wide, scale=(2 / hidden) ** 0.5), "up")
    down = g.weight(w.normal(experts, wide, hidden, scale=wide**-0.5), "down")
    return g.op("MatMul", g.op("Relu", g.op("MatMul", x, up)), down)


def moe_dense(
    tokens: int = 1024, experts: int = 64, chosen: int = 2, hidden: int = 256, wide: int = 512, seed: int = 0
) -> onnx.ModelProto:
    """`x` [tokens, hidden], `scores` [tokens, experts] -> `y`: all experts on all tokens, weighted by the gate.

    The gate keeps the best `chosen` scores of a token; the shares of all other experts are zero.
    """
    g, w, f32 = Graph("moe_dense", 17), Weights(seed), np.float32
    x, scores = g.input("x", f32, [tokens, hidden]), g.input("scores", f32, [tokens, experts])
    best, which = g.ops("TopK", scores, g.const([chosen]), outputs=2, axis=-1)
    share = g.op("Softmax", best, axis=-1)
    table = g.op("ScatterElements", g.weight(np.zeros((tokens, experts), f32), "none"), which, share, axis=1)
    weight = g.op("Unsqueeze", g.op("Transpose", table, perm=[1, 0]), g.const([2]))  # [experts, tokens, 1]
    given = _ffn(g, w, g.op("Unsqueeze", x, g.const([0])), experts, hidden, wide)
    y = g.op("ReduceSum", g.op("Mul", given, weight), g.const([0]), keepdims=0)
    g.output(y, "y", f32, [tokens, hidden])
    return g.model()


def moe_padded(
    tokens: int = 1024, experts: int = 64, chosen: int = 2, hidden: int = 256, wide: int = 512, seed: int = 0
) -> onnx.ModelProto:
    """The same layer, each expert on the tokens that `moe_inputs` dispatches to it, padded to the fullest expert.

    `x`, `slots` [experts, room] of token numbers, `place` [tokens, chosen] of rows among all slots, `share` [tokens,
    chosen] -> `y`.
    """
    room = fullest(tokens, experts, chosen, seed)
    g, w, f32 = Graph("moe_padded", 17), Weights(seed), np.float32
    x = g.input("x", f32, [tokens, hidden])
    slots, place = g.input("slots", np.int64, [experts, room]), g.input("place", np.int64, [tokens, chosen])
    share = g.input("share", f32, [tokens, chosen])
    given = _ffn(g, w, g.op("Gather", x, slots, axis=0), experts, hidden, wide)
    rows = g.op("Gather", g.op("Reshape", given, g.const([experts * room, hidden])), place, axis=0)
    weighted = g.op("Mul", rows, g.op("Unsqueeze", share, g.const([2])))
    y = g.op("ReduceSum", weighted, g.const([1]), keepdims=0)
    g.output(y, "y", f32, [tokens, hidden])
    return g.model()


def zipf_scores(tokens: int, experts: int, seed: int = 0) -> np.ndarray:
    """[tokens, experts]: scores by which expert i is chosen with a chance in proportion to 1 / (i + 1)."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, experts + 1)
    return (np.log(chances / chances.sum()) + random.gumbel(size=(tokens, experts))).astype(np.float32)


def routed(tokens: int, experts: int, chosen: int, seed: int = 0) -> np.ndarray:
    """[tokens, chosen]: the experts of each token, the best first."""
    return np.argsort(-zipf_scores(tokens, experts, seed), axis=1, kind="stable")[:, :chosen]


def fullest(tokens: int, experts: int, chosen: int, seed: int = 0) -> int:
    """How many tokens the fullest expert has."""
    return int(np.bincount(routed(tokens, experts, chosen, seed).reshape(-1), minlength=experts).max())


def padding_ratio(tokens: int, experts: int, chosen: int, seed: int = 0) -> float:
    """Rows of the padded form for each row that is needed."""
    return experts * fullest(tokens, experts, chosen, seed) / (tokens * chosen)


def moe_inputs(
    tokens: int = 1024,
    experts: int = 64,
    chosen: int = 2,
    hidden: int = 256,
    padded: bool = False,
    seed: int = 0,
    **sizes: object,
) -> dict[str, np.ndarray]:
    """Inputs of both forms of the layer; the same tokens go to the same experts."""
    x = np.random.default_rng(seed + 1).standard_normal((tokens, hidden), dtype=np.float32)
    scores = zipf_scores(tokens, experts, seed)
    if not padded:
        return {"x": x, "scores": scores}
    which, room = routed(tokens, experts, chosen, seed), fullest(tokens, experts, chosen, seed)
    best = np.take_along_axis(scores, which, axis=1)
    share = np.exp(best - best.max(axis=1, keepdims=True))
    slots, place = np.zeros((experts, room), np.int64), np.zeros((tokens, chosen), np.int64)
    for expert in range(experts):
        rows, columns = np.nonzero(which == expert)
        slots[expert, : len(rows)] = rows
        place[rows, columns] = expert * room + np.arange(len(rows))
    return {"x": x, "slots": slots, "place": place, "share": share / share.sum(axis=1, keepdims=True)}


def granular_inputs(
    m: int = 1024, k: int = 1024, unit: tuple[int, int] = (1, 1), sparsity: float = 0.9, seed: int = 0, **sizes: object
) -> dict[str, np.ndarray]:
    """`x` [m, k], not negative, of which a part of the units of `unit` rows and columns is zero (0: all of them)."""
    random = np.random.default_rng(seed)
    rows, columns = unit[0] or m, unit[1] or k
    kept = random.random((-(-m // rows), -(-k // columns))) >= sparsity
    mask = np.repeat(np.repeat(kept, rows, axis=0), columns, axis=1)[:m, :k]
    return {"x": np.where(mask, random.random((m, k), np.float32) + np.float32(0.1), np.float32(0))}


def lengths(batch: int, sequence: int, about: int = 30, seed: int = 0) -> np.ndarray:
    """Numbers of tokens of sentences: log-normal about 30, as in GLUE's tasks, at most `sequence`."""
    drawn = np.random.default_rng(seed).lognormal(np.log(about), 0.5, batch)
    return np.clip(drawn.round(), 4, sequence).astype(int)


def ragged_inputs(
    batch: int = 1,
    sequence: int = 128,
    full: bool = False,
    about: int = 30,
    vocabulary: int = 30522,
    seed: int = 0,
    **sizes: object,
) -> dict[str, np.ndarray]:
    """Inputs of an encoder of `bert.py`: sentences of different lengths, or all as long as the room for them."""
    counts = np.full(batch, sequence) if full else lengths(batch, sequence, about, seed)
    ids = np.random.default_rng(seed).integers(0, vocabulary, (batch, sequence), dtype=np.int64)
    mask = (np.arange(sequence) < counts[:, None]).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros((batch, sequence), np.int64)}


#: Makers of inputs, by name: of a model's sizes and further arguments.
INPUTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "granular": granular_inputs,
    "moe": moe_inputs,
    "ragged": ragged_inputs,
}
