# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The BERT encoder as an ONNX graph, from a dictionary of weights with the names that Hugging Face uses.

Two forms of the same numbers: `style="plain"` uses LayerNormalization and static shapes; `style="export"` is what the
PyTorch exporter writes for a Hugging Face model: decomposed layer normalization, Shape/Gather/Concat/Reshape chains,
ConstantOfShape/Equal/Where/Expand for the mask and the position ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of a BERT-like encoder and of the inputs that the graph takes."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    types: int = 2
    epsilon: float = 1e-12
    batch: int = 1
    sequence: int = 128
    style: str = "plain"  # or "export"
    dynamic: bool = False  # symbolic batch and sequence dimensions; needs style="export"
    pooled: bool = False  # mean over the unmasked tokens, then unit length

    def __post_init__(self) -> None:
        if self.style not in ("plain", "export"):
            raise ValueError(f"EncoderConfig: style must be 'plain' or 'export', got {self.style!r}")
        if self.hidden % self.heads:
            raise ValueError(f"EncoderConfig: hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        if self.dynamic and self.style != "export":
            raise ValueError("EncoderConfig: symbolic dimensions need style='export'; 'plain' has static shapes")

    @property
    def shape(self) -> list[int | str]:
        """Shape of the inputs: [batch, sequence]."""
        return ["batch", "sequence"] if self.dynamic else [self.batch, self.sequence]


def encoder_model(config: EncoderConfig, weights: Weights) -> onnx.ModelProto:
    """Build the graph: int64 [batch, sequence] x 3 -> float32 hidden states, or one unit vector per sentence."""
    return _Encoder(config, weights).build()


class _Encoder:
    def __init__(self, config: EncoderConfig, weights: Weights) -> None:
        self.c = config
        self.w = weights
        self.g = GraphBuilder("encoder")

    def build(self) -> onnx.ModelProto:
        g, c = self.g, self.c
        ids, mask, types = (g.input(n, np.int64, c.shape) for n in ("input_ids", "attention_mask", "token_type_ids"))
        with g.scope("embeddings"):
            x = self.embeddings(ids, types)
        bias = self.mask_bias(mask)
        for i in range(c.layers):
            with g.scope(f"encoder/layer.{i}"):
                x = self.layer(x, bias, f"encoder.layer.{i}.")
        if c.pooled:
            with g.scope("pooling"):
                g.output(self.pool(x, mask), "sentence_embedding", np.float32, [c.shape[0], c.hidden])
        else:
            g.output(x, "last_hidden_state", np.float32, [*c.shape, c.hidden])
        return g.model()

    def embeddings(self, ids: str, types: str) -> str:
        g, w = self.g, self.w
        table = {n: g.weight(w[f"embeddings.{n}_embeddings.weight"], n) for n in ("word", "token_type", "position")}
        words = g.op("Gather", table["word"], ids)
        kinds = g.op("Gather", table["token_type"], types)
        places = g.op("Gather", table["position"], self.position_ids(ids))
        return self.normalize(g.op("Add", g.op("Add", words, kinds), places), "embeddings.LayerNorm")

    def position_ids(self, ids: str) -> str:
        g, c = self.g, self.c
        if c.style == "plain":
            return g.const(np.arange(c.sequence)[None])
        table = g.weight(np.arange(c.positions, dtype=np.int64)[None], "position_ids")
        length = g.op("Unsqueeze", self.dim(ids, 1), g.const([0]))
        return g.op("Slice", table, g.const([0]), length, g.const([1]), g.const([1]))

    def dim(self, value: str, axis: int) -> str:
        """One dimension of `value` as a scalar, in the exporter's way."""
        g = self.g
        return g.op("Gather", g.op("Shape", value), g.const(axis), axis=0)

    def mask_bias(self, mask: str) -> str:
        """0 where a token is seen, very negative where it is padding: [batch, 1, (1 or sequence), sequence]."""
        g = self.g
        wide = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.const([1])), g.const([2]))
        if self.c.style == "plain":
            seen = g.op("Cast", wide, to=onnx.TensorProto.FLOAT)
            return g.op("Mul", g.op("Sub", g.f32(1.0), seen), g.f32(-10000.0))
        shape = self.mask_shape(mask)
        seen = g.op("Cast", g.op("Expand", wide, shape), to=onnx.TensorProto.FLOAT)
        hidden = g.op("Sub", g.f32(1.0), seen)
        lowest = g.f32(float(np.finfo(np.float32).min))
        return g.op("Where", g.op("Cast", hidden, to=onnx.TensorProto.BOOL), lowest, hidden)

    def mask_shape(self, mask: str) -> str:
        """[batch, 1, sequence, sequence] computed as exporters of `expand(b, 1, s, s)` do, with the -1 detour."""
        g = self.g
        axis = g.const([0])
        parts = [g.op("Unsqueeze", self.dim(mask, a), axis) for a in (0, 1)]
        wanted = g.op("Concat", parts[0], g.const([1]), parts[1], parts[1], axis=0)
        value = onnx.helper.make_tensor("value", onnx.TensorProto.INT64, [1], [1])
        ones = g.op("ConstantOfShape", g.op("Shape", wanted), value=value)
        keep = g.op("Equal", wanted, g.op("Mul", ones, g.const(-1)))
        return g.op("Where", keep, ones, wanted)

    def layer(self, x: str, bias: str, prefix: str) -> str:
        g = self.g
        with g.scope("attention"):
            attended = self.attention(x, bias, prefix + "attention.")
            x = self.normalize(g.op("Add", attended, x), prefix + "attention.output.LayerNorm")
        with g.scope("intermediate"):
            wide = self.gelu(self.dense(x, prefix + "intermediate.dense"))
        with g.scope("output"):
            return self.normalize(
                g.op("Add", self.dense(wide, prefix + "output.dense"), x), prefix + "output.LayerNorm"
            )

    def attention(self, x: str, bias: str, prefix: str) -> str:
        g, c = self.g, self.c
        q = self.split_heads(self.dense(x, prefix + "self.query"), [0, 2, 1, 3])
        k = self.split_heads(self.dense(x, prefix + "self.key"), [0, 2, 3, 1])
        v = self.split_heads(self.dense(x, prefix + "self.value"), [0, 2, 1, 3])
        scale = math.sqrt(c.hidden // c.heads)
        scores = g.op("Add", g.op("Div", g.op("MatMul", q, k), g.f32(scale)), bias)
        context = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        merged = g.op("Transpose", context, perm=[0, 2, 1, 3])
        joined = g.op("Reshape", merged, self.shape_of(merged, [c.hidden]))
        return self.dense(joined, prefix + "output.dense")

    def split_heads(self, x: str, perm: list[int]) -> str:
        c = self.c
        split = self.g.op("Reshape", x, self.shape_of(x, [c.heads, c.hidden // c.heads]))
        return self.g.op("Transpose", split, perm=perm)

    def shape_of(self, x: str, tail: list[int]) -> str:
        """The shape [batch, sequence, *tail] as a value."""
        g, c = self.g, self.c
        if c.style == "plain":
            return g.const([c.batch, c.sequence, *tail])
        parts = [g.op("Unsqueeze", self.dim(x, a), g.const([0])) for a in (0, 1)]
        return g.op("Concat", *parts, *[g.const([t]) for t in tail], axis=0)

    def dense(self, x: str, name: str) -> str:
        g = self.g
        product = g.op("MatMul", x, g.weight(self.w[name + ".weight"].T, name))
        return g.op("Add", g.weight(self.w[name + ".bias"], name + ".bias"), product)

    def normalize(self, x: str, name: str) -> str:
        g = self.g
        scale, shift = (g.weight(self.w[f"{name}.{part}"], f"{name}.{part}") for part in ("weight", "bias"))
        if self.c.style == "plain":
            return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=self.c.epsilon)
        centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
        variance = g.op("ReduceMean", g.op("Pow", centred, g.f32(2.0)), axes=[-1])
        root = g.op("Sqrt", g.op("Add", variance, g.f32(self.c.epsilon)))
        return g.op("Add", g.op("Mul", g.op("Div", centred, root), scale), shift)

    def gelu(self, x: str) -> str:
        g = self.g
        bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(math.sqrt(2.0)))), g.f32(1.0))
        return g.op("Mul", g.op("Mul", x, bent), g.f32(0.5))

    def pool(self, x: str, mask: str) -> str:
        """Mean of the unmasked tokens, divided by its Euclidean norm: [batch, hidden]."""
        g = self.g
        seen = g.op("Unsqueeze", g.op("Cast", mask, to=onnx.TensorProto.FLOAT), g.const([-1]))
        total = g.op("ReduceSum", g.op("Mul", x, seen), g.const([1]), keepdims=0)
        count = g.op("Clip", g.op("ReduceSum", seen, g.const([1]), keepdims=0), g.f32(1e-9))
        mean = g.op("Div", total, count)
        norm = g.op("ReduceL2", mean, axes=[1], keepdims=1)
        return g.op("Div", mean, g.op("Clip", norm, g.f32(1e-12)))
