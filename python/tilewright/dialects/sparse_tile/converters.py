# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded tensors from and to the sparse formats of other libraries: SciPy, PyTorch, ONNX's sparse initializers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.encoded import Encoded
from tilewright.dialects.sparse_tile.patterns import Block, Mask, Pattern
from tilewright.dialects.sparse_tile.tesa import Tesa

if TYPE_CHECKING:
    import onnx

_OF_SCIPY = "?bBhHiIlLqQfdgFDG"  # element types of scipy.sparse, as NumPy's characters


def from_scipy(array: Any) -> Encoded:
    """Hold a sparse array or matrix of SciPy: a BSR one by blocks, any other by compressed rows.

    Entries given more than once are added up, as SciPy does. Blocks and entries that are stored stay stored, zeros too.

    Args:
        array: of `scipy.sparse`, of two dimensions.

    Raises:
        UserError: it is none, has another number of dimensions, its arrays do not fit each other, or its sizes do not
            fit into 32 bits.
    """
    sparse = _scipy()
    if not sparse.issparse(array) or array.ndim != 2:
        raise UserError(f"a matrix of scipy.sparse is needed, not {type(array).__name__}")
    _check_scipy(array)
    pattern: Pattern = Mask()
    if array.format == "bsr" and _ascends(array):
        pattern, compressed = Block(tuple(array.blocksize)), array
    else:
        compressed = array.tocsr(copy=True)
        compressed.sum_duplicates()
    return _held(pattern, array.shape, compressed.data, compressed.indices, compressed.indptr)


def to_scipy(value: Encoded) -> Any:
    """Give an encoded matrix to SciPy: `bsr_array` for whole blocks, else `csr_array` of what the regions keep.

    Raises:
        UserError: SciPy is not installed or has no matrices of this element type, the tensor is no matrix, or its parts
            are not sound.
    """
    sparse = _scipy()
    data, indices, indptr = _compressed(value, "scipy.sparse")
    make = sparse.bsr_array if data.ndim == 3 else sparse.csr_array
    if np.dtype(value.dtype).char not in _OF_SCIPY:
        raise UserError(f"SciPy has no sparse matrices of {value.dtype}: change the type of the elements first")
    return make((data, indices, indptr), shape=value.shape)


def from_torch(tensor: Any) -> Encoded:
    """Hold a sparse tensor of PyTorch of two dimensions: BSR and BSC by blocks; COO, CSR and CSC by compressed rows.

    Raises:
        UserError: it is dense, has more dimensions (batches, dense dimensions inside), or its indices are not sound.
    """
    import torch

    name, shape = str(tensor.layout), tuple(tensor.shape)
    if len(shape) != 2 or tensor.layout is torch.strided:
        raise UserError(f"a sparse matrix of PyTorch is needed, not {name} of shape {shape}")
    if tensor.layout is torch.sparse_coo and tensor.dense_dim():
        raise UserError(f"a COO tensor with {tensor.dense_dim()} dense dimensions is no sparse matrix")
    tensor = checked_torch(tensor.detach().cpu())
    if tensor.layout is torch.sparse_coo:
        entries = tensor.coalesce()
        rows, columns = (part.numpy() for part in entries.indices())
        return _held(Mask(), shape, _numpy(entries.values()), columns, _starts(rows, shape[0]))
    data = _numpy(tensor.values())
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        pattern = Mask() if tensor.layout is torch.sparse_csr else Block(data.shape[1:])  # type: ignore[arg-type]
        return _held(pattern, shape, data, tensor.col_indices().numpy(), tensor.crow_indices().numpy())
    pattern = Mask() if tensor.layout is torch.sparse_csc else Block(data.shape[1:])  # type: ignore[arg-type]
    rows, starts = tensor.row_indices().numpy(), tensor.ccol_indices().numpy()
    columns = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((columns, rows))
    count = shape[0] if data.ndim == 1 else shape[0] // data.shape[1]
    return _held(pattern, shape, data[order], columns[order], _starts(rows, count))


def checked_torch(tensor: Any) -> Any:
    """Return a sparse tensor of PyTorch after a look at its indices, which PyTorch itself does not take.

    Raises:
        UserError: they are out of range, out of order, or do not fit the values.
    """
    import torch

    try:
        with torch.sparse.check_sparse_tensor_invariants():
            if tensor.layout is torch.sparse_coo:
                torch.sparse_coo_tensor(tensor._indices(), tensor._values(), tensor.shape)
            else:
                by_rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
                starts = tensor.crow_indices() if by_rows else tensor.ccol_indices()
                places = tensor.col_indices() if by_rows else tensor.row_indices()
                torch.sparse_compressed_tensor(starts, places, tensor.values(), size=tensor.shape, layout=tensor.layout)
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        raise UserError(f"a tensor of {tensor.layout} and shape {tuple(tensor.shape)} is not sound: {text}") from None
    return tensor


