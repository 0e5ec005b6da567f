# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operators and short chains on the CPU, with the targets that the project holds itself to."""

from bench.case import Case, Suite


def _rate(factor: float) -> float:
    """A rate of `factor` times the best peer's, as a ratio of latencies."""
    return 1 / factor


def _matmul(size: int) -> Case:
    sizes = dict(m=size, n=size, k=size)
    share = {1: 0.87, 2: 0.87}
    return Case(f"matmul_{size}", "matmul", sizes, target=_rate(1.03), gflop=2e-9 * size**3, share=share)


_SKINNY = dict(m=128, n=3072, k=768)
_BF16 = dict(precision="bf16", limit="dot_bf16", share={1: 0.80, 2: 0.80}, error=2e-2)
_INT8 = dict(precision="int8", limit="dot_int8", share={1: 0.80, 2: 0.80})
_CUBE = dict(m=1024, n=1024, k=1024)
_F16 = dict(floats="float16")
_ROUNDED = 5e-3  # of the largest result: f16 has 11 bits, and peers round less often
_CONV = dict(inputs=64, outputs=64, size=56)
_TYPED = ("openvino", "torch", "torch_compile", "iree")  # ONNX Runtime's CPU provider has no bf16 product

SUITE = Suite(
    "cpu-ops",
    "matrix products, softmax, layer norm, gelu, convolutions, attention beside the peers",
    (
        _matmul(512),
        _matmul(1024),
        _matmul(2048),
        Case("matmul_128x3072x768", "matmul", _SKINNY, target=_rate(1.05), gflop=0.604),
        Case("linear_128x3072x768", "linear", _SKINNY, target=_rate(1.10), gflop=0.604),
        Case(
            "matmul_1x4096x4096",
            "matmul",
            dict(m=1, n=4096, k=4096),
            gbyte=4e-9 * 4096 * 4096,
            limit="read_64MB",
            share={1: 0.90, 2: 0.90},
        ),
        Case("matmul_bf16_1024", "matmul", {**_CUBE, "dtype": "bfloat16"}, gflop=2.147, peers=_TYPED, **_BF16),
        Case("linear_bf16_1024", "linear", _CUBE, gflop=2.147, **_BF16),
        Case("matmul_int8_1024", "matmul_integer", _CUBE, gflop=2.147, **_INT8),
        Case("linear_int8_1024", "linear", _CUBE, gflop=2.147, error=5e-2, **_INT8),
        Case(
            "softmax_4096x4096",
            "softmax",
            dict(rows=4096, columns=4096),
            gbyte=8e-9 * 4096 * 4096,
            limit="copy_256MB",
            share={1: 0.65, 2: 0.85},
        ),
        Case("layernorm_4096x1024", "layernorm", dict(rows=4096, columns=1024), target=1.0),
        Case("gelu_4096x1024", "gelu", dict(rows=4096, columns=1024), target=1.0),
        Case("dwconv3x3_128_112", "conv", dict(inputs=128, outputs=128, size=112, groups=128), target=1.0, gflop=0.029),
        Case("attention_h12_s512_d64", "attention", dict(heads=12, sequence=512, depth=64), target=1.0, gflop=0.81),
        Case(
            "attention_causal_h12_s2048_d64",
            "attention",
            dict(heads=12, sequence=2048, depth=64, causal=True),
            target=1.0,
            gflop=6.45,  # of the half that the mask leaves
        ),
        Case("conv3x3_64_56", "conv", _CONV, target=_rate(0.95), gflop=0.231),
        Case("conv3x3_int8_64_56", "qlinear_conv", _CONV, target=1.0, gflop=0.231, limit="dot_int8", error=1e-2),
        Case("conv1x1_int8_64_56", "qlinear_conv", {**_CONV, "window": 1}, target=1.0, gflop=0.026, error=1e-2),
        Case("cnn_qdq_64_56", "quantized_tiny", dict(widths=(64, 64, 64, 64), size=56), target=1.0, error=5e-2),
        Case("conv3x3_64_56_f2", "conv", _CONV, target=_rate(1.15), gflop=0.231, accuracy="winograd"),
        Case("conv3x3_64_56_f4", "conv", _CONV, gflop=0.231, accuracy="winograd4"),
        Case(
            "linear_f16_1x4096x4096",
            "linear",
            dict(m=1, n=4096, k=4096, **_F16),
            target=1.0,
            gbyte=2e-9 * 4096 * 4096,
            limit="read_64MB",
            share={1: 0.90, 2: 0.90},
            error=_ROUNDED,
        ),
        Case("linear_f16_128x3072x768", "linear", {**_SKINNY, **_F16}, target=1.0, gflop=0.604, error=_ROUNDED),
        Case("softmax_f16_4096x4096", "softmax", dict(rows=4096, columns=4096, **_F16), target=1.0, error=_ROUNDED),
        Case("layernorm_f16_4096x1024", "layernorm", dict(rows=4096, columns=1024, **_F16), target=1.0, error=_ROUNDED),
    ),
)
