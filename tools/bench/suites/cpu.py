# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU's main numbers, with the targets that the project holds itself to."""

from bench.case import Case, Suite

SUITE = Suite(
    "cpu",
    "matrix product, MiniLM, BERT-base, ResNet-50 in f32 beside ONNX Runtime",
    (
        # A rate of at least 0.95 of the peer's is a latency of at most 1 / 0.95.
        Case("matmul_1024", "matmul", dict(m=1024, n=1024, k=1024), target=1 / 0.95, gflop=2.147),
        Case("minilm_b1_s128", "minilm", dict(batch=1, sequence=128), target=1.2, gflop=2.87),
        Case("bert_base_b1_s128", "bert_base", dict(batch=1, sequence=128), target=1.2, gflop=22.35),
        Case("resnet50_b1", "resnet50", target=1.6, gflop=8.18),
    ),
)
