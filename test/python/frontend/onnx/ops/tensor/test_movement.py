# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that change shapes or move elements, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, feeds, import_onnx, interpret, node_model

from tilewright.reference import AssertionFailedError

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


def ints(*values):
    return np.array(values, np.int64)


def run(op, *inputs, known=None, **options):
    known = range(1, len(inputs)) if known is None else known
    model = node_model(op, inputs, known=[i for i in known if inputs[i] is not None], **options)
    imported = check_numbers(model, feeds(model, inputs))
    whole = node_model(op, inputs, known=[i for i, x in enumerate(inputs) if x is not None], **options)
    check_numbers(whole, {})  # everything known: the same numbers by folding
    return imported


@pytest.mark.parametrize("shape", [(4, 6), (24,), (2, -1), (0, 12), (2, 3, 2, 2), (1, 2, 3, 1, 4), (6, 4), (3, 8)])
def test_reshape(shape):
    run("Reshape", X, ints(*shape))


def test_reshape_to_and_from_a_scalar():
    run("Reshape", X[:1, :1, :1], ints())
    run("Reshape", np.array(3.5, np.float32), ints(1, 1))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis):
    run("Flatten", X, axis=axis)


def test_squeeze_and_unsqueeze():
    run("Squeeze", X[:, None, :, :1], ints(1, -1))
    run("Squeeze", X[:, None, :, :1])
    run("Unsqueeze", X, ints(0, -1))
    run("Unsqueeze", X, axes=[0, 4], opset=11)


@pytest.mark.parametrize("perm", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_transpose(perm):
    run("Transpose", X, perm=perm)


def test_transpose_default_reverses():
    run("Transpose", X)


def test_expand():
    run("Expand", X[:, :1], ints(3, 1))
    run("Expand", X[:, :1], ints(5, 2, 3, 4))
    run("Expand", np.float32([2.0]), ints(3, 4))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    model = node_model("Concat", [X, X * 2, X - 5], axis=axis)
    check_numbers(model, feeds(model, [X, X * 2, X - 5]))


def test_concat_of_single_elements():
    parts = [X[:1, :1, :1], X[1:, :1, :1]]
    model = node_model("Concat", parts, axis=0)
    check_numbers(model, feeds(model, parts))


def test_split():
    run("Split", X, ints(1, 3), axis=2, outputs=2)
    run("Split", X, axis=-1, outputs=2, opset=13)
    run("Split", X, axis=1, split=[2, 1], outputs=2, opset=11)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([0, 1], [2, 3], [0, 1], None),
        ([1], [9223372036854775807], [2], [2]),
        ([-1], [-4], [1], [-1]),
        ([-1], [-9223372036854775808], [2], [-2]),
        ([1], [1], [0], None),
        ([1], [2], [-1], None),
        ([-9], [-9], [1], [-1]),
    ],
)
def test_slice(starts, ends, axes, steps):
    run("Slice", X, ints(*starts), ints(*ends), ints(*axes), *([ints(*steps)] if steps else []))


def test_slice_by_attributes():
    run("Slice", X, starts=[0, 1], ends=[1, 3], axes=[0, 2], opset=9)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad(mode):
    run("Pad", X, ints(0, 1, 2, 0, 0, 1), mode=mode)


def test_pad_value_and_crop():
    run("Pad", X, ints(0, 1, 0, 0, 0, 1), np.float32(2.5))
    run("Pad", X, ints(0, -1, 0, 1, 0, -2))
    run("Pad", X, ints(2, 0, 0, -3, 0, 0))
    run("Pad", X, pads=[0, 1, 0, 0, 0, 1], value=1.5, opset=10)


def test_tile():
    run("Tile", X, ints(2, 1, 3))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("indices", [np.array(1), np.array([0, 1]), np.array([[1, 0], [-1, 1]])])
def test_gather(axis, indices):
    run("Gather", X, indices.astype(np.int64), axis=axis)
    model = node_model("Gather", [X, indices.astype(np.int64)], axis=axis)
    check_numbers(model, feeds(model, [X, indices.astype(np.int64)]))


def test_gather_of_a_large_table_with_int32():
    table = np.random.default_rng(0).standard_normal((100, 300)).astype(np.float32)
    inputs = [table, np.array([[3, 99, -1, 0]], np.int32)]
    model = node_model("Gather", inputs, known=[0])
    check_numbers(model, feeds(model, inputs))


def test_gather_ends_the_run_where_an_index_lies_outside():
    imported = import_onnx(node_model("Gather", [X, ints(0)]))
    with pytest.raises(
        AssertionFailedError, match=r"the_Gather: an index lies outside of axis 0 of the data.*\(-2 to 1\)"
    ):
        interpret(imported, {"x0": X, "x1": ints(7)})


def test_constant_family_needs_no_ops():
    model = node_model("ConstantOfShape", [ints(2, 3)], known=[0])
    check_numbers(model, {})
    check_numbers(node_model("Range", [ints(*[n]).reshape(()) for n in (2, 14, 3)], known=[0, 1, 2]), {})
    check_numbers(node_model("Shape", [X]), {"x0": X})
    check_numbers(node_model("Shape", [X], start=1, end=-1), {"x0": X})
    check_numbers(node_model("Size", [X]), {"x0": X})
    check_numbers(node_model("EyeLike", [X[0]], k=1), {"x0": X[0]})


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_and_space(mode):
    x = np.arange(2 * 8 * 4 * 6, dtype=np.float32).reshape(2, 8, 4, 6)
    run("DepthToSpace", x, blocksize=2, mode=mode)
    run("SpaceToDepth", x, blocksize=2)


def test_gather_elements():
    index = np.array([[[0, 1, -1, 1]], [[2, 0, 0, -3]]], np.int64)
    run("GatherElements", X, index, axis=1)
    run("GatherElements", X, index, axis=1, known=())


def test_gather_nd():
    run("GatherND", X, ints(1, 2, 0, -1).reshape(2, 2), known=())
    run("GatherND", X, ints(1, 0, 2, 3).reshape(2, 2), batch_dims=1, known=())
    run("GatherND", X, ints(0, 1, 3, 1, 2, 0).reshape(1, 2, 3), known=())


def test_trilu_and_center_crop_pad():
    run("Trilu", X, np.array(1, np.int64), known=())
    run("Trilu", X, upper=0)
    run("CenterCropPad", X, ints(5, 2), axes=[1, 2], opset=18)


def test_tile_along_one_axis():
    """Opset 1, which no other tool runs."""
    from support import interpret

    imported = import_onnx(node_model("Tile", [X, np.int64(2), np.int64(1)], opset=5))
    (result,) = interpret(imported, {"x0": X, "x1": np.array(2), "x2": np.array(1)})
    np.testing.assert_array_equal(result, np.tile(X, (1, 2, 1)))
