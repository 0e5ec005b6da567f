# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Audio models of transformers with small configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers as hf

from .hf_text import tokens
from .torch_export import TorchModel


def waves(name: str, **configuration: Any) -> Callable[[], TorchModel]:
    """A model of raw samples, of any batch and length."""
    convolutions = {"conv_dim": (16, 16), "conv_kernel": (10, 3), "conv_stride": (5, 2), "num_feat_extract_layers": 2}
    small = {
        "vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
    }  # fmt: skip

    def make() -> TorchModel:
        torch.manual_seed(0)
        kind = getattr(hf, f"{name}Config")
        module = getattr(hf, f"{name}Model")(kind(**(small | convolutions | configuration))).eval()
        return TorchModel(
            module,
            lambda sizes: {"input_values": torch.randn(sizes["batch"], sizes["samples"])},
            {"input_values": {0: "batch", 1: "samples"}},
            ({"batch": 2, "samples": 400}, {"batch": 1, "samples": 333}, {"batch": 3, "samples": 800}),
            lambda m, x: [m(x["input_values"]).last_hidden_state],
            ["last_hidden_state"],
        )

    return make


def whisper(frames: int = 40, **configuration: Any) -> Callable[[], TorchModel]:
    """Whisper: log-mel features of a fixed length, tokens of any number."""
    small = {
        "vocab_size": 97, "num_mel_bins": 16, "encoder_layers": 2, "encoder_attention_heads": 4, "decoder_layers": 2,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "d_model": 32,
        "max_source_positions": frames // 2, "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None,
    }  # fmt: skip

    def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
        b = sizes["batch"]
        return {"input_features": torch.randn(b, 16, frames), "decoder_input_ids": tokens(b, sizes["target"])}

    def make() -> TorchModel:
        torch.manual_seed(0)
        return TorchModel(
            hf.WhisperForConditionalGeneration(hf.WhisperConfig(**(small | configuration))).eval(),
            inputs,
            {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "target"}},
            ({"batch": 2, "target": 3}, {"batch": 1, "target": 7}, {"batch": 3, "target": 5}),
            lambda m, x: [m(**x, use_cache=False).logits],
            ["logits"],
        )

    return make


def spectrograms(**configuration: Any) -> Callable[[], TorchModel]:
    """An audio spectrogram transformer, of any batch."""
    small = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "patch_size": 8,
        "frequency_stride": 6, "time_stride": 6, "max_length": 40, "num_mel_bins": 32,
    }  # fmt: skip

    def make() -> TorchModel:
        torch.manual_seed(0)
        kind = hf.ASTConfig(**(small | configuration))
        return TorchModel(
            hf.ASTModel(kind).eval(),
            lambda sizes: {"input_values": torch.randn(sizes["batch"], kind.max_length, kind.num_mel_bins)},
            {"input_values": {0: "batch"}},
            ({"batch": 2}, {"batch": 1}, {"batch": 3}),
            lambda m, x: [m(x["input_values"]).last_hidden_state],
            ["last_hidden_state"],
        )

    return make


MODELS: dict[str, Callable[[], TorchModel]] = {
    "wav2vec2": waves("Wav2Vec2", do_stable_layer_norm=True, feat_extract_norm="layer"),
    "hubert": waves("Hubert"),
    "whisper": whisper(),
    "ast": spectrograms(),
}
