# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `bufferization` dialect: tensors that become memory, and who frees it (nobody here)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.upstream.memref_ops import allocate, flat_root
from tilewright.reference.upstream.scf_ops import results


@handles("bufferization.alloc_tensor")
def alloc_tensor(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """A tensor of poison, or a copy of another one."""
    sizes, copy, _hint = node.groups(operands)
    return np.array(copy[0]) if copy else allocate(node, sizes)


@handles("bufferization.clone", "bufferization.to_tensor", "bufferization.to_buffer")
def copied(_frame: Any, _node: Node, content: np.ndarray) -> np.ndarray:
    """What is in a tensor or in memory now: writing one is not seen in the other."""
    return np.array(content)


@handles("bufferization.dealloc_tensor")
def dealloc_tensor(_frame: Any, _node: Node, _tensor: np.ndarray) -> None:
    """Nothing that can be seen."""


@handles("bufferization.materialize_in_destination")
def materialize_in_destination(_frame: Any, node: Node, source: np.ndarray, target: np.ndarray) -> Any:
    """The source; written to the destination where that is memory."""
    if node.results:
        return source
    target[...] = source
    return None


@handles("bufferization.dealloc")
def dealloc(_frame: Any, node: Node, *operands: Any) -> Any:
    """Frees nothing; a retained memref stays owned where one that is to be freed and owned is in the same buffer."""
    memory, owned, retained = node.groups(operands)
    roots = [_address(m) for m, own in zip(memory, owned, strict=True) if own]
    return results(node, [np.bool_(_address(m) in roots) for m in retained])


def _address(memory: np.ndarray) -> int:
    """Where the buffer begins that a memref is a part of."""
    return flat_root(memory).__array_interface__["data"][0]
