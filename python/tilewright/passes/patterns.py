# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Greedy rewrite patterns in Python.

MLIR's own binding reads a true result as "no match" and lets exceptions unwind through C++. Here a pattern returns True
where it changed something, and what it raises comes out of :func:`apply_patterns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.core.errors import InternalError

if TYPE_CHECKING:
    from tilewright.mlir import ir
    from tilewright.mlir.rewrite import PatternRewriter


class RewritePattern(NamedTuple):
    """A function to match one kind of op and rewrite it."""

    root: str | type
    benefit: int
    function: Callable[[Any, PatternRewriter], bool]

    def __call__(self, op: Any, rewriter: PatternRewriter) -> bool:
        """Try the pattern on one op."""
        return self.function(op, rewriter)


def rewrite_pattern(root: str | type, benefit: int = 1) -> Callable[[Callable[..., bool]], RewritePattern]:
    """Make a pattern of a function ``(op, rewriter) -> bool`` that returns True where it changed the IR.

    Args:
        root: name or class of the ops to try it on, e.g. ``"arith.addi"``.
        benefit: patterns of higher benefit are tried first.
    """

    def decorate(function: Callable[..., bool]) -> RewritePattern:
        return RewritePattern(root, benefit, function)

    return decorate


def apply_patterns(
    op: ir.Operation | ir.OpView,
    patterns: Iterable[RewritePattern],
    *,
    fold: bool = True,
    max_rewrites: int = 1_000_000,
) -> None:
    """Apply patterns inside ``op`` until none matches any more.

    Args:
        op: the op to rewrite, isolated from above.
        patterns: made by :func:`rewrite_pattern`.
        fold: also fold ops and drop dead ones.
        max_rewrites: where to give up on patterns that never end.

    Raises:
        InternalError: the patterns still match after ``max_rewrites``, or after ten visits of the whole op.
        TypeError: a pattern returned something else than True, False or None.
        Exception: whatever a pattern raised first.
    """
    from tilewright.mlir import rewrite

    raised: list[BaseException] = []
    with op.context:
        pattern_set = rewrite.RewritePatternSet()
    for pattern in patterns:
        pattern_set.add(pattern.root, _adapt(pattern, raised), pattern.benefit)
    config = rewrite.GreedyRewriteConfig()
    config.max_num_rewrites = max_rewrites
    config.enable_folding = fold
    try:
        rewrite.apply_patterns_and_fold_greedily(op, pattern_set.freeze(), config)
    except RuntimeError as error:
        if not raised:
            raise InternalError(f"rewriting did not end after {max_rewrites} rewrites or 10 visits: {error}") from error
    if raised:
        raise raised[0]


def _adapt(pattern: RewritePattern, raised: list[BaseException]) -> Callable[[Any, PatternRewriter], bool]:
    """Return the callback in MLIR's convention: a true result means that the pattern did not match."""

    def no_match(op: Any, rewriter: PatternRewriter) -> bool:
        if raised:
            return True
        try:
            with op.location, rewriter.ip:
                changed = pattern.function(op, rewriter)
            if changed not in (True, False, None):
                raise TypeError(f"pattern '{pattern.function.__name__}' returned {changed!r}, not True or False")
        except BaseException as error:  # must not unwind through the driver
            raised.append(error)
            return True
        return not changed

    return no_match
