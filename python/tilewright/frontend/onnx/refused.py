# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of ONNX Runtime (com.microsoft) without a lowering: why, and what to do."""

from __future__ import annotations

_PACKED = "tokens without padding, for CUDA's kernels; write the model again without packing (use_packed_mode)"
_SEARCH = "generates text inside the model; export the decoder alone and loop outside"
_BEAMS = (
    "decodes with buffers shared by beams; write the model again without fusing decoders (MultiHeadAttention stays)"
)
_CACHES = "needs caches in pages or blocks of a server; export with GroupQueryAttention or plain attention"
_EXPERTS = "experts of a mixture in one operator; export without fusing them"
_TRAINING = "of training; export the model in evaluation mode"
_MACHINE = "a program for another compiler's device; take the model from before that step"
_HASHES = "hashes the bytes of strings; hash them before the model"

_BY_REASON = {
    _PACKED: "PackedAttention PackedMultiHeadAttention RemovePadding RestorePadding",
    _SEARCH: "BeamSearch GreedySearch Sampling WhisperBeamSearch NGramRepeatBlock",
    _BEAMS: "DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention",
    _CACHES: "PagedAttention SparseAttention",
    _EXPERTS: "QMoE",
    _TRAINING: "BitmaskBiasDropout BitmaskDropout",
    _MACHINE: "EPContext Snpe",
    _HASHES: "MurmurHash3",
}

#: by (domain, name)
RUNTIME_REASONS = {("com.microsoft", name): why for why, names in _BY_REASON.items() for name in names.split()}
