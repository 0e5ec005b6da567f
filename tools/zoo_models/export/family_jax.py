# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX and modules of Flax and Equinox by jax2onnx, with an open batch where the converter knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax2onnx import to_onnx

from .storing import Made

BATCHES = (4, 1, 7)
Variant = Callable[[Path], Made]
Shape = Sequence[int | str]


def function(make: Callable[[], Callable], *shapes: Shape, batched: bool = True) -> Variant:
    """A function of arrays of f32, whose open dimensions have the name B."""

    def write(folder: Path) -> Made:
        call = make()
        model: Any = to_onnx(call, inputs=[tuple(shape) for shape in shapes], model_name=folder.name)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        names = [i.name for i in model.graph.input]
        random = np.random.default_rng(0)
        found = []
        for batch in BATCHES if batched else BATCHES[:1]:
            drawn = [
                random.normal(size=[batch if s == "B" else s for s in shape]).astype(np.float32) for shape in shapes
            ]
            results = jax.tree_util.tree_leaves(call(*(jnp.asarray(x) for x in drawn)))
            outputs = [o.name for o in model.graph.output]
            eager = {name: np.asarray(r) for name, r in zip(outputs, results, strict=True)}
            found.append((dict(zip(names, drawn, strict=False)), eager))
        return Made(found, 1e-4, "jax2onnx")

    return write


class Mlp(nnx.Module):
    """Two layers with a normalization and a GELU."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(16, 32, rngs=rngs)
        self.norm = nnx.LayerNorm(32, rngs=rngs)
        self.last = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Scores of features."""
        return self.last(nnx.gelu(self.norm(self.first(x))))


class Cnn(nnx.Module):
    """Two convolutions with pooling."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Conv(3, 8, kernel_size=(3, 3), rngs=rngs)
        self.second = nnx.Conv(8, 16, kernel_size=(3, 3), strides=(2, 2), rngs=rngs)
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.last = nnx.Linear(16, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Scores of images, channels last."""
        x = nnx.relu(self.norm(self.first(x)))
        x = nnx.avg_pool(x, window_shape=(2, 2), strides=(2, 2))
        return self.last(jnp.mean(nnx.relu(self.second(x)), axis=(1, 2)))


class Block(nnx.Module):
    """One block of a transformer."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.attention = nnx.MultiHeadAttention(num_heads=4, in_features=32, decode=False, rngs=rngs)
        self.norms = nnx.List([nnx.LayerNorm(32, rngs=rngs) for _ in range(2)])
        self.first, self.last = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Hidden states of hidden states."""
        x = x + self.attention(self.norms[0](x))
        return x + self.last(nnx.gelu(self.first(self.norms[1](x))))


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention with a causal mask, in plain operations."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    allowed = jnp.tril(jnp.ones((q.shape[2], k.shape[2]), bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(allowed, scores, -1e9), axis=-1), v)


def recurrence(xs: jax.Array) -> jax.Array:
    """A recurrence by lax.scan."""

    def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = jnp.tanh(0.5 * state + x)
        return state, state

    return jax.lax.scan(step, jnp.zeros(xs.shape[1:]), xs)[1]


def newton(x: jax.Array) -> jax.Array:
    """A loop of a fixed number of steps."""

    def step(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        y, square = state
        return 0.5 * (y + square / y), square

    return jax.lax.fori_loop(0, 5, step, (jnp.abs(x) + 1, jnp.abs(x) + 1))[0]


def branches(x: jax.Array) -> jax.Array:
    """A branch that the values decide."""
    return jax.lax.cond(jnp.sum(x) > 0, lambda y: jnp.sin(y) * 2, lambda y: jnp.cos(y) - 1, x)


def chosen(x: jax.Array) -> jax.Array:
    """Largest values, sums so far, and a sort."""
    return jnp.sort(jnp.cumsum(x, axis=-1), axis=-1)[:, -4:] + jax.lax.top_k(x, 4)[0]


def variants(_out: Path) -> dict[str, Variant]:
    """Functions and modules by name."""
    key = jax.random.key(0)
    return {
        "flax_mlp": function(lambda: Mlp(nnx.Rngs(0)), ("B", 16)),
        "flax_cnn": function(lambda: Cnn(nnx.Rngs(0)), ("B", 16, 16, 3)),
        "flax_transformer_block": function(lambda: Block(nnx.Rngs(0)), ("B", 9, 32)),
        "equinox_mlp": function(lambda: jax.vmap(eqx.nn.MLP(16, 4, 32, 2, key=key)), ("B", 16)),
        "equinox_conv": function(
            lambda: jax.vmap(eqx.nn.Sequential([
                eqx.nn.Conv2d(3, 8, 3, key=key), eqx.nn.Lambda(jax.nn.relu), eqx.nn.MaxPool2d(2, 2),
            ])),
            ("B", 3, 16, 16),
        ),
        "causal_attention": function(lambda: attention, ("B", 2, 8, 16), ("B", 2, 8, 16), ("B", 2, 8, 16)),
        "scan": function(lambda: recurrence, (6, "B", 8)),
        "fori_loop": function(lambda: newton, ("B", 8)),
        "cond": function(lambda: branches, (4, 8), batched=False),
        "sort_top_k": function(lambda: chosen, ("B", 12)),
        "logsumexp_gather": function(
            lambda: lambda x: jax.nn.logsumexp(x[:, jnp.array([0, 3, 5])], axis=-1) + x.max(-1), ("B", 8)
        ),
    }  # fmt: skip
