# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nodes that stand beside attention (rotary embeddings, norms, embeddings), quantized attention, ai.onnx's."""

from __future__ import annotations

import numpy as np
from attention_cases import (
    F32,
    I64,
    LOWEST,
    Case,
    Draw,
    Given,
    common,
    group_query,
    multi_head,
    padding,
    self_attention,
    trimmed,
)


def _tables(d: Draw, half: int) -> list[Given | None]:
    angle = d.random.uniform(0, 6, (24, half))
    return [Given(f(angle).astype(F32), angle.shape, True) for f in (np.cos, np.sin)]


def rotary(seed: int) -> Case:
    """com.microsoft's RotaryEmbedding."""
    d = Draw(seed)
    heads, size, half = d.pick(1, 2, 4), d.pick(4, 8), 0
    attributes: dict = {"interleaved": d.pick(0, 1)}
    if d.chance(0.4):
        half = size // 4
        attributes.update(rotary_embedding_dim=2 * half, num_heads=heads)
    elif d.chance(0.3):
        attributes["num_heads"] = heads
    split = d.chance(0.4)
    x = d.real("batch", heads, "rows", size) if split else d.real("batch", "rows", heads * size)
    places = d.whole(0, 12, 1, dtype=I64) if d.chance(0.4) else d.whole(0, 23, "batch", "rows", dtype=I64)
    return Case("RotaryEmbedding", [x, places, *_tables(d, half or size // 2)], ["float"], attributes, opens=d.opens())


def standard_rotary(seed: int) -> Case:
    """ai.onnx's RotaryEmbedding; without positions the tables are [batch, sequence, half]."""
    d = Draw(seed)
    heads, size, half = d.pick(1, 2, 4), d.pick(4, 8), 0
    attributes: dict = {"interleaved": d.pick(0, 1)}
    if d.chance(0.4):
        half = size // 4
        attributes["rotary_embedding_dim"] = 2 * half
    split = d.chance(0.5)
    if not split or d.chance(0.3):
        attributes["num_heads"] = heads
    x = d.real("batch", heads, "rows", size) if split else d.real("batch", "rows", heads * size)
    half = half or size // 2
    if d.chance(0.5):
        given = [x, *_tables(d, half), d.whole(0, 23, "batch", "rows", dtype=I64)]
    else:
        given = [x, d.real("batch", "rows", half), d.real("batch", "rows", half)]
    return Case("RotaryEmbedding", given, ["float"], attributes, domain="", opset=23, opens=d.opens())


def skip_norm(seed: int) -> Case:
    """SkipLayerNormalization and SkipSimplifiedLayerNormalization."""
    d = Draw(seed)
    width, plain = d.pick(1, 5, 16), d.chance(0.5)
    flat = d.chance(0.2)
    x = d.real("rows", width) if flat else d.real("batch", "rows", width)
    skip = d.real("rows", width) if flat else d.real(*d.pick(("batch", "rows"), (1, "rows"), ("rows",)), width)
    scale = [d.real(width, known=d.chance(0.6)) for _ in range(1 if plain else 2)]
    if not plain and d.chance(0.3):
        scale[1] = None
    bias = d.real(width) if d.chance(0.4) else None
    outputs: list[str | None] = ["float", None, None, "float"] if d.chance(0.5) else ["float"]
    attributes = {} if d.chance(0.5) else {"epsilon": 1e-5}
    op = "SkipSimplifiedLayerNormalization" if plain else "SkipLayerNormalization"
    return Case(op, trimmed([x, skip, *scale, bias]), outputs, attributes, opens=d.opens())


def embeddings(seed: int) -> Case:
    """EmbedLayerNormalization."""
    d = Draw(seed)
    width, known, kinds = d.pick(1, 4, 9), d.chance(0.6), d.chance(0.6)
    tables = [d.real(n, width, known=known) for n in (9, 7, 3)]
    given = [
        d.whole(0, 8, "batch", "rows"),
        d.whole(0, 2, "batch", "rows") if kinds else None,
        *tables[:2],
        tables[2] if kinds else None,
        d.real(width, known=known),
        d.real(width, known=known),
        d.bits(0.7, "batch", "rows") if d.chance(0.5) else None,
        d.whole(0, 6, d.pick(1, "batch"), "rows") if d.chance(0.4) else None,
    ]
    outputs: list[str | None] = ["float", "int32", *(["float"] if d.chance(0.4) else [])]
    attributes = {"mask_index_type": 0} if d.chance(0.1) else {}
    return Case("EmbedLayerNormalization", trimmed(given), outputs, attributes, opens=d.opens())


def quantized(seed: int) -> Case:
    """QAttention. Codes are small: ONNX Runtime's sums of pairs saturate on some machines."""
    d = Draw(seed)
    heads, size, inputs = d.pick(1, 2, 4), d.pick(2, 4), d.pick(3, 8)
    width, past, each, known = heads * size, d.chance(0.4), d.chance(0.5), d.chance(0.7)
    held = d.size("past", 0, 6) if past else 0
    d.sizes["total"] = d.sizes["rows"] + held
    kind = d.pick(np.uint8, np.int8)
    low = 0 if kind is np.uint8 else -60
    columns = [3 * width] if each else []
    scale = d.random.uniform(0.01, 0.03, columns).astype(F32)
    zero = np.full(columns, low + 60, kind) if d.chance(0.5) else np.zeros(columns, kind)
    given = [
        d.whole(0, 120, "batch", "rows", inputs, dtype=np.uint8),
        d.whole(low, low + 120, inputs, 3 * width, dtype=kind, known=known),
        d.real(3 * width, known=known),
        Given(np.array(0.02, F32), [], known),
        Given(scale, columns, known),
        padding(d, "total"),
        Given(np.array(60, np.uint8), [], known),
        Given(zero, columns, known),
        d.real(2, "batch", heads, "past", size) if past else None,
    ]
    attributes = common(d, heads)
    outputs: list[str | None] = ["float"] * (2 if past or d.chance(0.3) else 1)
    return Case("QAttention", trimmed(given), outputs, attributes, opens=d.opens([("total", ("rows", "past"))]))


def _standard_mask(d: Draw, heads: int, cut: bool) -> Given | None:
    """A mask of ai.onnx: bool or added, of two to four dimensions."""
    if d.chance(0.4):
        return None
    rank = d.pick(2, 3, 4)
    dims = [d.pick(1, "batch"), d.pick(1, heads), d.pick("rows", "rows", 1), "total"][4 - rank :]
    if cut and d.sizes["total"] > 1 and d.chance(0.3):
        d.sizes["shown"] = d.sizes["total"] - 1
        dims[-1] = "shown"
    return d.bits(0.7, *dims, dtype=np.bool_) if d.chance(0.5) else d.real(*dims)


def standard(seed: int) -> Case:
    """ai.onnx's Attention of opsets 23 and 24."""
    d = Draw(seed)
    few = d.pick(1, 2)
    heads, size, value = few * d.pick(1, 2), d.pick(2, 4, 8), d.pick(2, 4)
    opset, past = d.pick(23, 24), d.chance(0.4)
    held = d.size("past", 0, 5) if past else 0
    d.size("keys", 1, 6) if d.chance(0.6) else d.size("keys", d.sizes["rows"], d.sizes["rows"])
    d.sizes["total"] = d.sizes["keys"] + held
    attributes: dict = {"is_causal": d.pick(0, 1)}
    if past and d.sizes["rows"] == 1 < d.sizes["keys"]:
        attributes["is_causal"] = 0  # by the standard a key behind is hidden, in ONNX Runtime it is not
    if d.chance(0.5):
        attributes.update(q_num_heads=heads, kv_num_heads=few)
        shapes = [("batch", n, c * s) for n, c, s in (("rows", heads, size), ("keys", few, size), ("keys", few, value))]
    else:
        shapes = [("batch", c, n, s) for n, c, s in (("rows", heads, size), ("keys", few, size), ("keys", few, value))]
    for name, number in (("scale", 0.3), ("softcap", 2.0), ("softmax_precision", 1)):
        if d.chance(0.25):
            attributes[name] = number
    lengths = None
    if opset == 24 and not past and d.chance(0.3):
        lengths = d.whole(1, d.sizes["keys"], "batch", dtype=I64)
    given = [
        *(d.real(*s) for s in shapes),
        _standard_mask(d, heads, opset == 24),
        *([d.real("batch", few, "past", s) for s in (size, value)] if past else [None, None]),
        lengths,
    ]
    outputs: list[str | None] = ["float"] * (3 if past or d.chance(0.3) else 1)
    if d.chance(0.3):
        outputs = [outputs[0], *(["float"] * 2 if len(outputs) == 3 else [None] * 2), "float"]
        attributes["qk_matmul_output_mode"] = d.pick(0, 1, 2, 3)

    def unspecified(results: list[np.ndarray]) -> None:
        for scores in results:  # of what a mask hides: -inf by the standard, the lowest number in ONNX Runtime
            scores[scores < LOWEST / 2] = np.nan

    opens = d.opens([("total", ("keys", "past")), ("shown", ("keys", "past"))])
    return Case("Attention", trimmed(given), outputs, attributes, "", opset=opset, opens=opens, unspecified=unspecified)


#: what draws the cases of each operator, by a name
FAMILIES = {
    "self": self_attention,
    "multi": multi_head,
    "group": group_query,
    "rotary": rotary,
    "standard-rotary": standard_rotary,
    "skip-norm": skip_norm,
    "embeddings": embeddings,
    "quantized": quantized,
    "standard": standard,
}
