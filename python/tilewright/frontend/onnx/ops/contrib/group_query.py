# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GroupQueryAttention with a cache, as ONNX Runtime's model builder writes decoders."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.frontend.builder.dims import Size, maximum, same
from tilewright.frontend.builder.dtypes import I64
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, wanted
from tilewright.frontend.onnx.ops.contrib.heads import Softening, attend, scale_of, split_heads
from tilewright.frontend.onnx.ops.contrib.masks import POSITION
from tilewright.frontend.onnx.ops.contrib.rotary import rotated_heads
from tilewright.frontend.onnx.ops.nn.attention import Heads, Mask, ungrouped
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.ops.tensor.scatter import tensor_scatter
from tilewright.frontend.onnx.registry import Builder, Node, op

_NAMES = (
    "query key value past_key past_value lengths total cos sin positions added sink k_scale v_scale q_norm k_norm"
    " query_lengths"
).split()
_REFUSED = {
    "k_scale": "a cache of codes (k_scale); export the model with a cache of floats",
    "q_norm": "normalized queries and keys (q_norm_weight), which CUDA's kernels alone compute; export without fusion",
    "query_lengths": "chunks with padding behind (query_seqlens); export the model without that input",
}


@dataclass(frozen=True)
class _Cache:
    """Keys and values up to the last new one, where the new ones begin, and how many there are: both [batch]."""

    k: Tensor
    v: Tensor
    starts: Tensor
    lengths: Tensor


def _split(b: Builder, node: Node, given: dict[str, Tensor | None]) -> Heads:
    """Queries, keys and values by heads, from three tensors or one that holds them side by side."""
    heads, few = node.attr("num_heads", 0), node.attr("kv_num_heads", 0)
    q, k, v = (given[name] for name in ("query", "key", "value"))
    if heads < 1 or few < 1 or heads % few:
        node.wrong(f"{heads} heads of queries (num_heads) do not fit {few} of keys (kv_num_heads)")
    assert q is not None
    if k is None or v is None:
        columns = q.shape[2]
        if isinstance(columns, int) and columns % (heads + 2 * few):
            node.wrong(f"{columns} columns do not divide into {heads} heads of queries and twice {few} of keys")
        size = columns // (heads + 2 * few)
        q, k, v = (part(b, q, 2, at * size, n * size) for at, n in ((0, heads), (heads, few), (heads + few, few)))
    return Heads(split_heads(b, node, q, heads), *(split_heads(b, node, x, few) for x in (k, v)))


def _cache(b: Builder, node: Node, new: Heads, given: dict[str, Tensor | None], starts: Tensor) -> _Cache:
    """The cache with the new keys and values: as long as the past's tensor, or longer where they do not fit there."""
    past_key, past_value, lengths, total = (given[n] for n in ("past_key", "past_value", "lengths", "total"))
    assert lengths is not None and total is not None
    if past_key is None or past_value is None:
        return _Cache(new.k, new.v, starts, lengths)
    size = maximum(past_key.shape[2], b.index_of(b.cast(total, I64)))
    if not same(size, past_key.shape[2]):
        b.remark(
            "the cache may grow, so it is copied twice: into a longer one, and with the new keys and values; "
            "where total_sequence_length is known to fit the past's buffer, once"
        )
    k, v = (
        tensor_scatter(b, node, _longer(b, old, size), x, starts) for old, x in ((past_key, new.k), (past_value, new.v))
    )
    return _Cache(k, v, starts, lengths)


def _longer(b: Builder, x: Tensor, size: Size) -> Tensor:
    """A cache [batch, heads, length, size] of another length; zeros are behind."""
    shape = [*x.shape[:2], size, x.shape[3]]
    return b.pad(x, [0] * 4, [0, 0, size - x.shape[2], 0], 0.0, shape=shape)


def _starts(b: Builder, lengths: Tensor, rows: Size) -> Tensor:
    """Positions [batch] of the first new keys; 0 for a prompt, also where its padding makes it shorter than its row."""
    count = b.size_tensor(rows, POSITION)
    return b.elementwise(lambda m, n, r: m.maximum(n - r, 0), lengths, count)


