# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts and sparse matrices that are not sound are refused with what is wrong, or do no harm."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import scipy.sparse
from onnx import numpy_helper

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile import NM, Block, Dense, Dynamic, Encoded, Format, Mask, Tesa, converters

PATTERNS = (
    NM(2, 4, 0),
    NM(3, 8, 1),
    NM(1, 2, 0, (1, 8)),
    NM(8, 300, 1),
    Block((8, 16)),
    Mask(),
    Dense(),
    Dynamic((1, 8)),
)
_SPOILT = (-1, -128, 127, 255)


def spoil(part: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A part with one thing changed: its shape, its type, or an element."""
    part = part.copy()
    flat, at = part.reshape(-1), rng.integers(max(part.size, 1), size=2)
    numbers = np.iinfo(part.dtype) if part.dtype.kind == "i" else np.finfo(np.float32)
    change = rng.integers(10)
    if change == 0:
        return part[:-1]
    if change == 1:
        return np.concatenate([part, part])
    if change == 2:
        return part.astype(rng.choice([np.float64, np.uint8, np.int64]))
    if change == 3:
        return part[None]
    if change == 4:
        return flat[:1].reshape(()) if part.size else part.sum()
    if change == 5:
        return flat
    if part.size:
        values = {6: rng.choice(_SPOILT), 7: numbers.max, 8: numbers.min, 9: flat[at[1]]}
        flat[at[0]] = np.asarray(values[int(change)]).astype(part.dtype)
    return part


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_spoilt_parts_are_refused_or_harmless(pattern) -> None:
    refused = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        shape = tuple(int(n) for n in rng.integers(0, 40, 2))
        kept = Encoded.pack(np.zeros(shape, np.float32), Tesa.one(pattern)) if isinstance(pattern, NM) else None
        array = rng.standard_normal(shape).astype(np.float32) * (rng.random(shape) < 0.3)
        encoded = kept or Encoded.pack(array.astype(np.float32), Tesa.one(pattern))
        parts, wrong = list(encoded.parts), int(rng.integers(len(encoded.parts)))
        parts[wrong] = spoil(parts[wrong], rng)
        spoilt = Encoded(encoded.tesa, shape, encoded.dtype, tuple(parts))
        try:
            dense = spoilt.dense()
        except UserError:
            refused += 1
            continue
        assert dense.shape == shape and dense.dtype == np.float32
        assert spoilt.kept().shape == shape
    assert refused > 30


CASES = [
    (Mask(), {1: [0, 9, 1]}, "row 0 has an entry in column 9 of 4"),
    (Mask(), {1: [0, -1, 1]}, "row 0 has an entry in column -1 of 4"),
    (Mask(), {1: [1, 1, 1]}, "columns of row 0 do not ascend: one occurs twice"),
    (Mask(), {1: [2, 1, 1]}, "columns of row 0 do not ascend"),
    (Mask(), {1: [0.0, 1.0, 1.0]}, "indices must be integers of 1 dimensions, not float64"),
    (Mask(), {2: [0, 2, 4]}, "indptr must have 3 entries from 0 to the 3 kept"),
    (Mask(), {2: [0, 3]}, "indptr must have 3 entries"),
    (Mask(), {2: [0, 4, 3]}, "indptr must not fall"),
    (Mask(), {2: np.array([0, 2**31 - 1, 3], np.int32)}, "indptr must not fall"),
    (Mask(), {0: np.zeros(3, np.float64)}, "the elements that the parts hold are float64, the encoding says float32"),
    (NM(1, 2, 1), {1: np.array([[0, 2], [0, 1]], np.int8)}, "positions 0 to 2 in windows of 2"),
    (NM(1, 2, 1), {1: np.array([[0, -3], [0, 1]], np.int8)}, "positions -3 to 1 in windows of 2"),
    (NM(2, 4, 1), {1: np.array([[1, 1], [0, 1]], np.int8)}, "positions of window 0 do not ascend"),
    (NM(2, 4, 1), {1: np.array([[0, 1]], np.int8)}, "positions of shape"),
    (NM(2, 4, 1), {0: np.zeros((2, 3), np.float32)}, "values of shape"),
    (Block((2, 2)), {1: [5]}, "row 0 has an entry in column 5 of 2"),
    (Block((2, 2)), {0: np.zeros((1, 2, 3), np.float32)}, r"blocks of shape \(2, 3\), the pattern says \(2, 2\)"),
]


@pytest.mark.parametrize(("pattern", "changes", "message"), CASES)
def test_what_is_wrong_is_told(pattern, changes, message: str) -> None:
    array = np.zeros((2, 4), np.float32)
    array[0, :2] = array[1, 1] = 1
    if isinstance(pattern, NM) and pattern.n == 1:
        array[0, 1] = 0
    good = Encoded.pack(array, Tesa.one(pattern))
    parts = [np.asarray(changes.get(number, part)) for number, part in enumerate(good.parts)]
    with pytest.raises(UserError, match=message):
        Encoded(good.tesa, good.shape, good.dtype, tuple(parts)).dense()


def test_another_number_of_parts() -> None:
    good = Encoded.pack(np.eye(4, dtype=np.float32), Tesa.one(Mask()))
    for parts in (good.parts[:2], (*good.parts, good.parts[0])):
        with pytest.raises(UserError, match="parts"):
            Encoded(good.tesa, good.shape, good.dtype, parts).dense()


def test_wrong_n_of_m_says_where() -> None:
    array = np.zeros((8, 3), np.float32)
    array[4:7, 1] = 1
    with pytest.raises(UserError, match=r"window 1 at \[1\] has 3 units other than zero"):
        Encoded.pack(array, Tesa.one(NM(2, 4, 0)))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_is_kept_or_refused(number: float) -> None:
    """NaN and infinities are not zero: a mask keeps them, 1 of 2 has no place for one beside a number."""
    array = np.array([[1.0, number, 0.0, number]], np.float32)
    for pattern in (Mask(), Block((1, 2))):
        np.testing.assert_array_equal(Encoded.pack(array, Tesa.one(pattern)).dense(), array)
    with pytest.raises(UserError, match="has 2 units other than zero"):
        Encoded.pack(array, Tesa.one(NM(1, 2, 1)))


def test_codes_of_another_type() -> None:
    held = Encoded.pack(np.eye(4, dtype=np.float32), Tesa.one(Mask())).quantize(Format("i8"), np.ones((1, 1), "f4"))
    with pytest.raises(UserError, match="hold are int32, the encoding says int8"):
        Encoded(held.tesa, held.shape, held.dtype, (held.parts[0].astype(np.int32), *held.parts[1:])).dense()


def test_sizes_that_no_memory_holds() -> None:
    parts = (np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(5, np.int32))
    with pytest.raises(UserError, match="no memory for all elements of a tensor of shape"):
        Encoded(Tesa.one(Mask()), (4, 2**56), np.dtype(np.float32), parts).dense()


@pytest.mark.parametrize(
    ("indices", "indptr"), [([0, 9, 1], [0, 2, 3]), ([0, -1, 1], [0, 2, 3]), ([0, 1, 1], [0, 99, 3]), ([0], [0, 2, 3])]
)
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_matrices_of_scipy_that_point_outside(indices, indptr, format: str) -> None:
    make, shape = (scipy.sparse.csr_array, (2, 4)) if format == "csr" else (scipy.sparse.csc_array, (4, 2))
    array = make((np.ones(3, np.float32), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=shape)
    array.indices, array.indptr = np.asarray(indices, np.int32), np.asarray(indptr, np.int32)
    with pytest.raises(UserError, match=r"of shape \(\d, \d\) is not sound"):
        converters.from_scipy(array)


def test_coordinates_outside() -> None:
    array = scipy.sparse.coo_array((np.ones(2, np.float32), ([0, 1], [1, 2])), shape=(2, 4))
    array.coords[1][0] = 1 << 20
    with pytest.raises(UserError, match="is not sound: indices must be"):
        converters.from_scipy(array)


def test_matrices_beyond_32_bits() -> None:
    array = scipy.sparse.coo_array((np.ones(1), ([0], [2**33])), shape=(1, 2**34))
    with pytest.raises(UserError, match="indices have 32 bits"):
        converters.from_scipy(array)


@pytest.mark.parametrize(
    ("dims", "values", "indices", "message"),
    [
        ([1 << 40, 1 << 40], [1.0], [[0, 0]], "do not fit into 64 bits"),
        ([-2, 4], [1.0], [[0, 0]], "a size is negative"),
        ([2, 4], [1.0], [[0, 0, 0]], r"integer indices of shape \[n\] or \[n, 2\]"),
        ([2, 4], [[1.0]], [0], r"values of shape \(1, 1\) need"),
        ([2, 4], [1.0], [0.0], "need integer indices"),
        ([2, 4], [1.0, 2.0], [3, 3], "must ascend, each once"),
    ],
)
def test_sparse_initializers(dims: list[int], values: list, indices: list, message: str) -> None:
    tensor = onnx.SparseTensorProto(dims=dims)
    tensor.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "w"))
    tensor.indices.CopyFrom(numpy_helper.from_array(np.array(indices)))
    with pytest.raises(UserError, match=f"'w'.*{message}"):
        converters.from_onnx(tensor)
