# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One mutant judged: what worker processes run."""

from __future__ import annotations

from dataclasses import dataclass

from faulting import mutate
from faulting.subjects import subject
from tilewright.sim import ptx as emulate

#: instructions of a run without a fault are far fewer
_LIMIT = 200_000


@dataclass(frozen=True)
class Work:
    """One mutant to judge.

    Attributes:
        place: of the subject.
        module: its module that is mutated.
        mutant: the fault.
        orders, seeds: see `mutate.judge`.
    """

    place: str
    module: str
    mutant: mutate.Mutant
    orders: int
    seeds: int


def one(work: Work) -> mutate.Verdict:
    """Judge one mutant."""
    found = subject(work.place)

    def run(text: str, options: emulate.Options) -> None:
        found.run(found.modules[work.module], text, options)

    return mutate.judge(run, work.mutant, orders=work.orders, seeds=work.seeds, limit=_LIMIT)
