# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operators and short chains on the CPU."""

from bench.case import Case, Suite

SUITE = Suite(
    "cpu-ops",
    "matrix products, softmax, layer norm, gelu, convolutions, attention in f32 beside ONNX Runtime",
    (
        Case("matmul_512", "matmul", dict(m=512, n=512, k=512), target=1.0, gflop=0.268),
        Case("matmul_2048", "matmul", dict(m=2048, n=2048, k=2048), target=1.0, gflop=17.18),
        Case("linear_128x3072x768", "linear", dict(m=128, n=3072, k=768), target=1.0, gflop=0.604),
        Case("softmax_4096x4096", "softmax", dict(rows=4096, columns=4096), target=1.0),
        Case("layernorm_4096x1024", "layernorm", dict(rows=4096, columns=1024), target=1.0),
        Case("gelu_4096x1024", "gelu", dict(rows=4096, columns=1024), target=1.0),
        Case("conv3x3_64_56", "conv", dict(inputs=64, outputs=64, size=56), target=1.0, gflop=0.231),
        Case("dwconv3x3_128_112", "conv", dict(inputs=128, outputs=128, size=112, groups=128), target=1.0, gflop=0.029),
        Case("attention_h12_s512_d64", "attention", dict(heads=12, sequence=512, depth=64), target=1.0, gflop=0.81),
    ),
)
