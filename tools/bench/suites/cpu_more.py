# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More models on the CPU, without targets: the ratio is for information."""

from bench.case import Case, Suite

_PEERS = ("onnxruntime", "openvino", "torch_compile", "iree")

SUITE = Suite(
    "cpu-more",
    "a plain multi-layer perceptron, an exported encoder, a batched recurrent net, a decoder with rotary positions",
    (
        Case("mlp_b1", "mlp", peers=_PEERS),
        Case("minilm_export_b1_s128", "minilm_export", gflop=2.87, peers=_PEERS),
        Case("lstm4_s128_b8", "lstm4", dict(sequence=128, batch=8), gflop=4.29, peers=_PEERS),
        Case("decoder_s1_p31", "decoder_tiny_export", dict(sequence=1, past=31), peers=_PEERS),
    ),
)
