# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transformers as wide as small real ones, two layers deep: what times of open sizes are taken from.

The models of the zoo are 32 wide, where a call is mostly its overhead.
"""

from __future__ import annotations

from collections.abc import Callable

from . import hf_audio, hf_models, hf_vision
from .hf_text import decoder, encoder, encoder_decoder
from .torch_export import TorchModel

HEADS, SIZE = 6, 64
WIDTH, INNER = HEADS * SIZE, 4 * HEADS * SIZE
POSITIONS = 512
PARTS = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": INNER}
TEXT = PARTS | {"max_position_embeddings": POSITIONS}
BOTH = {
    "d_model": WIDTH, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER, "max_position_embeddings": POSITIONS,
}  # fmt: skip
T5 = {"d_model": WIDTH, "d_kv": SIZE, "d_ff": INNER, "num_heads": HEADS}
GPT2 = {"n_embd": WIDTH, "n_layer": 2, "n_head": HEADS, "n_positions": POSITIONS}
DISTIL = {"dim": WIDTH, "n_layers": 2, "n_heads": HEADS, "hidden_dim": INNER, "max_position_embeddings": POSITIONS}
IMAGES = PARTS | {"num_hidden_layers": 2, "image_size": 112, "patch_size": 8}
WHISPER = {
    "d_model": WIDTH, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER, "max_source_positions": 200, "max_target_positions": POSITIONS,
}  # fmt: skip
WAVES = PARTS | {"conv_dim": (128, 128), "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 16}
SOUNDS = PARTS | {"num_mel_bins": 128, "max_length": 128, "patch_size": 16, "frequency_stride": 10, "time_stride": 10}
GROUPED = {"heads": 2, "num_key_value_heads": 2}

MODELS: dict[str, Callable[[], TorchModel]] = {
    "bert": encoder("Bert", **TEXT),
    "distilbert": encoder("DistilBert", **(TEXT | DISTIL)),
    "roberta": encoder("Roberta", **TEXT),
    "albert": encoder("Albert", embedding_size=128, **TEXT),
    "mpnet": encoder("MPNet", **TEXT),
    "deberta_v2": encoder("DebertaV2", **(hf_models.DEBERTA | TEXT)),
    "modernbert": encoder("ModernBert", **(hf_models.MODERN_BERT | TEXT | {"local_attention": 64})),
    "roformer": encoder("RoFormer", **(TEXT | {"embedding_size": WIDTH})),
    "gpt2_past": decoder("GPT2", HEADS, SIZE, "LMHeadModel", **(hf_models.SPECIAL | TEXT | GPT2)),
    "llama_past": decoder("Llama", head_size=SIZE, **(GROUPED | TEXT)),
    "qwen3_past": decoder("Qwen3", head_size=SIZE, **(GROUPED | TEXT | {"head_dim": SIZE})),
    "gpt_neox_past": decoder("GPTNeoX", HEADS, SIZE, **TEXT),
    "opt_past": decoder("OPT", HEADS, SIZE, ffn_dim=INNER, word_embed_proj_dim=WIDTH, **TEXT),
    "t5": encoder_decoder("T5", **(hf_models.T5 | T5)),
    "bart": encoder_decoder("Bart", **(hf_models.BART | BOTH)),
    "vit": hf_vision.vision("ViT", 112, **IMAGES),
    "dinov2": hf_vision.vision("Dinov2", 112, **IMAGES),
    "wav2vec2": hf_audio.waves("Wav2Vec2", **(WAVES | {"do_stable_layer_norm": True, "feat_extract_norm": "layer"})),
    "whisper": hf_audio.whisper(400, **WHISPER),
    "ast": hf_audio.spectrograms(**SOUNDS),
}  # fmt: skip
