# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded tensors go to SciPy, PyTorch and ONNX and come back the same."""

import numpy as np
import onnx
import pytest
import scipy.sparse
from onnx import numpy_helper

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile import NM, Block, Encoded, Mask, Tesa, converters


def matrix(rows=24, columns=36, density=0.2, seed=1):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)).astype(np.float32)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("seed", range(4))
def test_scipy_there_and_back(format, seed):
    x = matrix(seed=seed, density=(0.0, 0.05, 0.3, 1.0)[seed])
    theirs = scipy.sparse.csr_array(x).asformat(format)
    held = converters.from_scipy(theirs)
    np.testing.assert_array_equal(held.dense(), x)
    assert isinstance(held.tesa.regions[0].pattern, Block if format == "bsr" else Mask)
    back = converters.to_scipy(held)
    np.testing.assert_array_equal(back.toarray(), x)
    assert back.nnz == (theirs.nnz if format in ("csr", "csc", "bsr") else np.count_nonzero(x))


@pytest.mark.parametrize("size", [(2, 3), (8, 12), (24, 36)])
def test_blocks_there_and_back(size):
    x = np.kron(np.random.default_rng(2).random((24 // size[0], 36 // size[1])) < 0.4, np.ones(size, np.float32))
    theirs = scipy.sparse.bsr_array(x, blocksize=size)
    held = converters.from_scipy(theirs)
    assert held.tesa.regions[0].pattern == Block(size)
    back = converters.to_scipy(held)
    assert back.format == "bsr" and back.blocksize == size
    np.testing.assert_array_equal(back.toarray(), x)


def test_blocks_out_of_order_become_rows():
    data = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    theirs = scipy.sparse.bsr_array((data, np.array([1, 0]), np.array([0, 2])), shape=(2, 4))
    held = converters.from_scipy(theirs)
    assert held.tesa.regions[0].pattern == Mask()
    np.testing.assert_array_equal(held.dense(), theirs.toarray())


def test_entries_given_twice_are_added():
    theirs = scipy.sparse.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [3, 3, 0])), shape=(2, 4))
    np.testing.assert_array_equal(converters.from_scipy(theirs).dense(), theirs.toarray())


def test_other_patterns_become_rows():
    x = np.zeros((8, 6), np.float32)
    x[[0, 3, 5]] = 7
    value = Encoded.pack(x, Tesa.one(NM(2, 4, 0)))
    back = converters.to_scipy(value)
    assert back.format == "csr" and back.nnz == 24, "zeros that a window keeps stay stored"
    np.testing.assert_array_equal(back.toarray(), x)


@pytest.mark.parametrize("given", [np.ones((2, 2)), scipy.sparse.coo_array(np.ones(3))])
def test_what_is_no_sparse_matrix_is_told(given):
    with pytest.raises(UserError, match="a matrix of scipy.sparse is needed"):
        converters.from_scipy(given)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_torch_there_and_back(layout):
    torch = pytest.importorskip("torch")
    x = matrix()
    options = {"blocksize": (4, 6)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    theirs = torch.from_numpy(x).to_sparse(layout=getattr(torch, layout), **options)
    held = converters.from_torch(theirs)
    np.testing.assert_array_equal(held.dense(), x)
    np.testing.assert_array_equal(converters.to_torch(held).to_dense().numpy(), x)


@pytest.mark.parametrize("linear", [True, False])
def test_sparse_initializers_of_onnx(linear):
    x = matrix()
    rows, columns = np.nonzero(x)
    indices = rows * x.shape[1] + columns if linear else np.stack([rows, columns], axis=1)
    tensor = onnx.helper.make_sparse_tensor(
        numpy_helper.from_array(x[rows, columns], "w"), numpy_helper.from_array(indices, "i"), x.shape
    )
    held = converters.from_onnx(tensor)
    np.testing.assert_array_equal(held.dense(), x)


@pytest.mark.parametrize(
    ("indices", "message"),
    [([3, 1], "must ascend"), ([1, 1], "must ascend"), ([1, 900], "within"), ([1], "2 values, 1 indices")],
)
def test_bad_initializers_are_told(indices, message):
    tensor = onnx.helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "w"), numpy_helper.from_array(np.array(indices), "i"), (24, 36)
    )
    with pytest.raises(UserError, match=f"'w'.*{message}"):
        converters.from_onnx(tensor)
