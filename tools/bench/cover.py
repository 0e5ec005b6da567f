# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One format for the weights of a model, whatever the plan would take: what a mixture of formats is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilewright.core.options import CompileOptions
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.passes.pipeline import PassSpec, Pipeline
from tilewright.targets import registry

#: Covers of a weight [k, n], as `tile.sparsity` has them.
COVERS = {
    "mask": "#sparse_tile.tesa<mask>",
    "blocks": "#sparse_tile.tesa<block<[32, 32]>>",
    "dense": '"dense"',
}


@register
@dataclass(frozen=True)
class ForceCover(Pass):
    """Decide the cover of all products of a module: `tile-plan-sparsity` keeps what is decided already."""

    name: ClassVar[str] = "bench-force-cover"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tile", "sparse_tile")

    cover: str = option("dense", f"one of {', '.join(COVERS)}")

    def run(self, op: ir.Operation) -> None:
        """Every operation that sums the products of two operands over one dimension."""
        decision = ir.Attribute.parse(f"{{cover = {COVERS[self.cover]}}}")
        for product in walk(op, "linalg.generic"):
            kinds = [str(kind) for kind in product.attributes["iterator_types"]]
            if len(product.operands) == 3 and sum("reduction" in kind for kind in kinds) == 1:
                product.attributes["tile.sparsity"] = decision


def pipeline(target: str, cover: str) -> Pipeline:
    """The pipeline of a target, with a cover decided before phase `plan` begins."""
    whole = registry.parse_target(target).here().pipeline(CompileOptions())
    spec = PassSpec("bench-force-cover", "one format is compared with several", {"cover": cover})
    phases = [replace(p, passes=(spec, *p.passes)) if p.name == "plan" else p for p in whole.phases]
    return replace(whole, phases=tuple(phases))
