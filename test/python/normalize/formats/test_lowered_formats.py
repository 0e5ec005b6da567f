# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text with quantize, dequantize and parts of dense tensors, on all targets, against the formats in NumPy."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.dialects.sparse_tile import Format

TARGETS = ("reference", "cpu", "cpu:x86-64-v3", "cuda:sm_80", "cuda:sm_90a")
SHAPE = (24, 35)
FORMATS = {
    "rows": ("i8, scales = f32, zero_points = i8, group = [1, ?]", Format("i8", "f32", "i8", (1, None))),
    "columns": ("i8, unsigned, scales = f32, zero_points = i8, group = [?, 1]", Format("u8", "f32", "u8", (None, 1))),
    "blocks": ("i4, unsigned, scales = f32, zero_points = i4, group = [8, 1]", Format("u4", "f32", "u4", (8, 1))),
    "ragged": ("i2, scales = f32, zero_points = i2, group = [7, 3]", Format("i2", "f32", "i2", (7, 3))),
    "whole": ("i4, scales = f32, zero_points = i4", Format("i4", "f32", "i4")),
}


def compiled(text, target):
    """A model of text."""
    return tw.compile(text, target, **({"emulate": True} if target.startswith("cuda") else {}))


@pytest.mark.parametrize(
    ("name", "target"),
    [*((name, target) for name in FORMATS for target in TARGETS[:2]), *(("ragged", target) for target in TARGETS[2:])],
)
def test_there_and_back(name, target):
    """Codes and elements are those of the format, of NaN and infinities too."""
    text, format = FORMATS[name]
    rng = np.random.default_rng(5)
    sizes = format.scale_shape(SHAPE)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    x[0, 0], x[1, 1], x[2, 2] = np.nan, np.inf, -np.inf
    scales = rng.uniform(0.05, 0.5, sizes).astype(np.float32)
    zero = rng.integers(*format.limits, sizes, endpoint=True).astype(format.held).view(np.int8)
    whole, each = "x".join(map(str, SHAPE)), "x".join(map(str, sizes))
    f32, i8, s, z = f"tensor<{whole}xf32>", f"tensor<{whole}xi8>", f"tensor<{each}xf32>", f"tensor<{each}xi8>"
    model = compiled(
        f"""
        #q = #sparse_tile.tesa<dense : format<{text}>>
        func.func @main(%x: {f32}, %s: {s}, %z: {z}) -> ({f32}, {i8}) {{
          %q = sparse_tile.quantize %x scales %s zero_points %z : {f32}, {s}, {z} to tensor<{whole}xf32, #q>
          %c, %t, %p = sparse_tile.parts %q : tensor<{whole}xf32, #q> to {i8}, {s}, {z}
          %y = sparse_tile.dequantize %q : tensor<{whole}xf32, #q> to {f32}
          return %y, %c : {f32}, {i8}
        }}""",
        target,
    )
    y, codes = model(x, scales, zero)
    want = format.quantize(x, scales, zero)
    np.testing.assert_array_equal(codes.view(np.uint8), want.view(np.uint8))
    np.testing.assert_array_equal(y, format.dequantize(want, scales, zero, np.float32))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_product_of_integers(target):
    """Encoded integers without scales, multiplied: exact on all targets, by instructions for bytes where there are."""
    rng = np.random.default_rng(6)
    a, b = (rng.integers(0, 256, shape).astype(np.uint8) for shape in ((7, 37), (37, 33)))
    zero = rng.integers(0, 256, (1, 33)).astype(np.uint8)
    model = compiled(
        """
        #a = #sparse_tile.tesa<dense : format<i8, unsigned>>
        #b = #sparse_tile.tesa<dense : format<i8, unsigned, zero_points = i8, group = [?, 1]>>
        func.func @main(%a: tensor<7x37xi8>, %b: tensor<37x33xi8>, %z: tensor<1x33xi8>) -> tensor<7x33xi32> {
          %p = sparse_tile.assemble %a : tensor<7x37xi8> to tensor<7x37xi32, #a>
          %q = sparse_tile.assemble %b, %z : tensor<37x33xi8>, tensor<1x33xi8> to tensor<37x33xi32, #b>
          %x = sparse_tile.dequantize %p : tensor<7x37xi32, #a> to tensor<7x37xi32>
          %y = sparse_tile.dequantize %q : tensor<37x33xi32, #b> to tensor<37x33xi32>
          %zero = arith.constant 0 : i32
          %e = tensor.empty() : tensor<7x33xi32>
          %f = linalg.fill ins(%zero : i32) outs(%e : tensor<7x33xi32>) -> tensor<7x33xi32>
          %m = linalg.matmul ins(%x, %y : tensor<7x37xi32>, tensor<37x33xi32>) outs(%f : tensor<7x33xi32>)
              -> tensor<7x33xi32>
          return %m : tensor<7x33xi32>
        }""",
        target,
    )
    want = a.astype(np.int32) @ (b.astype(np.int32) - zero.astype(np.int32))
    np.testing.assert_array_equal(model(a.view(np.int8), b.view(np.int8), zero.view(np.int8))[0], want)


def test_an_encoded_argument_is_told():
    text = """
        #q = #sparse_tile.tesa<dense : format<i8, scales = f32>>
        func.func @main(%q: tensor<8xf32, #q>) -> tensor<8xf32> {
          %x = sparse_tile.dequantize %q : tensor<8xf32, #q> to tensor<8xf32>
          return %x : tensor<8xf32>
        }"""
    with pytest.raises(UserError, match="an encoded tensor comes from where its parts are not known"):
        tw.compile(text, "cpu")


def test_other_patterns_are_told():
    text = """
        #q = #sparse_tile.tesa<mask : format<i8, scales = f32>>
        #m = #sparse_tile.tesa<mask>
        func.func @main(%v: tensor<?xi8>, %i: tensor<?xi32>, %p: tensor<9xi32>, %s: tensor<1x1xf32>)
            -> tensor<8x8xf32> {
          %q = sparse_tile.assemble %v, %i, %p, %s
              : tensor<?xi8>, tensor<?xi32>, tensor<9xi32>, tensor<1x1xf32> to tensor<8x8xf32, #q>
          %x = sparse_tile.dequantize %q : tensor<8x8xf32, #q> to tensor<8x8xf32, #m>
          %y = sparse_tile.unpack %x : tensor<8x8xf32, #m> to tensor<8x8xf32>
          return %y : tensor<8x8xf32>
        }"""
    with pytest.raises(UnsupportedError, match="encodings change at compile time only"):
        tw.compile(text, "cpu")
