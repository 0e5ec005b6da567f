# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Textual pipelines as trees: split one into its single passes."""

from __future__ import annotations

from collections.abc import Iterator


def split_passes(text: str) -> list[str]:
    """Split ``a{x=1,2},b(c,d)`` at its outer commas: ``["a{x=1,2}", "b(c,d)"]``."""
    parts, start, depth, quote = [], 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "({[":
            depth += 1
        elif char in ")}]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def nested(text: str) -> tuple[str, str] | None:
    """Return ``("func.func", "a,b")`` for ``func.func(a,b)``, and None for a single pass."""
    head, paren, body = text.partition("(")
    if not paren or "{" in head or not body.endswith(")"):
        return None
    return head.strip(), body[:-1]


def single_passes(pipeline: str) -> Iterator[str]:
    """Yield one pipeline per pass, in order: ``m(a,f(b,c))`` gives ``m(a)``, ``m(f(b))``, ``m(f(c))``."""
    nest = nested(pipeline)
    if nest is None:
        yield pipeline
        return
    anchor, body = nest
    for part in split_passes(body):
        for leaf in single_passes(part):
            yield f"{anchor}({leaf})"


def leaf_name(pipeline: str) -> str:
    """Return the name of the pass in a pipeline of one pass: ``p`` for ``m(f(p{x=1}))``."""
    nest = nested(pipeline)
    while nest is not None:
        pipeline = nest[1]
        nest = nested(pipeline)
    return pipeline.partition("{")[0].strip()
