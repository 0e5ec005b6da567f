# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase `normalize`: one form of each operation, so that planning has few cases.

After it, every computation is a `linalg.generic` whose result map permutes its parallel loops; besides, there are
`linalg.fill`, slices and reshapes of tensors, small constants, weights and `scf.for`. `tile-verify-normalized` checks.
"""

from tilewright.passes.pipeline import PassSpec

_SCALED = (PassSpec("tile-scale-results", "a softmax before a product divides the fewest numbers"),)

_LISTS = (
    PassSpec("tile-hoist-invariants", "initial states depend on no element; now it can be seen"),
    PassSpec("tile-join-softmax-blocks", "blocks of keys are one list of keys; kernels choose their own blocks"),
    PassSpec("tile-find-pairs", "recurrences through a scan depend on their neighbours only"),
    PassSpec("tile-plan-wavefronts", "fewer steps, each of more points, where that is predicted to be faster"),
    PassSpec("tile-skew-recurrences", "these run along diagonals; lists still say what is an element"),
    PassSpec("tile-unroll-recurrences", "of those row by row each row's weights are operands that can be packed"),
    PassSpec("tile-split-scans", "projections of a sequence are one product, of what is left row by row"),
    PassSpec("tile-fuse-exponents", "exponentials relative to a maximum are known by one body"),
    PassSpec("tile-lower-formats", "a body of a generic can be computed for all elements of a list", {"lists": True}),
    PassSpec("convert-fractal-to-linalg", "nested lists are tensors, their functions structured ops and loops"),
)
"""Programs of nested lists; nothing for other models."""

_LOOPS = (
    PassSpec("tile-find-shifts", "loops over sequences that need rows of each other, or nothing, as imported"),
    PassSpec("tile-plan-shifts", "layers and directions run beside each other where that is predicted to be faster"),
    PassSpec("tile-fuse-shifted", "their steps are in one loop before anything is planned"),
)
"""Recurrences that are loops over tensors, whoever made them."""

_BEFORE = (
    *_LISTS,
    PassSpec("tile-carry-formats", "codes are moved, not what they stand for; what quantizes them again is nothing"),
    PassSpec("tile-lower-formats", "codes, scales and zero points are tensors; bodies say which is which"),
    PassSpec("tile-generalize", "named structured ops become linalg.generic; fills stay"),
    *_LOOPS,
    PassSpec("tile-widen-floats", "reductions of f16 and bf16 keep f32 in registers"),
    PassSpec("tile-drop-proven", "indices that count iterations lie where they should: nobody waits to be told"),
    PassSpec("canonicalize", "folds chains of reshapes and slices, drops dead code"),
    PassSpec(
        "tile-slice-early",
        "rows that nobody reads are no work: of logits the last alone is asked for",
        {"asked": True},
    ),
    PassSpec("tile-shrink-dead", "what pruned weights make useless is no work; sizes are final before any are planned"),
    PassSpec("tile-fold-transposes", "a transposed copy is a change of someone's indexing map"),
    PassSpec("tile-fold-splats", "sums of lists start from constants; a fill is no tensor that they read"),
    PassSpec("tile-sum-products", "blocks of matrices that are added up are matrices"),
    PassSpec("tile-split-by-slices", "gates and halves of gated units are made apart, to meet as tiles of one task"),
    PassSpec("tile-split-repeats", "heads that share keys are a loop of their own; exporters copy the keys for each"),
)

_AFTER = (
    PassSpec("tile-join-rows", "rows of batches and sequences fill the same tiles; equal layers are equal products"),
    PassSpec("cse", "equal subexpressions once: exporters repeat masks and reshapes"),
    PassSpec("tile-append-in-place", "a past that grows stays where it is, if that was asked for; no copy is seen yet"),
    PassSpec("tile-assert-early", "sizes that are checked may be relied on by all that follows"),
    PassSpec("symbol-dce", "weights that nothing reads need no bytes"),
    PassSpec("tile-materialize-copies", "canonicalize drops copies into slices and states; they are work for kernels"),
    PassSpec("tile-verify-normalized", "border: states what planning relies on"),
)


def passes(scaled: tuple[PassSpec, ...] = _SCALED) -> tuple[PassSpec, ...]:
    """Return the passes, in order, with the reason of each.

    Args:
        scaled: what is done to operands that are scaled before they are multiplied.
    """
    return (*_BEFORE, *scaled, *_AFTER)


PASSES = passes()
"""The passes for a CPU."""

__all__ = ["PASSES", "passes"]
