# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The edits: at which border, of which text, and why somebody would."""

from __future__ import annotations

import re
from dataclasses import dataclass

CPU, GPU, MESH = "cpu:x86-64-v3", "cuda:sm_90a", "mesh:toy8x8"


@dataclass(frozen=True)
class Edit:
    """One edit of the IR behind a phase.

    Attributes:
        target: of the model.
        phase: behind which the IR stands.
        what: for readers.
        old, new: a pattern, and what takes its place.
        every: wherever it stands, not only where it stands first.
    """

    target: str
    phase: str
    what: str
    old: str
    new: str
    every: bool = False

    def applied(self, text: str) -> str:
        """The edited text.

        Raises:
            ValueError: it has nothing to edit.
        """
        edited = re.sub(self.old, self.new, text, count=0 if self.every else 1)
        if edited == text:
            raise ValueError(f"{self.target} behind {self.phase}: nothing to edit for {self.what!r}")
        return edited


#: The first product, of layers of linalg.
_PRODUCT = r"(outs\(%\w+ : tensor<64x512xf32>\)) \{"
_APART = r"\1 attrs = {tile.apart} {"

EDITS = (
    Edit(CPU, "import", "what follows the first product is a kernel of its own (tile.apart)", _PRODUCT, _APART),
    Edit(CPU, "normalize", "the same, behind normalize", _PRODUCT, _APART),
    Edit(
        CPU,
        "normalize",
        "a maximum in place of a sum of the softmax's exponentials is left to the host (tile.host)",
        r"(outs\(%\w+ : tensor<64xf32>\)) \{",
        r'\1 attrs = {tile.host = "by hand"} {',
    ),
    Edit(CPU, "plan", "register tile 4 x 16 in place of 6 x 16", r"(tile\.rtile = .*?register = )\[6, 16", r"\1[4, 16"),
    Edit(CPU, "plan", "task tile of 32 rows in place of 64", r"(tile\.rtile = \S+l2 = )\[64,", r"\1[32,"),
    Edit(CPU, "plan", "no prefetch of the next panel", r"tile\.prefetch = array<i64: 1>, ", "", every=True),
    Edit(CPU, "plan", "rows inside of columns", r"(tile\.rtile = .*?order = )\[1, 0, 2", r"\1[0, 1, 2"),
    Edit(CPU, "tile", "the prefetches of all kernels taken out", r"(?m)^ *memref\.prefetch .*\n", "", every=True),
    Edit(CPU, "tile", "a kernel has another name", r"@product_max_64x512x256\b", "@mine", every=True),
    Edit(CPU, "schedule", "an arena of a megabyte", r"\b196608\b", "1048576", every=True),
    Edit(CPU, "lower", "the prefetches taken out", r'(?m)^ *"?llvm\.intr\.prefetch"?.*\n', "", every=True),
    Edit(GPU, "import", "what follows the first product is a kernel of its own (tile.apart)", _PRODUCT, _APART),
    Edit(GPU, "normalize", "the same, behind normalize", _PRODUCT, _APART),
    Edit(
        GPU, "plan", "2 stages of loads in place of 8", r"tile\.stages = 8 : i64", "tile.stages = 2 : i64", every=True
    ),
    Edit(
        GPU,
        "plan",
        "the runner-up's tile, 32 x 16",
        r"register = \[16, 32, 16\], shared = \[16, 32,",
        "register = [32, 16, 16], shared = [32, 16,",
    ),
    Edit(
        GPU, "tile", "4 stages of loads in the kernels", r"tile\.stages = 8 : i64", "tile.stages = 4 : i64", every=True
    ),
    Edit(GPU, "schedule", "loads one step ahead (2 stages)", r"tile\.stages = 8 : i64", "tile.stages = 2 : i64", True),
    Edit(GPU, "lower", "no limit on threads for the assembler", r"nvvm\.maxntid = array<i32: 256[^>]*>, ", ""),
    Edit(
        MESH, "plan", "SUMMA in place of MeshGEMM", r'coremesh\.algorithm = "meshgemm"', 'coremesh.algorithm = "summa"'
    ),
    Edit(
        MESH,
        "plan",
        "Cannon's in place of MeshGEMM",
        r'coremesh\.algorithm = "meshgemm"',
        'coremesh.algorithm = "cannon"',
    ),
    Edit(MESH, "tile", "sums over a row by a K-tree", r"(allreduce add .*) by chain", r"\1 by ktree"),
    Edit(MESH, "schedule", "three slots in place of two for the first operand", r"(@A : .* slots) 2", r"\1 3"),
)