def _mask(b: Builder, node: Node, rows: Size, columns: Size, starts: Tensor, lengths: Tensor) -> Mask:
    """Each query sees the keys up to its own place, or all, and not those before its window."""
    window, causal = node.attr("local_window_size", -1), bool(node.attr("causal", 1))
    if not causal:
        if window > 0:
            node.wrong("local_window_size needs causal=1")
        high = b.elementwise(lambda m, n: n - 1, lengths).unsqueeze([1, 2, 3, 4])
        return Mask(None, high, None, b.positions(columns, POSITION))
    row = b.positions(rows, POSITION).unsqueeze([1])
    place = b.elementwise(lambda m, r, s: r + s, row, starts.unsqueeze([1, 2, 3, 4]))
    low = b.elementwise(lambda m, p: p - (window - 1), place) if window > 0 else None
    return Mask(low, place, None, b.positions(columns, POSITION))


def _places(b: Builder, given: Tensor | None, starts: Tensor, rows: Size) -> Tensor:
    """Positions [batch, rows] of the new queries."""
    if given is not None:
        return given
    row = b.positions(rows, POSITION).unsqueeze([0])
    return b.elementwise(lambda m, r, s: r + s, row, starts.unsqueeze([1]))


def _rotated(b: Builder, node: Node, new: Heads, given: dict[str, Tensor | None], starts: Tensor) -> Heads:
    if not node.attr("do_rotary", 0):
        return new
    cos, sin = given["cos"], given["sin"]
    if cos is None or sin is None:
        node.wrong("do_rotary needs the inputs cos_cache and sin_cache")
    places = _places(b, given["positions"], starts, new.q.shape[2])
    interleaved = bool(node.attr("rotary_interleaved", 0))
    q, k = (rotated_heads(b, node, x, places, (cos, sin), interleaved) for x in (new.q, new.k))
    return Heads(q, k, new.v)


def _bias(b: Builder, x: Tensor | None, columns: Size) -> Tensor | None:
    """What is added to scores, with zeros for the columns of a buffer that nobody sees."""
    if x is None:
        return None
    missing = columns - x.shape[3]
    return b.pad(x, [0] * 4, [0, 0, 0, missing], 0.0, shape=[*x.shape[:3], columns])


def _sink(b: Builder, node: Node, given: Tensor | None, heads: Size, dtype) -> Tensor | None:
    if given is None and node.attr("smooth_softmax", 0):
        return b.full(0.0, [heads], dtype)
    return given


@op("GroupQueryAttention", domain=DOMAIN)
def group_query_attention(b: Builder, node: Node, *inputs: Tensor | None) -> list[Tensor]:
    """Causal attention of new tokens to a cache and themselves; the cache with them as further results.

    A past that is longer than the tokens in it is a buffer: new keys and values are written behind those that
    `seqlens_k` counts. The result's cache has the larger of its length and `total_sequence_length`.
    """
    given = dict.fromkeys(_NAMES) | dict(zip(_NAMES, inputs, strict=False))
    for name, why in _REFUSED.items():
        if given[name] is not None:
            node.unsupported(why)
    if node.attr("sliding_window_cache", 0):
        node.unsupported("a cache that is as long as the window (sliding_window_cache); export with the whole cache")
    new = _split(b, node, given)
    lengths, rows = given["lengths"], new.q.shape[2]
    if lengths is None or given["total"] is None:
        node.wrong("the inputs seqlens_k and total_sequence_length are missing")
    flat = b.reshape(b.cast(lengths, POSITION), (new.q.shape[0],))
    counts = b.elementwise(lambda m, n: n + 1, flat)
    starts = _starts(b, counts, rows)
    new = _rotated(b, node, new, given, starts)
    cache = _cache(b, node, new, {**given, "lengths": counts}, starts)
    seen = _mask(b, node, rows, cache.k.shape[2], starts, counts)
    sink = _sink(b, node, given["sink"], new.q.shape[1], new.q.dtype)
    how = Softening(scale_of(node, new.q.shape[3]), node.attr("softcap", 0.0), sink)
    found = attend(b, Heads(new.q, cache.k, cache.v), seen, how, _bias(b, given["added"], cache.k.shape[2]))
    results = [found.y, cache.k, cache.v]
    if wanted(node, 3):
        results.append(ungrouped(b, found.scores if node.attr("qk_output", 0) == 1 else found.weights))
    return results[: len(node.proto.output)]
