# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scaled dot-product attention: products over grouped heads, masks as row bounds, softmax.

Inside, queries are [batch, key heads, group, rows, size] and keys and values [batch, key heads, columns, size]: a group
of query heads reads one key head by its indexing map. Narrow floats are rounded after each step, as ONNX defines the
operator; sums are taken in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import is_bool, is_narrow, promoted
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import sum_of_products
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.registry import Builder, Node, op

_ROWS, _COLUMNS = 3, 4  # dimensions of the scores
_INFINITY = float("inf")
_POSITION = np.dtype(np.int32)  # as wide as the scores: one vector shape for both
_WIDEST = 1 << 30  # positions plus such a window are positions too


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values, split into heads."""

    q: Tensor  # [batch, query heads, rows, size]
    k: Tensor  # [batch, key heads, columns, size]
    v: Tensor  # [batch, key heads, columns, value size]

    def grouped(self, b: Builder) -> Tensor:
        """The queries by the key head that they read."""
        batch, heads, rows, size = self.q.shape
        return b.reshape(self.q, (batch, self.k.shape[1], heads // self.k.shape[1], rows, size))


def _split_heads(b: Builder, node: Node, x: Tensor, attribute: str) -> Tensor:
    """[batch, sequence, heads * size] to [batch, heads, sequence, size]."""
    count = node.attr(attribute)
    if not count or x.shape[2] % count:
        node.wrong(f"{x.shape[2]} columns do not divide into {attribute}={count} heads")
    split = b.reshape(x, (x.shape[0], x.shape[1], count, x.shape[2] // count))
    return split.transpose([0, 2, 1, 3])


def _heads(b: Builder, node: Node, q: Tensor, k: Tensor, v: Tensor) -> Heads:
    if not q.rank == k.rank == v.rank or q.rank not in (3, 4):
        node.wrong(f"Q, K and V have {q.rank}, {k.rank} and {v.rank} dimensions; all need 3, or all 4")
    if q.rank == 3:
        q = _split_heads(b, node, q, "q_num_heads")
        k, v = (_split_heads(b, node, x, "kv_num_heads") for x in (k, v))
    if k.shape[1] != v.shape[1] or q.shape[1] % k.shape[1]:
        node.wrong(f"{q.shape[1]} heads of queries, {k.shape[1]} of keys and {v.shape[1]} of values do not fit")
    return Heads(q, k, v)


def scores(b: Builder, heads: Heads, scale: float) -> Tensor:
    """Scaled products of all queries with all keys: [batch, key heads, group, rows, columns].

    Narrow floats are scaled before the product, half on each side, so that it does not overflow.
    """
    q, k = heads.grouped(b), heads.k
    if is_narrow(q.dtype):
        root = float(np.asarray(scale**0.5, q.dtype))
        q, k = (b.elementwise(lambda m, x: x * root, x) for x in (q, k))
        scale = 1.0
    space = Space([*q.shape[:4], k.shape[2], q.shape[4]], frozenset([5]))
    product = sum_of_products(b, space, [(q, [0, 1, 2, 3, 5]), (k, [0, 1, 4, 5])], range(5))
    return product if scale == 1.0 else b.elementwise(lambda m, s: s * scale, product)


def weigh(b: Builder, probabilities: Tensor, heads: Heads, dtype: np.dtype, rows_first: bool) -> Tensor:
    """Sums of the values: [batch, heads, rows, value size], or [batch, rows, heads * value size]."""
    p, v = probabilities, heads.v
    space = Space([*p.shape[:4], v.shape[3], p.shape[4]], frozenset([5]))
    operands = [(p, [0, 1, 2, 3, 5]), (v, [0, 1, 5, 4])]
    batch, key_heads, group, rows, _ = p.shape
    if not rows_first:
        y = sum_of_products(b, space, operands, range(5), dtype)
        return b.reshape(y, (batch, key_heads * group, rows, v.shape[3]))
    y = sum_of_products(b, space, operands, [0, 3, 1, 2, 4], dtype, [0, 3, 1, 2, 4])
    return b.reshape(y, (batch, rows, key_heads * group * v.shape[3]))


def ungrouped(b: Builder, x: Tensor) -> Tensor:
    """Scores as [batch, heads, rows, columns]."""
    batch, key_heads, group, rows, columns = x.shape
    return b.reshape(x, (batch, key_heads * group, rows, columns))


# Masks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mask:
    """Which columns a row sees: those from `low` to `high` where `given` does not forbid them."""

    low: Tensor | None
    high: Tensor | None
    given: Tensor | None  # bool, or floats that are added
    columns: Tensor  # their numbers
    hidden: float = -_INFINITY  # the score of a column that is not seen

    def inputs(self) -> list[Tensor]:
        """The tensors that `allowed` reads."""
        bounds = [x for x in (self.low, self.high) if x is not None]
        return [*([self.columns, *bounds] if bounds else []), *([] if self.given is None else [self.given])]

    def allowed(self, m, values: Sequence) -> tuple[Any, Any]:
        """Whether an element is seen (None: always) and what is added to it (None: nothing)."""
        rest, conditions = iter(values), []
        if self.low is not None or self.high is not None:
            column = next(rest)
            conditions += [column >= next(rest)] if self.low is not None else []
            conditions += [column <= next(rest)] if self.high is not None else []
        added = None
        if self.given is not None:
            value = next(rest)
            conditions, added = ([*conditions, value], None) if is_bool(self.given.dtype) else (conditions, value)
        return _all(m, conditions), added


def _all(m, conditions: Sequence) -> Any:
    return functools.reduce(m.logical_and, conditions) if conditions else None


def _bounds(b: Builder, node: Node, rows: Size, past: Size, lengths: Tensor | None) -> list[Tensor | None]:
    """The first and last column that each row sees: [rows, 1], with a batch in front for run-time lengths."""
    causal = node.attr("is_causal", 0)
    left, right = (min(node.attr(f"{side}_window_size", -1), _WIDEST) for side in ("left", "right"))
    ends = [right] if right >= 0 else []
    ends += [0] if causal else []
    low = high = None
    if ends or left >= 0:
        start = b.size_tensor(past, _POSITION)
        if lengths is not None:
            start = b.elementwise(lambda m, n, r: n - r, lengths, b.size_tensor(rows, _POSITION))
        row = b.elementwise(lambda m, r, s: r + s, b.positions(rows, _POSITION).unsqueeze([1]), start)
        low = b.elementwise(lambda m, r: r - left, row) if left >= 0 else None
        high = b.elementwise(lambda m, r: r + min(ends), row) if ends else None
    if lengths is not None:
        last = b.elementwise(lambda m, n: n - 1, lengths)
        high = last if high is None else b.elementwise(lambda m, h, n: m.minimum(h, n), high, last)
    return [low, high]


def _given_mask(b: Builder, node: Node, mask: Tensor | None, q: Tensor, groups: int, columns: Size) -> Tensor | None:
    """The mask as [batch, key heads, group, rows, columns]; absent columns are forbidden."""
    if mask is None:
        return None
    if mask.rank == 0 or mask.rank > 4:
        node.wrong(f"the mask has {mask.rank} dimensions; 1 to 4 are allowed")
    if not is_bool(mask.dtype):
        mask = b.cast(mask, q.dtype)
    missing = columns - mask.shape[-1]
    if isinstance(missing, int) and missing < 0:
        node.wrong(f"the mask has {mask.shape[-1]} columns for {columns} keys")
    edge = [0] * (mask.rank - 1)
    mask = b.pad(mask, [*edge, 0], [*edge, missing], 0 if is_bool(mask.dtype) else -_INFINITY)
    mask = mask.unsqueeze(range(4 - mask.rank))
    batch, heads, rows, columns = mask.shape
    heads = (1, 1) if isinstance(heads, int) and heads == 1 else (heads // groups, groups)
    return b.reshape(mask, (batch, *heads, rows, columns))


def may_hide_rows(mask: Mask) -> bool:
    """Whether a row may see no column at all."""
    bounds = [x for x in (mask.low, mask.high) if x is not None]
    count = mask.columns.shape[0]
    if mask.given is not None:
        return True
    if not isinstance(count, int) or not all(x.is_known for x in bounds):
        return bool(bounds)
    low = 0 if mask.low is None else mask.low.numpy()
    high = count - 1 if mask.high is None else mask.high.numpy()
    return not np.all((low < count) & (high >= 0) & (low <= high))


def masked(b: Builder, x: Tensor, mask: Mask) -> Tensor:
    """Scores with what the mask adds, `mask.hidden` where it forbids."""
    inputs = mask.inputs()
    if not inputs:
        return x

    def body(m, x, *values):
        condition, added = mask.allowed(m, values)
        total = x if added is None else x + added
        return total if condition is None else m.where(condition, total, mask.hidden)

    return b.elementwise(body, x, *inputs)


# Operators ------------------------------------------------------------------------------------------------------


def _join(b: Builder, node: Node, past: Tensor | None, x: Tensor) -> Tensor:
    return x if past is None else b.concat([past, x], 2)


def _precision(node: Node, default: np.dtype) -> np.dtype:
    return dtype_attribute(node, "softmax_precision", default)


def _scale(node: Node, size: Size) -> float:
    given = node.attr("scale")
    if isinstance(size, int) and size == 0:
        node.wrong("heads have no elements")
    if given is None and not isinstance(size, int):
        node.unsupported("the default scale of heads whose size is known at run time only; state `scale`")
    return size**-0.5 if given is None and isinstance(size, int) else float(given)


def _capped(b: Builder, node: Node, x: Tensor) -> Tensor:
    cap = node.attr("softcap", 0.0)
    return x if cap <= 0.0 else b.elementwise(lambda m, s: m.tanh(s * (1.0 / cap)) * cap, x)


def _build_mask(b: Builder, node: Node, heads: Heads, given: Tensor | None, past: Size, lengths: Tensor | None) -> Mask:
    rows, columns = heads.q.shape[2], heads.k.shape[2]
    if lengths is not None:
        lengths = b.cast(lengths, _POSITION).unsqueeze([1, 2, 3, 4])
    low, high = _bounds(b, node, rows, past, lengths)
    many, few = heads.q.shape[1], heads.k.shape[1]
    if isinstance(many, int) and isinstance(few, int) and (few == 0 or many % few or many == 0):
        node.wrong(f"{many} heads of queries do not fit {few} heads of keys")
    groups = many // few
    given = _given_mask(b, node, given, heads.q, groups, columns)
    return Mask(low, high, given, b.positions(columns, _POSITION))


@op("Attention", since=23)
def attention(
    b: Builder,
    node: Node,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
) -> list[Tensor]:
    """Multi-head, grouped- and multi-query; a cache inside (past and present) or outside (lengths of valid keys)."""
    if (past_key is None) != (past_value is None):
        node.wrong("past_key and past_value come together")
    if past_key is not None and lengths is not None:
        node.wrong("nonpad_kv_seqlen and past_key exclude each other")
    new = _heads(b, node, q, k, v)
    heads = Heads(new.q, _join(b, node, past_key, new.k), _join(b, node, past_value, new.v))
    seen = _build_mask(b, node, heads, mask, 0 if past_key is None else past_key.shape[2], lengths)
    scale = _scale(node, heads.q.shape[3])
    plain = scores(b, heads, scale)
    capped = _capped(b, node, plain)
    biased = masked(b, capped, seen)
    scaled = b.cast(biased, _precision(node, biased.dtype))
    probabilities = softmax(b, scaled, [_COLUMNS], zeros=may_hide_rows(seen))
    y = weigh(b, b.cast(probabilities, q.dtype), heads, q.dtype, q.rank == 3)
    results = [y, heads.k, heads.v]
    if len(node.proto.output) > 3:
        stages = (plain, capped, biased, probabilities)
        mode = node.attr("qk_matmul_output_mode", 0)
        if not 0 <= mode < len(stages):
            node.wrong(f"there is no qk_matmul_output_mode {mode}")
        results.append(b.cast(ungrouped(b, stages[mode]), q.dtype))
    return results


def _modified(b: Builder, node: Node, name: str, x: Tensor) -> Tensor:
    """What the graph attribute `name` makes of the scores; the scores where there is none."""
    if node.attr(name) is None:
        return x
    results = node.graph(name)(ungrouped(b, x))
    if len(results) != 1:
        node.wrong(f"the graph {name} has {len(results)} outputs instead of one")
    return b.reshape(results[0], x.shape)


@op("FlexAttention", domain="ai.onnx.preview")
def flex_attention(b: Builder, node: Node, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with graphs that change the scores and the probabilities."""
    if not q.rank == k.rank == v.rank == 4:
        node.wrong("Q, K and V need 4 dimensions")
    heads = _heads(b, node, q, k, v)
    scale = _scale(node, q.shape[3])
    plain = scores(b, heads, scale)
    plain = b.cast(plain, _precision(node, promoted(plain.dtype)))
    probabilities = softmax(b, _modified(b, node, "score_mod", plain), [_COLUMNS])
    return weigh(b, _modified(b, node, "prob_mod", probabilities), heads, v.dtype, False)
