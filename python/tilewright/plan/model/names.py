# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of kernels: what a profile or a report shows of a task."""

from __future__ import annotations

import re

from tilewright.ir.structure import Kind, LinalgOp

#: Operations that say more of a chain than the others, and the word for it.
_TELLING = {
    "math.erf": "gelu",
    "math.exp": "exp",
    "math.tanh": "tanh",
    "math.rsqrt": "norm",
    "arith.maximumf": "max",
    "tensor.extract": "gather",
}


def _body_names(op: LinalgOp) -> list[str]:
    return [inner.operation.name for inner in op.op.regions[0].blocks[0].operations]


def _base(op: LinalgOp) -> str:
    if op.kind is Kind.CONTRACTION:
        return "product" if all(a.pure for a in op.inputs) else "conv"
    if op.kind is Kind.REDUCE:
        return "reduce" if all(a.pure for a in op.inputs) else "pool"
    return "copy" if len(_body_names(op)) == 1 else "map"


def kernel_name(members: list[LinalgOp], roots: list[LinalgOp]) -> str:
    """A C identifier such as `product_gelu_128x1536x384`: the heaviest root, telling operations, its loops."""
    heaviest = max(roots, key=lambda op: (op.kind is Kind.CONTRACTION, op.points))
    words = [_base(heaviest)]
    for op in members:
        for name in _body_names(op):
            word = _TELLING.get(name)
            if word and word not in words:
                words.append(word)
    sizes = ("n" if d in heaviest.dynamic else str(e) for d, e in enumerate(heaviest.extents) if e > 1)
    loops = "x".join(sizes) or "1"
    return "_".join([*words, loops])


def plan_name(symbol: str) -> str:
    """Return the name that the plan gave a kernel: symbols that would be equal have a number behind it.

    >>> plan_name("product_8x8x8_1")
    'product_8x8x8'
    """
    return re.sub(r"(?<=[0-9])_[0-9]+$", "", symbol)
