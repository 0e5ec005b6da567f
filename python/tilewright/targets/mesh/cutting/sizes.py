# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes of a product, as choosing an algorithm asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import maps
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import Product, dims
from tilewright.targets.mesh.cutting.choice import Sizes


def sizes_of(op: ir.Operation, found: Product, sizes: Sequence[int], fixed: Callable[[ir.Value], bool]) -> Sizes:
    """Of one product of the batch.

    Args:
        sizes: of the loops.
        fixed: which values are the same in each call.
    """
    left, right = (op.operands[number] for number in (found.left, found.right))
    order = dims(maps(op)[found.right])
    return Sizes(
        None if found.rows is None else sizes[found.rows],
        sizes[found.summed],
        sizes[found.columns],
        _dtype(left),
        _dtype(op.results[0]),
        order.index(found.columns) < order.index(found.summed),
        (fixed(left), fixed(right)),
    )


def _dtype(value: ir.Value) -> np.dtype:
    return of_mlir(str(ir.RankedTensorType(value.type).element_type))
