# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded tensors from and to the sparse formats of other libraries: SciPy, PyTorch, ONNX's sparse initializers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.encoded import Encoded
from tilewright.dialects.sparse_tile.patterns import Block, Mask, Pattern
from tilewright.dialects.sparse_tile.tesa import Tesa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

_MOST = 2**31 - 1


def from_scipy(array: Any) -> Encoded:
    """Hold a sparse array or matrix of SciPy: a BSR one by blocks, any other by compressed rows.

    Entries given more than once are added up, as SciPy does. Blocks and entries that are stored stay stored, zeros too.

    Args:
        array: of `scipy.sparse`, of two dimensions.

    Raises:
        UserError: it is none, has another number of dimensions, is too large for 32-bit indices, or holds indices that
            are out of range or do not fit each other.
    """
    sparse = _scipy()
    if not sparse.issparse(array) or array.ndim != 2:
        raise UserError(f"a matrix of scipy.sparse is needed, not {type(array).__name__}")
    _check_size("a matrix of scipy.sparse", array.shape, array.nnz)
    _check_indices(array)
    pattern: Pattern = Mask()
    if array.format == "bsr" and _ascends(array):
        pattern, compressed = Block(tuple(array.blocksize)), array
    else:
        compressed = array.tocsr(copy=True)
        compressed.sum_duplicates()
    parts = (compressed.data, compressed.indices.astype(np.int32), compressed.indptr.astype(np.int32))
    return Encoded(Tesa.one(pattern), tuple(array.shape), array.dtype, parts)


def to_scipy(value: Encoded) -> Any:
    """Give an encoded matrix to SciPy: `bsr_array` for whole blocks, else `csr_array` of what the regions keep.

    Raises:
        UserError: SciPy is not installed, the tensor is no matrix, or its parts are not sound.
    """
    sparse = _scipy()
    if len(value.shape) != 2:
        raise UserError(f"scipy.sparse holds matrices, not tensors of shape {value.shape}")
    region = value.tesa.regions[0]
    dense, kept = value.dense(), value.kept()
    if len(value.tesa.regions) == 1 and not region.format and isinstance(region.pattern, Block):
        whole = all(size % step == 0 for size, step in zip(value.shape, region.pattern.shape, strict=True))
        if whole:
            return sparse.bsr_array(value.parts, shape=value.shape)
    rows, columns = np.nonzero(kept)
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    return sparse.csr_array((dense[rows, columns], columns.astype(np.int32), starts), shape=value.shape)


def from_torch(tensor: Any) -> Encoded:
    """Hold a sparse tensor of PyTorch (layouts COO, CSR, CSC, BSR, BSC) of two dimensions, as :func:`from_scipy` does.

    Raises:
        UserError: it is dense, or has more dimensions (batches, dense dimensions inside).
    """
    import torch

    sparse = _scipy()
    name, shape = str(tensor.layout), tuple(tensor.shape)
    if len(shape) != 2 or tensor.layout is torch.strided:
        raise UserError(f"a sparse matrix of PyTorch is needed, not {name} of shape {shape}")
    if tensor.layout is torch.sparse_coo:
        if tensor.dense_dim():
            raise UserError(f"a COO tensor with {tensor.dense_dim()} dense dimensions is no sparse matrix")
        entries = tensor.coalesce()
        return from_scipy(sparse.coo_array((entries.values().numpy(), entries.indices().numpy()), shape=shape))
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = (tensor.values().numpy(), tensor.col_indices().numpy(), tensor.crow_indices().numpy())
        make = sparse.csr_array if tensor.layout is torch.sparse_csr else sparse.bsr_array
        return from_scipy(make(parts, shape=shape))
    if tensor.layout is torch.sparse_csc:
        parts = (tensor.values().numpy(), tensor.row_indices().numpy(), tensor.ccol_indices().numpy())
        return from_scipy(sparse.csc_array(parts, shape=shape))
    rows = tensor.to_sparse_bsr(tensor.values().shape[1:])  # blocks by columns
    return from_torch(rows)