def to_torch(value: Encoded) -> Any:
    """Give an encoded matrix to PyTorch: layout BSR for whole blocks, else CSR.

    Raises:
        UserError: the tensor is no matrix, or its parts are not sound.
    """
    import torch

    data, indices, indptr = _compressed(value, "PyTorch")
    make = torch.sparse_bsr_tensor if data.ndim == 3 else torch.sparse_csr_tensor
    bits = data.view(np.int16) if data.dtype.name == "bfloat16" else data
    values = torch.from_numpy(np.ascontiguousarray(bits))
    values = values.view(torch.bfloat16) if bits is not data else values
    return make(torch.from_numpy(indptr), torch.from_numpy(indices), values, size=value.shape)


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
    places = onnx_places(tensor.values.name, shape, values.shape, indices)
    rows, columns = np.divmod(places, max(shape[1], 1))
    _check_sizes(shape, len(places))
    return _held(Mask(), shape, values, columns, _starts(rows, shape[0]))


def onnx_places(
    name: str, shape: Sequence[int], values: Sequence[int], indices: np.ndarray, what: str = "sparse initializer"
) -> np.ndarray:
    """The positions of the values of a sparse tensor of ONNX among its elements, row by row.

    Args:
        name: of the tensor, for errors.
        shape: of the tensor.
        values: the shape of its values: [n].
        indices: positions [n], or an index for each dimension [n, rank]; ascending, each once (SparseTensorProto).
        what: the tensor is, for errors.

    Returns:
        int64 [n], ascending.

    Raises:
        UserError: one of these rules is broken; says which, and where.
    """
    where = f"{what} {name!r} of shape {tuple(shape)}"
    if min(shape, default=1) < 0:
        raise UserError(f"{where}: a size is negative")
    size = prod(shape)
    if size >= 1 << 63:
        raise UserError(f"{where}: positions in {size} elements do not fit into 64 bits")
    if len(values) != 1 or indices.dtype.kind not in "iu" or indices.shape not in ((*values,), (*values, len(shape))):
        raise UserError(
            f"{where}: values of shape {tuple(values)} need integer indices of shape [n] or [n, {len(shape)}], "
            f"these have {indices.shape}"
        )
    limits = np.array(shape if indices.ndim == 2 else [size], np.int64)
    split = indices.astype(np.int64).reshape(len(indices), len(limits))
    outside = np.flatnonzero(((split < 0) | (split >= limits)).any(axis=1))
    if len(outside):
        raise UserError(f"{where}: index {indices[outside[0]].tolist()} of value {outside[0]} is out of range")
    steps = np.array([prod(shape[d + 1 :]) for d in range(len(shape))] if indices.ndim == 2 else [1], np.int64)
    places = (split * steps).sum(axis=1, dtype=np.int64)
    falls = np.flatnonzero(np.diff(places) <= 0)
    if len(falls):
        at = falls[0] + 1
        why = "occurs twice" if places[at] == places[at - 1] else f"comes after {indices[at - 1].tolist()}"
        raise UserError(f"{where}: indices must ascend, each once: {indices[at].tolist()} of value {at} {why}")
    return places


def _compressed(value: Encoded, whose: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole blocks as they are, anything else as compressed rows of what the regions keep: data, indices, indptr."""
    if len(value.shape) != 2:
        raise UserError(f"{whose} holds matrices, not tensors of shape {value.shape}")
    region = value.tesa.regions[0]
    dense, kept = value.dense(), value.kept()
    if len(value.tesa.regions) == 1 and not region.format and isinstance(region.pattern, Block):
        if all(size % step == 0 for size, step in zip(value.shape, region.pattern.shape, strict=True)):
            data, indices, indptr = value.parts
            return data, indices, indptr
    rows, columns = np.nonzero(kept)
    return dense[rows, columns], columns.astype(np.int32), _starts(rows, value.shape[0])


def _held(pattern: Pattern, shape: Sequence[int], data: Any, indices: Any, indptr: Any) -> Encoded:
    _check_sizes(shape, len(data))
    parts = (np.asarray(data), indices.astype(np.int32), indptr.astype(np.int32))
    return Encoded(Tesa.one(pattern), tuple(shape), np.asarray(data).dtype, parts)


def _check_sizes(shape: Sequence[int], kept: int) -> None:
    if max(*shape, kept) >= 1 << 31:
        raise UserError(f"a sparse matrix of shape {tuple(shape)} with {kept} entries: indices have 32 bits")


def _starts(rows: np.ndarray, count: int) -> np.ndarray:
    """Where each row starts, of the row of each entry."""
    counts = np.bincount(rows, minlength=count) if count else np.zeros(0, np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _numpy(tensor: Any) -> np.ndarray:
    """A tensor of PyTorch, also of a type that it does not give to NumPy."""
    import torch

    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _check_scipy(array: Any) -> None:
    """Raise UserError where the arrays of a matrix do not fit each other: SciPy looks at some of them only."""
    try:
        if array.format in ("csr", "csc", "bsr"):
            array.check_format(full_check=True)
        elif array.format == "coo" and array.nnz:
            for size, places in zip(array.shape, array.coords, strict=True):
                if len(places) != array.nnz or places.min() < 0 or places.max() >= size:
                    raise ValueError(f"indices must be {array.nnz} numbers of at least 0 and below {size}")
    except ValueError as error:
        raise UserError(f"{type(array).__name__} of shape {array.shape} is not sound: {error}") from None


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
