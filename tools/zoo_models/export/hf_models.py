# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of transformers, by name."""

from __future__ import annotations

from collections.abc import Callable

from . import hf_audio, hf_vision
from .hf_text import VOCABULARY, decoder, encoder, encoder_decoder
from .torch_export import TorchModel

T5 = {
    "vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
BART = {
    "vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    "forced_eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
DEBERTA = {
    "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "position_biased_input": False, "max_relative_positions": 16, "type_vocab_size": 0,
}  # fmt: skip
MODERN_BERT = {
    "global_attn_every_n_layers": 2, "local_attention": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "cls_token_id": 1, "sep_token_id": 2,
}  # fmt: skip
ENCODERS: dict[str, Callable[[], TorchModel]] = {
    "bert": encoder("Bert"),
    "distilbert": encoder("DistilBert", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "roberta": encoder("Roberta"),
    "xlm_roberta": encoder("XLMRoberta"),
    "albert": encoder("Albert", embedding_size=16),
    "mpnet": encoder("MPNet"),
    "electra": encoder("Electra", embedding_size=16),
    "deberta_v2": encoder("DebertaV2", **DEBERTA),
    "modernbert": encoder("ModernBert", **MODERN_BERT),
    "squeezebert": encoder("SqueezeBert", embedding_size=32),
    "mobilebert": encoder("MobileBert", embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32),
    "convbert": encoder("ConvBert", embedding_size=32, head_ratio=2, conv_kernel_size=3),
    "roformer": encoder("RoFormer", embedding_size=32),
    "fnet": encoder("FNet"),
}  # fmt: skip
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODERS: dict[str, Callable[[], TorchModel]] = {
    "gpt2_past": decoder("GPT2", head="LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=64, **SPECIAL),
    "llama_past": decoder("Llama", heads=2, num_key_value_heads=2),
    "mistral_past": decoder("Mistral", heads=2, num_key_value_heads=2, sliding_window=16),
    "qwen2_past": decoder("Qwen2", heads=2, num_key_value_heads=2),
    "qwen3_past": decoder("Qwen3", heads=2, num_key_value_heads=2, head_dim=8),
    "gemma_past": decoder("Gemma", heads=1, num_key_value_heads=1, head_dim=8),
    "phi_past": decoder("Phi"),
    "opt_past": decoder("OPT", ffn_dim=64, word_embed_proj_dim=32),
    "gpt_neox_past": decoder("GPTNeoX"),
    "bloom_past": decoder("Bloom", n_layer=2, n_head=4, positions=False),
    "stablelm_past": decoder("StableLm", num_key_value_heads=4),
    "mixtral_past": decoder(
        "Mixtral", heads=2, num_key_value_heads=2, num_local_experts=4, experts_implementation="batched_mm"
    ),
}
BOTH: dict[str, Callable[[], TorchModel]] = {
    "t5": encoder_decoder("T5", **T5),
    "bart": encoder_decoder("Bart", **BART),
    "pegasus": encoder_decoder("Pegasus", **BART),
}
MODELS = ENCODERS | DECODERS | BOTH | hf_vision.MODELS | hf_audio.MODELS
