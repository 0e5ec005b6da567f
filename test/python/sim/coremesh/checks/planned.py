# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program of each algorithm, as the planner writes it, on a small grid."""

from __future__ import annotations

import numpy as np

from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product

KINDS = ("star", "chain", "tree", "two_phase", "k_tree", "ring")


def programs():
    """By name."""
    made = {
        "meshgemm": shifted_product(Product(7, 11, 5, 3, 4)),
        "meshgemm, skewed at run time": shifted_product(Product(8, 8, 8, 4, 4, skew_a="run", skew_b="run")),
        "meshgemm on one core": shifted_product(Product(3, 4, 5, 1, 1)),
        "cannon": shifted_product(Product(8, 8, 8, 4, 4), "cannon"),
        "summa": summa(Product(7, 11, 5, 2, 3)),
        "all-gather": all_gather_product(Product(7, 11, 5, 3, 2)),
        "gemm-t": transposed_product(Product(8, 8, 8, 4, 4)),
        "meshgemv": matrix_vector(MatrixVector((12, 20, 6), 4, 5)),
    }
    return made | {kind: reduction(Reduce(2, 11, 7, schemes=(Scheme(kind),))) for kind in KINDS}


def inputs_of(program, seed=1):
    """Small integers: sums of them are exact in any order."""
    rng = np.random.default_rng(seed)
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    return {place.name: rng.integers(-4, 5, place.shape).astype(dtypes[place.slot.buffer]) for place in program.inputs}
