# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Panels and blocks of small integers with scales on CPUs: codes are made numbers when they are packed."""

import numpy as np
import pytest
from sparse_products import blocks, vectors

import tilewright as tw
from tilewright.dialects.sparse_tile.formats import Format

RNG = np.random.default_rng(9)
DEPTH, COLUMNS, ROWS = 64, 64, 21
TEXT = """
#p = #sparse_tile.tesa<{pattern}>
#q = #sparse_tile.tesa<{pattern} : format<{format}>>
#e = #ml_program.extern : tensor<64x64xf32>
#s = #ml_program.extern : tensor<{scales}xf32>
ml_program.global private @w(#e) : tensor<64x64xf32>
ml_program.global private @s(#s) : tensor<{scales}xf32>
func.func @main(%x: tensor<21x64xf32>) -> tensor<21x64xf32> {{
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %s = ml_program.global_load_const @s : tensor<{scales}xf32>
  %p = sparse_tile.pack %w : tensor<64x64xf32> to tensor<64x64xf32, #p>
  %q = sparse_tile.quantize %p scales %s : tensor<64x64xf32, #p>, tensor<{scales}xf32> to tensor<64x64xf32, #q>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<21x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<21x64xf32>) -> tensor<21x64xf32>
  %y = sparse_tile.matmul %x, %q, %f {{kernel = "{form}"}}
      : tensor<21x64xf32>, tensor<64x64xf32, #q>, tensor<21x64xf32>
  return %y : tensor<21x64xf32>
}}
"""
PATTERNS = {
    "panels": ("nm<2 : 4, axis = 0, unit = [1, 32]>", vectors(RNG, (DEPTH, COLUMNS), 2, 4, (1, 32))),
    "blocks": ("block<[16, 16]>", blocks(RNG, (DEPTH, COLUMNS), (16, 16), 0.4)),
}


@pytest.mark.parametrize("form", ["panels", "blocks"])
@pytest.mark.parametrize(("storage", "group"), [("i8", (None, 1)), ("i4", (32, 1))], ids=["channels", "groups"])
def test_formats(form, storage, group):
    """A scale per column, and per 32 elements of a column; some codes of kept blocks are zero."""
    pattern, small = PATTERNS[form]
    format_ = Format(storage, "f32", None, group)
    text = f"{storage}, scales = f32, group = [{', '.join('?' if g is None else str(g) for g in group)}]"
    counts = [1 if g is None else -(-size // g) for size, g in zip(small.shape, group, strict=True)]
    scales = RNG.choice([0.5, 1.0, 2.0], counts).astype(np.float32)
    source = TEXT.format(pattern=pattern, format=text, scales="x".join(map(str, counts)), form=form)
    weight = small.astype(np.float32) * 0.75
    x = RNG.integers(-3, 4, (ROWS, DEPTH)).astype(np.float32)
    (result,) = tw.compile(source, weights={"w": weight, "s": scales}, threads=1)(x)
    codes = format_.quantize(weight, scales)
    plain = format_.dequantize(codes, scales, None, np.dtype(np.float32))
    np.testing.assert_array_equal(result, x @ plain)
