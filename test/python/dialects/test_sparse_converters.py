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


SHAPES = [(1, 1), (0, 5), (5, 0), (1, 7), (7, 1), (23, 31)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_scipy_of_any_shape(shape, density):
    x = matrix(*shape, density=density)
    for format in ("csr", "csc", "coo"):
        held = converters.from_scipy(scipy.sparse.csr_array(x).asformat(format))
        np.testing.assert_array_equal(held.dense(), x)
        assert held.dense().shape == shape
        np.testing.assert_array_equal(converters.to_scipy(held).toarray(), x)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float64, np.complex64])
def test_scipy_of_other_elements(dtype):
    x = (matrix() * 5).astype(dtype)
    held = converters.from_scipy(scipy.sparse.csr_array(x))
    assert held.dtype == dtype
    back = converters.to_scipy(held)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back.toarray(), x)


def test_what_scipy_cannot_hold_is_told():
    value = Encoded.pack(matrix().astype(np.float16), Tesa.one(Mask()))
    with pytest.raises(UserError, match="SciPy has no sparse matrices of float16"):
        converters.to_scipy(value)


def test_ragged_blocks_become_rows():
    x = matrix(7, 10)
    back = converters.to_scipy(Encoded.pack(x, Tesa.one(Block((4, 4)))))
    assert back.format == "csr"
    np.testing.assert_array_equal(back.toarray(), x)


def _spoilt(format, what):
    array = scipy.sparse.csr_array(matrix()).asformat(format)
    if what == "range":
        places = array.coords[1] if format == "coo" else array.indices
        places[3] = 10**6
    elif what == "negative":
        places = array.coords[0] if format == "coo" else array.indices
        places[0] = -1
    else:
        array.indptr[2] = array.indptr[-1] + 5
    return array


@pytest.mark.parametrize("format", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("what", ["range", "negative", "starts"])
def test_arrays_of_scipy_that_do_not_fit_are_told(format, what):
    if format == "coo" and what == "starts":
        return
    with pytest.raises(UserError, match=r"_array of shape \(24, 36\) is not sound"):
        converters.from_scipy(_spoilt(format, what))


LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_torch_there_and_back(layout, dtype):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(matrix() * 3).to(getattr(torch, dtype))
    options = {"blocksize": (4, 6)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    theirs = x.to_sparse(layout=getattr(torch, layout), **options)
    held = converters.from_torch(theirs)
    assert str(held.dtype) == dtype
    pattern = held.tesa.regions[0].pattern
    assert pattern == (Block((4, 6)) if options else Mask())
    np.testing.assert_array_equal(held.dense().astype(np.float32), x.float().numpy())
    back = converters.to_torch(held)
    assert back.dtype == x.dtype and back.layout is (torch.sparse_bsr if options else torch.sparse_csr)
    assert torch.equal(back.to_dense(), x)


@pytest.mark.parametrize("layout", LAYOUTS[:3])
@pytest.mark.parametrize("shape", SHAPES)
def test_torch_of_any_shape(layout, shape):
    torch = pytest.importorskip("torch")
    x = matrix(*shape, density=0.4)
    held = converters.from_torch(torch.from_numpy(x).to_sparse(layout=getattr(torch, layout)))
    np.testing.assert_array_equal(held.dense(), x)
    assert torch.equal(converters.to_torch(held).to_dense(), torch.from_numpy(x))


def test_torch_entries_given_twice_are_added():
    torch = pytest.importorskip("torch")
    theirs = torch.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 4.0], (2, 4), requires_grad=True)
    np.testing.assert_array_equal(converters.from_torch(theirs).dense(), theirs.detach().to_dense().numpy())


@pytest.mark.parametrize(
    ("starts", "places", "message"),
    [
        ([0, 1, 2], [1, 9], "0 <= col_indices < ncols"),
        ([0, 1, 2], [1, -1], "0 <= col_indices < ncols"),
        ([0, 2, 2], [2, 1], "sorted"),
        ([0, 2, 2], [1, 1], "distinct"),
        ([0, 3, 2], [1, 2], "nnz|crow_indices"),
    ],
)
def test_indices_of_torch_that_are_not_sound_are_told(starts, places, message):
    torch = pytest.importorskip("torch")
    theirs = torch.sparse_csr_tensor(starts, places, [1.0, 2.0], (2, 4), check_invariants=False)
    with pytest.raises(UserError, match=rf"torch.sparse_csr and shape \(2, 4\) is not sound: .*({message})"):
        converters.from_torch(theirs)


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


@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (3, 0), (5, 1)])
def test_sparse_initializers_of_any_shape(shape):
    x = np.ones(shape, np.float32)
    tensor = onnx.helper.make_sparse_tensor(
        numpy_helper.from_array(x.reshape(-1), "w"), numpy_helper.from_array(np.arange(x.size), "i"), shape
    )
    np.testing.assert_array_equal(converters.from_onnx(tensor).dense(), x)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([3, 1], "must ascend, each once: 1 of value 1 comes after 3"),
        ([1, 1], "1 of value 1 occurs twice"),
        ([1, 900], "index 900 of value 1 is out of range"),
        ([-1, 900], "index -1 of value 0 is out of range"),
        ([1], r"values of shape \(2,\) need integer indices of shape \[n\] or \[n, 2\], these have \(1,\)"),
        ([1.0, 2.0], "need integer indices"),
        ([[0, 1], [0, 36]], r"index \[0, 36\] of value 1 is out of range"),
        ([[1, 1], [0, 2]], r"\[0, 2\] of value 1 comes after \[1, 1\]"),
        ([[1, 1, 0], [0, 2, 0]], r"these have \(2, 3\)"),
    ],
)
def test_bad_initializers_are_told(indices, message):
    tensor = onnx.helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "w"), numpy_helper.from_array(np.array(indices), "i"), (24, 36)
    )
    with pytest.raises(UserError, match=f"'w'.*{message}"):
        converters.from_onnx(tensor)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1 << 40, 1 << 40), "do not fit into 64 bits"), ((1, 1 << 40), "indices have 32 bits"), ((-1, 3), "negative")],
)
def test_sizes_that_overflow_are_told(shape, message):
    one = numpy_helper.from_array(np.ones(1, np.float32), "w"), numpy_helper.from_array(np.zeros(1, np.int64), "i")
    with pytest.raises(UserError, match=message):
        converters.from_onnx(onnx.helper.make_sparse_tensor(*one, shape))
