# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of quantized rows beside ONNX Runtime, and weights whose rows are in another order or of tables of floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from quantized_support import DOMAIN, beside_runtime, close, number, run_runtime
from support import feeds, interpret, node_model, normalize

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx

F32 = np.float32
_RANDOM = np.random.default_rng(9)


def scales(*shape: int) -> np.ndarray:
    return _RANDOM.uniform(0.01, 0.3, shape).astype(F32)


def integers(dtype: str, *shape: int) -> np.ndarray:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    info = ml_dtypes.iinfo(kind)
    return _RANDOM.integers(int(info.min), int(info.max) + 1, shape).astype(kind)


INDICES = np.array([[3, 0, -1], [7, 2, 2]])


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("zero", [False, True])
def test_gather_of_blocks(dtype, axes, zero):
    gather, along = axes
    shape = [24, 40]
    shape[along] = 40  # a last block of 8
    data = integers(dtype, *shape)
    shape[along] = 3
    inputs = [data, INDICES, scales(*shape)] + ([integers(dtype, *shape)] if zero else [])
    known = (0, 2, 3)[: len(inputs) - 1]
    attributes = {"gather_axis": gather, "quantize_axis": along, "block_size": 16}
    beside_runtime("GatherBlockQuantized", inputs, known, result=F32, **attributes)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_gather_of_packed_blocks(bits, zero, half):
    each = 8 // bits
    inputs = [integers("uint8", 24, 64 // each), INDICES, scales(24, 4).astype(np.float16 if half else F32)]
    inputs += [integers("uint8", 24, 4 // each)] if zero else []
    known = (0, 2, 3)[: len(inputs) - 1]
    attributes = {"quantize_axis": 1, "block_size": 16, "bits": bits}
    beside_runtime("GatherBlockQuantized", inputs, known, result=inputs[2].dtype, **attributes)


def test_gather_of_codes_that_are_floats():
    """One scale for a row, by the definition."""
    data, scale = _RANDOM.standard_normal((9, 16)).astype(ml_dtypes.float8_e4m3fn), scales(9, 1)
    inputs = [data, INDICES, scale]
    model = node_model("GatherBlockQuantized", inputs, known=(0, 2), domain=DOMAIN, quantize_axis=1, block_size=0)
    (got,) = interpret(import_onnx(model), feeds(model, inputs))
    np.testing.assert_allclose(got, (data.astype(F32) * scale)[INDICES], rtol=1e-6)


def test_scales_that_do_not_fit():
    inputs = [integers("int4", 4, 32), INDICES % 4, scales(4, 3)]
    model = node_model("GatherBlockQuantized", inputs, known=(0, 2), domain=DOMAIN, quantize_axis=1, block_size=16)
    with pytest.raises(UserError, match=r"scales \[4, 3\] do not fit blocks of 16"):
        import_onnx(model)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_embeddings(segments, mask):
    ids, kinds = (_RANDOM.integers(0, n, (2, 5)).astype(np.int32) for n in (20, 2))
    tables = [integers("uint8", n, 16) for n in (20, 8, 2)]
    gamma, beta = integers("uint8", 16), integers("uint8", 16)
    kept = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if mask else None
    numbers = [number(v) for v in (0.02, 0.03, 0.04, 0.01, 0.05)]
    zeros = [np.array(v, np.uint8) for v in (120, 130, 110, 0, 128)]
    inputs = [ids, kinds, *tables, gamma, beta, kept, *numbers, *zeros]
    if not segments:
        for place in (1, 4, 10, 15):
            inputs[place] = None
    known = tuple(i for i, x in enumerate(inputs) if x is not None and i not in (0, 1, 7))
    if not segments:
        inputs[15] = None
    model = node_model("QEmbedLayerNormalization", inputs, known=known, outputs=2, domain=DOMAIN)
    model.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.INT32
    arrays = feeds(model, inputs)
    wanted, imported = run_runtime(model, arrays), import_onnx(model)
    for _ in range(2):
        for mine, theirs in zip(interpret(imported, arrays), wanted, strict=True):
            close(mine, theirs)
        normalize(imported)


def bits_model(group: np.ndarray) -> tuple[onnx.ModelProto, list]:
    x, packed = _RANDOM.standard_normal((3, 64)).astype(F32), integers("uint8", 24, 4, 8)
    inputs = [x, packed, scales(96), None, group.astype(np.int32)]
    attributes = dict(K=64, N=24, bits=4, block_size=16)
    return node_model("MatMulNBits", inputs, known=(1, 2, 4), domain=DOMAIN, **attributes), inputs


def test_product_with_groups_in_another_order():
    model, inputs = bits_model(_RANDOM.permutation(64) // 16)
    arrays = feeds(model, inputs)
    codes = np.stack([inputs[1] & 15, inputs[1] >> 4], -1).reshape(24, 64).astype(F32) - 8
    wanted = inputs[0] @ (codes * inputs[2].reshape(24, 4)[:, inputs[4]]).T
    imported = import_onnx(model)
    np.testing.assert_allclose(interpret(imported, arrays)[0], wanted, rtol=1e-4, atol=1e-3)
    normalize(imported)


def test_groups_of_other_sizes():
    with pytest.raises(UnsupportedError, match="groups .* of other sizes than the blocks of 16"):
        import_onnx(bits_model(np.arange(64) // 32)[0])


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("depth", [64, 72])
def test_product_with_a_table(kind, depth):
    packed, largest = integers("uint8", 24 * depth // 2), scales(-(-24 * depth // 32))
    inputs = [_RANDOM.standard_normal((2, 3, depth)).astype(F32), packed, largest]
    attributes = {"K": depth, "N": 24, "block_size": 32, "quant_type": kind}
    beside_runtime("MatMulBnb4", inputs, (1, 2), result=F32, **attributes)
