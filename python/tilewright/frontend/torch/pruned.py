# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruned weights of a torch.nn.Module: sparse layouts, which torch.export cannot take, and masks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.converters import checked_torch

_MASK, _ORIGINAL = "_mask", "_orig"  # as torch.nn.utils.prune names them


@contextlib.contextmanager
def dense_weights(module: Any) -> Iterator[None]:
    """Parameters and buffers of a sparse layout are dense tensors with zeros, for as long as the context lasts.

    Raises:
        UserError: the indices of one are not sound; or a mask of `torch.nn.utils.prune` hides a number that is not
            finite, which zero times it would bring back.
    """
    import torch

    replaced: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, layer in module.named_modules():
            _check_masks(path, layer)
            for held in (layer._parameters, layer._buffers):
                for name, tensor in list(held.items()):
                    if tensor is None or not _is_sparse(tensor):
                        continue
                    dense = _dense(tensor, f"{path}.{name}".lstrip("."))
                    kept = torch.nn.Parameter(dense, requires_grad=False) if held is layer._parameters else dense
                    replaced.append((held, name, tensor))
                    held[name] = kept
        yield
    finally:
        for held, name, tensor in reversed(replaced):
            held[name] = tensor


def _is_sparse(tensor: Any) -> bool:
    """Whether a tensor has a sparse layout, or is one of two of four (`torch.sparse.to_sparse_semi_structured`)."""
    import torch

    return tensor.layout is not torch.strided or isinstance(tensor, torch.sparse.SparseSemiStructuredTensor)


def _dense(tensor: Any, name: str) -> Any:
    import torch

    try:
        if tensor.layout is not torch.strided:
            checked_torch(tensor.detach())
        return tensor.detach().to_dense()
    except UserError as error:
        raise UserError(str(error), location=name) from None


def _check_masks(path: str, layer: Any) -> None:
    """Raise UserError where a pruned place holds NaN or an infinity."""
    for name, original in layer._parameters.items():
        mask = layer._buffers.get(name.removesuffix(_ORIGINAL) + _MASK)
        if not name.endswith(_ORIGINAL) or mask is None or original is None:
            continue
        strange = ((mask == 0) & ~original.detach().isfinite()).nonzero()
        if len(strange):
            weight = f"{path}.{name.removesuffix(_ORIGINAL)}".lstrip(".")
            raise UserError(
                f"{weight} is pruned at {strange[0].tolist()}, where {name} holds a number that is not finite; zero "
                f"times it is NaN: write zeros there, or call torch.nn.utils.prune.remove after you have"
            )
