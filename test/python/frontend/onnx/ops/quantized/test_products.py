# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of com.microsoft on codes, beside ONNX Runtime and beside integers of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from quantized_support import DOMAIN, beside_runtime, codes, number
from support import node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

F32 = np.float32
_RANDOM = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(F32)


def scales(n: int) -> np.ndarray:
    return _RANDOM.uniform(0.01, 0.1, n).astype(F32)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("right", ["uint8", "int8"])
@pytest.mark.parametrize("bias", [False, True])
def test_floats_from_integers(columns, right, bias):
    """Weights known, as files have them, and large enough to be kept in bytes."""
    x, y = codes("uint8", 2, 3, 32), codes("int8" if right == "int8" else "uint8", 32, 12) // 2
    s, z = (scales(12), codes(right, 12) // 4) if columns else (number(0.03), np.array(7, right))
    inputs = [x, y, number(0.02), s, np.array(100, np.uint8), z, real(12) if bias else None]
    inputs = inputs if bias else inputs[:-1]
    beside_runtime("MatMulIntegerToFloat", inputs, (1, 2, 3, 4, 5), result=F32)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_quantization(columns, bias):
    s = scales(12) if columns else number(0.03)
    z = (codes("int8", 12) // 4) if columns else None
    inputs = [real(2, 3, 32), codes("int8", 32, 12), s, z, real(12) if bias else None]
    inputs = inputs if bias else inputs[:-1]
    known = tuple(i for i in (1, 2, 3) if inputs[i : i + 1] and inputs[i] is not None)
    beside_runtime("DynamicQuantizeMatMul", inputs, known, result=F32)


def test_sixteen_bits():
    x, y = (_RANDOM.integers(-300, 300, shape).astype(np.int16) for shape in ((3, 5), (5, 4)))
    model = node_model("MatMulInteger16", [x, y], domain=DOMAIN)
    from quantized_support import typed
    from support import check_values, feeds

    check_values(typed(model, [np.int32]), feeds(model, [x, y]), [x.astype(np.int32) @ y.astype(np.int32)])


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("turned", [(0, 0), (1, 1), (0, 1)])
@pytest.mark.parametrize("columns", [False, True])
def test_gemm(floats, turned, columns):
    a, b = turned
    x = codes("uint8", 32, 5) if a else codes("uint8", 5, 32)
    y = codes("int8", 12, 32) if b else codes("int8", 32, 12)
    s, z = (scales(12), codes("int8", 12) // 4) if columns else (number(0.03), np.array(2, np.int8))
    c = _RANDOM.integers(-900, 900, 12).astype(np.int32)
    inputs = [x, number(0.02), np.array(99, np.uint8), y, s, z, c]
    inputs += [] if floats else [number(0.9), np.array(120, np.uint8)]
    known = tuple(i for i in range(1, len(inputs)))
    result = {"result": F32} if floats else {}
    beside_runtime("QGemm", inputs, known, transA=a, transB=b, alpha=1.5, **result)


def test_gemm_whose_result_has_half_of_its_numbers():
    inputs = [codes("uint8", 4, 8), number(1), np.array(0, np.uint8), codes("int8", 8, 4), number(1), None, None]
    with pytest.raises(UserError, match="come together"):
        import_onnx(node_model("QGemm", [*inputs, number(1)], domain=DOMAIN))
