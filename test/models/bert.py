# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT with random weights, in both styles of tilewright.demo.encoder."""

from __future__ import annotations

import numpy as np
import onnx

from tilewright.demo.encoder import EncoderConfig, encoder_model

from ._weights import Weights


def random_encoder_weights(config: EncoderConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights under Hugging Face's names for an encoder of these sizes."""
    source = Weights(seed)
    weights: dict[str, np.ndarray] = {}

    def norm(name: str) -> None:
        weights[name + ".weight"] = source.near_one(config.hidden)
        weights[name + ".bias"] = source.normal(config.hidden, scale=0.1)

    def dense(name: str, outputs: int, inputs: int) -> None:
        weights[name + ".weight"] = source.linear(outputs, inputs)
        weights[name + ".bias"] = source.normal(outputs, scale=0.1)

    for name, rows in (("word", config.vocabulary), ("position", config.positions), ("token_type", config.types)):
        weights[f"embeddings.{name}_embeddings.weight"] = source.normal(rows, config.hidden)
    norm("embeddings.LayerNorm")
    for i in range(config.layers):
        prefix = f"encoder.layer.{i}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            dense(prefix + "attention." + name, config.hidden, config.hidden)
        norm(prefix + "attention.output.LayerNorm")
        dense(prefix + "intermediate.dense", config.intermediate, config.hidden)
        dense(prefix + "output.dense", config.hidden, config.intermediate)
        norm(prefix + "output.LayerNorm")
    return weights


def bert(seed: int = 0, **sizes: object) -> onnx.ModelProto:
    """An encoder; `sizes` are the fields of EncoderConfig (BERT-base by default)."""
    config = EncoderConfig(**sizes)  # type: ignore[arg-type]
    return encoder_model(config, random_encoder_weights(config, seed))


def encoder_inputs(batch: int, sequence: int, vocabulary: int = 30522, seed: int = 0) -> dict[str, np.ndarray]:
    """Token ids, a mask whose last quarter is padding, and two segments."""
    random = np.random.default_rng(seed)
    mask = np.ones((batch, sequence), np.int64)
    mask[:, sequence - sequence // 4 :] = 0
    types = np.zeros((batch, sequence), np.int64)
    types[:, sequence // 2 :] = 1
    return {
        "input_ids": random.integers(0, vocabulary, (batch, sequence), dtype=np.int64),
        "attention_mask": mask,
        "token_type_ids": types,
    }
