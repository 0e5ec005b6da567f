# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More models on the CPU; no targets yet, the ratio is for information."""

from bench.case import Case, Suite

SUITE = Suite(
    "cpu-models",
    "MobileNetV2, ViT-base, a 4-layer LSTM, exported and batched encoders in f32 beside ONNX Runtime",
    (
        Case("mobilenet_v2_b1", "mobilenet_v2", gflop=0.60),
        Case("vit_base_b1", "vit_base", gflop=35.13),
        Case("lstm4_s100_b1", "lstm4", gflop=0.42),
        Case("minilm_export_b1_s128", "minilm_export", gflop=2.87),
        Case("minilm_b8_s128", "minilm", dict(batch=8, sequence=128), gflop=22.95),
        Case("mlp_b1", "mlp"),
    ),
)
