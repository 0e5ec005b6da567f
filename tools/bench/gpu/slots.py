# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions per score in attention's loop over keys, from PTX: `tools/bench/run gpu-slots [--arch sm_90a]`.

Counted are the instructions of one thread in the longest loop with exponentials, over the powers of two in it. Left
out: products and what moves their operands (mma, ldmatrix, cp.async), barriers, shuffles and branches, and `mov`, most
of which ptxas coalesces. Nothing is measured.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from itertools import product

import tilewright as tw
from bench.gpu.kernels import attention

_LEFT_OUT = ("wgmma", "mma", "ldmatrix", "cp.", "mbarrier", "bra", "bar", "shfl", "mov")
_LABEL = re.compile(r"\s*(\$L\w+):")
_JUMP = re.compile(r"\bbra(?:\.uni)?\s+(\$L\w+);")
_STATEMENT = re.compile(r"\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s")


def loops(lines: Sequence[str]) -> list[tuple[int, int]]:
    """First and last line of each loop: from a label to a jump back to it."""
    places = {found[1]: number for number, line in enumerate(lines) if (found := _LABEL.match(line))}
    jumps = [(number, found[1]) for number, line in enumerate(lines) if (found := _JUMP.search(line))]
    return [(places[label], number) for number, label in jumps if places.get(label, number) < number]


def _uncut(lines: Sequence[str]) -> list[str]:
    """The lines of a loop without those that a branch passes by where a mask cuts nothing: they select, no power."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if _LABEL.match(line):
            blocks.append([])
        blocks[-1].append(line)
        if _JUMP.search(line):
            blocks.append([])
    skipped = [any("selp.f32" in line for line in b) and not any("ex2." in line for line in b) for b in blocks]
    return [line for block, skip in zip(blocks, skipped, strict=True) if not skip for line in block]


def slots(ptx: str, uncut: bool = False) -> float:
    """Instructions per power of two of the longest loop that has some.

    Args:
        ptx: the kernel.
        uncut: without what only blocks compute that a mask cuts.

    Raises:
        ValueError: no loop computes one.
    """
    lines = ptx.splitlines()
    bodies = [lines[first:last] for first, last in loops(lines)]
    with_powers = [body for body in bodies if any("ex2." in line for line in body)]
    if not with_powers:
        raise ValueError("no loop of the kernel has an ex2")
    longest = max(with_powers, key=len)
    lines = _uncut(longest) if uncut else longest
    names = [found[1] for line in lines if (found := _STATEMENT.match(line))]
    counts = Counter(name for name in names if not name.startswith(_LEFT_OUT))
    return counts.total() / sum(number for name, number in counts.items() if name.startswith("ex2."))


def main(arguments: Sequence[str]) -> int:
    """Print a line per kernel; returns 0."""
    parser = argparse.ArgumentParser(prog="tools/bench/run gpu-slots", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--arch", action="append", help="an architecture; more than once: all of them")
    options = parser.parse_args(list(arguments))
    for arch, depth, causal in product(options.arch or ("sm_80", "sm_90a"), (64, 128), (False, True)):
        model = tw.compile(attention(depth=depth, causal=causal), f"cuda:{arch}", emulate=True)
        kernels = [path.read_text() for path in sorted(model.path.glob("code/*.ptx"))]
        cut, uncut = (max(slots(text, whole) for text in kernels if "ex2." in text) for whole in (False, True))
        more = f" (blocks that the mask cuts: {cut:5.2f})" if causal else ""
        print(f"{arch:7} d{depth:<4} {'causal' if causal else 'full':7} {uncut:5.2f}{more}", flush=True)
    return 0
