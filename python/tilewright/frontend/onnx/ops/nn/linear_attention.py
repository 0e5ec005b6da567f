# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LinearAttention: a state of keys times values, updated token by token in a loop that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.frontend.builder.dims import Dim, Size, is_static
from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.frontend.onnx.registry import Builder, Node, op

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@dataclass(frozen=True)
class _Inputs:
    """Everything by token, in float32: [batch, tokens, key heads, ...]."""

    q: Tensor  # ..., group, key size
    k: Tensor  # ..., key size
    v: Tensor  # ..., value size
    decay: Tensor | None  # ..., key size or 1
    beta: Tensor | None  # ..., 1
    scale: float

    def step(self, b: Builder, at: Size, state: Tensor) -> tuple[Tensor, Tensor]:
        """The next state [batch, heads, key size, value size] and the output [batch, heads, group, value size]."""
        q, k, v, decay, beta = (x if x is None else _token(b, x, at) for x in self._all())
        assert q is not None and k is not None and v is not None
        if decay is not None:
            state = b.elementwise(lambda m, s, g: s * m.exp(g), state, decay.unsqueeze([3]))
        if beta is not None:
            space = Space([*state.shape[:2], state.shape[3], state.shape[2]], frozenset([3]))
            found = b.contract(space, (state, [0, 1, 3, 2]), (k, [0, 1, 3]), [0, 1, 2])
            v = b.elementwise(lambda m, v, f, w: w * (v - f), v, found, beta)
        state = b.elementwise(lambda m, s, k, v: s + k * v, state, k.unsqueeze([3]), v.unsqueeze([2]))
        space = Space([*q.shape[:3], state.shape[3], q.shape[3]], frozenset([4]))
        y = b.contract(space, (q, [0, 1, 2, 4]), (state, [0, 1, 4, 3]), [0, 1, 2, 3])
        return state, b.elementwise(lambda m, y: y * self.scale, y)

    def _all(self) -> tuple[Tensor | None, ...]:
        return self.q, self.k, self.v, self.decay, self.beta


def _token(b: Builder, x: Tensor, at: Size) -> Tensor:
    """x[:, at]."""
    starts: list[Size] = [0] * x.rank
    starts[1] = at
    sizes = [1 if d == 1 else n for d, n in enumerate(x.shape)]
    return b.slice(x, starts, sizes, [1] * x.rank).squeeze([1])


def _heads(b: Builder, node: Node, x: Tensor, *heads: int) -> Tensor:
    """[batch, tokens, columns] in float32 with the columns split into heads."""
    count = heads[0] * (heads[1] if len(heads) > 1 else 1)
    if x.rank != 3 or not isinstance(x.shape[2], int) or x.shape[2] % count:
        node.wrong(f"an input of shape {list(x.shape)} does not divide into {count} heads")
    x = b.cast(x, F32)
    return b.reshape(x, (*x.shape[:2], *heads, x.shape[2] // count))


def _read(
    b: Builder, node: Node, q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None, beta: Tensor | None
) -> _Inputs:
    queries, heads = node.attr("q_num_heads"), node.attr("kv_num_heads")
    if not queries or not heads or queries % heads:
        node.wrong(f"q_num_heads={queries} is no multiple of kv_num_heads={heads}")
    rule = node.attr("update_rule", "gated_delta")
    if rule not in _RULES:
        node.wrong(f"there is no update rule {rule}; use one of {', '.join(_RULES)}")
    if _RULES[rule] != (decay is not None, beta is not None):
        node.wrong(f"the update rule {rule} {_wanted(*_RULES[rule])}")
    q, k, v = _heads(b, node, q, heads, queries // heads), _heads(b, node, k, heads), _heads(b, node, v, heads)
    if decay is not None:
        decay = _heads(b, node, decay, heads)
    if beta is not None:
        beta = _heads(b, node, beta, 1 if beta.shape[-1] == 1 else heads)
    size = q.shape[4]
    assert isinstance(size, int)
    return _Inputs(q, k, v, decay, beta, node.attr("scale", 0.0) or size**-0.5)


def _wanted(decay: bool, beta: bool) -> str:
    return f"{'needs' if decay else 'takes no'} decay and {'needs' if beta else 'takes no'} beta"


@op("LinearAttention", since=27)
def linear_attention(
    b: Builder,
    node: Node,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
) -> list[Tensor]:
    """All four update rules, grouped queries, a state in and out; computed in float32."""
    given = _read(b, node, q, k, v, decay, beta)
    batch, tokens, heads, group, size = given.q.shape
    shape = (batch, heads, size, given.v.shape[3])
    outline = (batch, tokens, heads, group, given.v.shape[3])
    state = b.full(0.0, shape, F32) if past is None else b.array(b.cast(past, F32))

    def body(counter: Scalar, state: Tensor, outputs: Tensor) -> list[Tensor]:
        at = Dim(counter.value)
        state, y = given.step(b, at, state)
        assert not outputs.is_known
        written = b.write(y.unsqueeze([1]), b.stored(outputs).data, range(5), [0, at, 0, 0, 0])
        return [state, Tensor(F32, outline, written, tuple(range(5)))]

    columns = heads * group * given.v.shape[3]
    if is_static(outline) and 0 in outline:
        y = nothing((batch, tokens, columns), F32)
    else:
        state, outputs = b.for_(0, tokens, [state, b.blank(outline, F32)], body)
        y = b.reshape(outputs, (batch, tokens, columns))
    return [b.cast(y, q.dtype), b.cast(state, q.dtype if past is None else past.dtype)]