def to_torch(value: Encoded) -> Any:
    """Give an encoded matrix to PyTorch: layout BSR for whole blocks, else CSR.

    Raises:
        UserError: as :func:`to_scipy`.
    """
    import torch

    array = to_scipy(value)
    make = torch.sparse_bsr_tensor if array.format == "bsr" else torch.sparse_csr_tensor
    parts = (torch.from_numpy(np.asarray(part)) for part in (array.indptr, array.indices, array.data))
    return make(*parts, size=value.shape)


def from_onnx(tensor: onnx.SparseTensorProto) -> Encoded:
    """Hold a sparse initializer of ONNX: values, and indices of shape [n] (linear) or [n, rank].

    Raises:
        UserError: it is no matrix, an index is out of range, occurs twice or out of order.
    """
    from onnx import numpy_helper

    shape = tuple(tensor.dims)
    values, indices = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    if len(shape) != 2:
        raise UserError(f"sparse initializer {tensor.values.name!r} of shape {shape}: matrices alone can be held")
    _check_size(f"sparse initializer {tensor.values.name!r}", shape, values.size)
    if values.ndim != 1 or indices.dtype.kind not in "iu" or indices.shape[1:] not in ((), (2,)):
        raise UserError(
            f"sparse initializer {tensor.values.name!r}: values of shape {values.shape} and indices of shape "
            f"{indices.shape} ({indices.dtype}); needed are [n] values and integers of shape [n] or [n, 2]"
        )
    if indices.ndim == 2:
        if indices.size and ((indices < 0).any() or (indices >= np.array(shape)).any()):
            raise UserError(f"sparse initializer {tensor.values.name!r}: an index is outside of {shape}")
        indices = indices[:, 0] * shape[1] + indices[:, 1]
    if len(indices) != len(values):
        raise UserError(f"sparse initializer {tensor.values.name!r}: {len(values)} values, {len(indices)} indices")
    if indices.size and (indices.min() < 0 or indices.max() >= shape[0] * shape[1] or (np.diff(indices) <= 0).any()):
        raise UserError(f"sparse initializer {tensor.values.name!r}: indices must ascend within {shape}, each once")
    rows, columns = indices // shape[1], indices % shape[1]
    starts = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int32)
    return Encoded(Tesa.one(Mask()), shape, values.dtype, (values, columns.astype(np.int32), starts))


def _check_size(name: str, shape: Sequence[int], count: int) -> None:
    """UserError where indices of 32 bits do not reach."""
    if not all(0 <= size <= _MOST for size in shape) or count > _MOST:
        raise UserError(
            f"{name} of shape {tuple(shape)} with {count} elements: sizes and counts must be at least 0 and at most "
            f"{_MOST}, as indices have 32 bits"
        )


def _check_indices(array: Any) -> None:
    """UserError where a matrix of SciPy points outside of itself: its own conversions do not look."""
    try:
        if array.format in ("csr", "csc", "bsr"):
            parts = (array.data, array.indices, array.indptr)
            type(array)(parts, shape=array.shape).check_format(full_check=True)  # which may change the arrays' types
        elif array.format == "coo":
            for coordinates, size in zip((array.row, array.col), array.shape, strict=True):
                if coordinates.shape != array.data.shape or (coordinates < 0).any() or (coordinates >= size).any():
                    raise ValueError(f"a coordinate is missing or outside of {array.shape}")
    except ValueError as error:
        raise UserError(f"the {type(array).__name__} of shape {array.shape} is inconsistent: {error}") from None


def _ascends(array: Any) -> bool:
    """Whether block columns ascend within each row of blocks: SciPy does not ask for it."""
    falls = np.diff(array.indices) <= 0
    inner = np.ones(len(falls), bool)
    inner[array.indptr[1:-1][(array.indptr[1:-1] > 0) & (array.indptr[1:-1] <= len(falls))] - 1] = False
    return not (falls & inner).any()


def _scipy() -> Any:
    try:
        import scipy.sparse
    except ImportError:
        raise UserError("SciPy is not installed: pip install scipy") from None
    return scipy.sparse
