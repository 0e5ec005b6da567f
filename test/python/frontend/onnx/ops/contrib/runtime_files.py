# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs as ONNX Runtime's tool for transformers (an encoder) and its model builder (a decoder) write them, by hand."""

from __future__ import annotations

import numpy as np
import onnx
from beside import F32, I32, RANDOM
from onnx import TensorProto, helper, numpy_helper

RUNTIME = "com.microsoft"


class Graph:
    """A graph, node by node; weights are random."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        """A matrix or vector, scaled by its first size."""
        return self.constant(RANDOM.standard_normal(shape) * shape[0] ** -0.5, F32)

    def constant(self, value: object, dtype: np.typing.DTypeLike) -> str:
        """A known tensor."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def add(self, op: str, inputs: list[str], outputs: list[str] | None = None, domain: str = RUNTIME, **attributes):
        """The first result of a node."""
        names = outputs or [f"{op.lower()}{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], domain=domain, **attributes))
        return names[0]

    def standard(self, op: str, inputs: list[str], outputs: list[str] | None = None, **attributes: object) -> str:
        """The same of the standard's domain."""
        return self.add(op, inputs, outputs, "", **attributes)

    def model(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """The model."""
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, self.weights)
        imports = [helper.make_opsetid("", 17), helper.make_opsetid(RUNTIME, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def info(name: str, shape: list, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A tensor of a model's signature."""
    return helper.make_tensor_value_info(name, kind, shape)


def encoder(width: int = 16, heads: int = 2, words: int = 20, layers: int = 2) -> onnx.ModelProto:
    """BERT: ids, kinds and mask [batch, sequence] (int32) to hidden states [batch, sequence, width]."""
    g = Graph()
    tables = [g.weight(words, width), g.weight(16, width), g.weight(2, width), g.weight(width), g.weight(width)]
    names = ["embedded", "lengths"]
    x = g.add("EmbedLayerNormalization", ["ids", "kinds", *tables, "mask"], names, epsilon=1e-12)
    for i in range(layers):
        parts = [x, g.weight(width, 3 * width), g.weight(3 * width), "lengths"]
        y = g.standard("MatMul", [g.add("Attention", parts, num_heads=heads), g.weight(width, width)])
        x = g.add("SkipLayerNormalization", [y, x, *(g.weight(width) for _ in range(3))], epsilon=1e-12)
        inner = g.add("BiasGelu", [g.standard("MatMul", [x, g.weight(width, 32)]), g.weight(32)])
        y = g.standard("MatMul", [inner, g.weight(32, width)])
        last = ["hidden"] if i == layers - 1 else None
        x = g.add("SkipLayerNormalization", [y, x, *(g.weight(width) for _ in range(3))], last, epsilon=1e-12)
    shape = ["batch", "sequence"]
    given = [info(n, shape, TensorProto.INT32) for n in ("ids", "kinds", "mask")]
    return g.model(given, [info("hidden", [*shape, width])])


def encoder_inputs(batch: int, sequence: int, words: int = 20) -> dict[str, np.ndarray]:
    """Rows of ids with padding behind."""
    mask = np.arange(sequence)[None] < RANDOM.integers(1, sequence + 1, (batch, 1))
    given = {"ids": RANDOM.integers(0, words, (batch, sequence)), "kinds": RANDOM.integers(0, 2, (batch, sequence))}
    return {n: x.astype(I32) for n, x in {**given, "mask": mask}.items()}


def decoder(heads: int = 4, few: int = 2, size: int = 16, words: int = 20, layers: int = 2) -> onnx.ModelProto:
    """LLaMA with a cache: ids and mask (int64), past keys and values, to logits, present keys and values."""
    g, width, inner = Graph(), heads * size, 48
    one = g.constant([1], np.int64)
    counted = g.standard("Sub", [g.standard("ReduceSum", ["attention_mask", one], keepdims=0), one])
    lengths = g.standard("Cast", [counted], to=TensorProto.INT32)
    sizes = g.standard("Shape", ["attention_mask"])
    total = g.standard("Gather", [sizes, g.constant(1, np.int64)], axis=0)
    total = g.standard("Cast", [total], to=TensorProto.INT32)
    angle = np.arange(64)[:, None] * 1e4 ** (-np.arange(size // 2) / (size // 2))
    tables = [g.constant(np.cos(angle), F32), g.constant(np.sin(angle), F32)]
    x = g.standard("Gather", [g.weight(words, width), "input_ids"])
    y = g.standard("SimplifiedLayerNormalization", [x, g.weight(width)], axis=-1, epsilon=1e-6, stash_type=1)
    counts = {"num_heads": heads, "kv_num_heads": few, "do_rotary": 1, "scale": size**-0.5}
    for i in range(layers):
        qkv = [g.standard("MatMul", [y, g.weight(width, n * size)]) for n in (heads, few, few)]
        past = [f"past_key_values.{i}.{n}" for n in ("key", "value")]
        results = [f"attended{i}", f"present.{i}.key", f"present.{i}.value"]
        y = g.add("GroupQueryAttention", [*qkv, *past, lengths, total, *tables], results, **counts)
        x, y = _added(g, x, g.standard("MatMul", [y, g.weight(width, width)]), width)
        gate, up = (g.standard("MatMul", [y, g.weight(width, inner)]) for _ in range(2))
        y = g.standard("Mul", [g.add("QuickGelu", [gate], alpha=1.0), up])
        x, y = _added(g, x, g.standard("MatMul", [y, g.weight(inner, width)]), width)
    g.standard("MatMul", [y, g.weight(width, words)], ["logits"])
    return g.model(*_signature(few, size, words, layers))


def _added(g: Graph, x: str, y: str, width: int) -> tuple[str, str]:
    """The sum, and its normalization."""
    names = [f"normed{len(g.nodes)}", "", "", f"sum{len(g.nodes)}"]
    y = g.add("SkipSimplifiedLayerNormalization", [x, y, g.weight(width)], names, epsilon=1e-6)
    return names[3], y


def _signature(few: int, size: int, words: int, layers: int) -> tuple[list, list]:
    shape, kind = ["batch_size", "sequence_length"], TensorProto.INT64
    given = [info("input_ids", shape, kind), info("attention_mask", ["batch_size", "total_sequence_length"], kind)]
    made = [info("logits", [*shape, words])]
    for i in range(layers):
        for name in ("key", "value"):
            cache = ["batch_size", few, "past_sequence_length", size]
            given.append(info(f"past_key_values.{i}.{name}", cache))
            made.append(info(f"present.{i}.{name}", [*cache[:2], "total_sequence_length", size]))
    return given, made


def decoder_inputs(
    batch: int, tokens: int, past: int, room: int | None = None, few: int = 2, size: int = 16, layers: int = 2
) -> dict[str, np.ndarray]:
    """Ids behind a past of as many tokens, in caches of that length or with room for more."""
    shape = (batch, few, past if room is None else room, size)
    names = [f"past_key_values.{i}.{n}" for i in range(layers) for n in ("key", "value")]
    ids, mask = RANDOM.integers(0, 20, (batch, tokens)), np.ones((batch, past + tokens), np.int64)
    given = {"input_ids": ids, "attention_mask": mask}
    return given | {n: RANDOM.standard_normal(shape).astype(F32) for n in names}
