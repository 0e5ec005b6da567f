# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of com.microsoft beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx


@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize("b", [0, 1])
def test_transposes(alpha, a, b):
    x, y = real(2, 3, *((5, 4) if a else (4, 5))), real(2, 3, *((6, 5) if b else (5, 6)))
    beside_runtime("FusedMatMul", [x, y], transA=a, transB=b, alpha=alpha)


def test_transposes_of_batches():
    beside_runtime("FusedMatMul", [real(4, 2, 3, 5), real(2, 3, 5, 6)], transBatchA=1)
    beside_runtime("FusedMatMul", [real(4, 2, 3, 5), real(5, 2, 3, 6)], transBatchA=1, transBatchB=1)
    beside_runtime("FusedMatMul", [real(5, 2, 3, 4), real(5, 2, 3, 6)], transBatchA=1, transBatchB=1, transA=1)


def test_vectors():
    beside_runtime("FusedMatMul", [real(5), real(5, 6)], alpha=2.0)
    beside_runtime("FusedMatMul", [real(3, 5), real(5)], alpha=2.0)
    beside_runtime("TransposeMatMul", [real(5, 3), real(5, 6)], transA=1)
    with pytest.raises(UserError, match="inner dimensions differ"):
        import_onnx(model_of("FusedMatMul", [real(3, 5), real(4, 6)]))


ACTIVATIONS = [
    ("Relu", {}),
    ("LeakyRelu", {"activation_alpha": 0.2}),
    ("Elu", {"activation_alpha": 0.2}),
    ("HardSigmoid", {"activation_alpha": 0.2, "activation_beta": 0.3}),
    ("Tanh", {}),
    ("Sigmoid", {}),
    ("Softplus", {}),
    ("Softsign", {}),
    ("Selu", {"activation_alpha": 1.2, "activation_gamma": 1.1}),
    ("ThresholdedRelu", {"activation_alpha": 0.2}),
    ("Celu", {"activation_alpha": 0.5}),
]


@pytest.mark.parametrize(("name", "parameters"), ACTIVATIONS)
def test_gemm_with_activation(name, parameters):
    inputs = [real(4, 5), real(6, 5), real(6)]
    beside_runtime("FusedGemm", inputs, transB=1, alpha=0.5, beta=0.7, activation=name, **parameters)


def test_product_with_activation():
    x, y = real(3, 4), real(4, 5)
    want = [np.maximum(x @ y * F32(0.5), 0)]
    beside_runtime("FusedMatMulActivation", [x, y], alpha=0.5, activation="Relu", expected=want)
    with pytest.raises(UnsupportedError, match="activation Swirl"):
        import_onnx(model_of("FusedMatMulActivation", [x, y], activation="Swirl"))


def test_gemm_with_fast_gelu():
    x, y, bias = real(2, 3, 4), real(4, 5), real(5)
    total = (x @ y + bias).astype(np.float64)
    want = 0.5 * total * (1 + np.tanh(total * (0.035677408136300125 * total * total + 0.7978845608028654)))
    beside_runtime("GemmFastGelu", [x, y, bias], expected=[want.astype(F32)])


@pytest.mark.parametrize("op", ["ComplexMul", "ComplexMulConj"])
def test_complex_products(op):
    x, y = real(3, 4, 2), real(3, 4, 2)
    a, c = (v[..., 0] + 1j * v[..., 1] for v in (x, y))
    product = a * (c.conj() if op.endswith("Conj") else c)
    beside_runtime(op, [x, y], expected=[np.stack([product.real, product.imag], -1).astype(F32)], opens=(3, 4))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric):
    beside_runtime("CDist", [real(3, 4), real(5, 4)], metric=metric)
    with pytest.raises(UnsupportedError, match="metric cosine"):
        import_onnx(model_of("CDist", [real(3, 4), real(5, 4)], metric="cosine"))
