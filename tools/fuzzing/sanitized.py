# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaign `asan`: programs and products of the other campaigns as code whose accesses to memory are checked."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from . import sanitizer, sparse_products
from .campaign import Campaign
from .programs import OpenSizes, Programs

_TESTS = Path(__file__).resolve().parents[2] / "test"


class Sanitized(Campaign):
    """Cases of `programs`, `open` (on CPUs) and `sparse`, and graphs of pruned weights (`test/pruned_programs.py`).

    Code is compiled with LLVM's AddressSanitizer; arrays, places of the arena, local memory of kernels and blocks of
    the run-time lie between poisoned bytes. An access to those ends the process: a finding, with its report.
    """

    name = "asan"
    suffix = ".case"
    seconds = 180
    memory = None  # the shadow of all memory is address space, too

    def __init__(self) -> None:
        """Its cases are made by other campaigns."""
        self._programs, self._open = Programs(), _OpenOnCpu()

    def environment(self) -> dict[str, str]:
        """The run-time of the sanitizer, in front of all others."""
        return sanitizer.environment()

    def obituary(self, errors: str) -> str:
        """What the sanitizer reports, if it does."""
        return sanitizer.message(errors) or super().obituary(errors)

    def prepare(self) -> None:
        """As the others do; what this process starts needs no sanitizer."""
        sanitizer.entered()
        sys.path.append(str(_TESTS))
        self._programs.prepare()
        self._open.prepare()

    def case(self, choose: random.Random) -> bytes:
        """The name of a kind of cases, a line end, and one of these."""
        kind = choose.choice(("programs", "programs", "open", "sparse", "sparse", "pruned"))
        made = {
            "programs": self._programs.case,
            "open": self._open.case,
            "sparse": lambda c: sparse_products.text_of(c).encode(),
            "pruned": _pruned,
        }[kind](choose)
        return kind.encode() + b"\n" + made

    def execute(self, case: bytes) -> str | None:
        """Run and compare it as its own campaign does."""
        kind, _, rest = case.partition(b"\n")
        if kind in (b"sparse", b"pruned"):
            return sparse_products.compared(rest.decode())
        return (self._open if kind == b"open" else self._programs).execute(rest)


class _OpenOnCpu(OpenSizes):
    """Programs of open sizes, none for a GPU."""

    on_gpu = False


def _pruned(choose: random.Random) -> bytes:
    import numpy as np

    import pruned_programs

    rng, rows = np.random.default_rng(choose.randrange(1 << 32)), choose.choice((1, 3, 17))
    drawn = pruned_programs.drawn(rng, choose.randrange(2, 8), rows, choose.choice((6, 20, 40)), external=True)
    weights = {name: (array, "f64") for name, array in drawn.weights.items()}
    return sparse_products.with_head(choose, drawn.text(), [((rows, drawn.values[0][1]), "f64")], weights).encode()
