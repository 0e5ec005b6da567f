# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a campaign is: from a seed to a case, and from a case to what is wrong."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.mlir import ir

_CASES_PER_CONTEXT = 64  # what a context keeps of each case is given back behind so many


class Campaign(ABC):
    """One kind of input. A seed says everything about a case: it can be made again from the seed alone.

    Attributes:
        name: as on the command line.
        suffix: of a case's file.
        seconds: the longest that one case may take.
        memory: the most bytes of address space that a process may take; None: any.
    """

    name: str
    suffix: str
    seconds: float = 20
    memory: int | None = 8 << 30

    @abstractmethod
    def prepare(self) -> None:
        """Read what cases are made from; called once in each process."""

    @abstractmethod
    def case(self, choose: random.Random) -> bytes:
        """Make a case."""

    @abstractmethod
    def execute(self, case: bytes) -> str | None:
        """Run our code on a case: None, or what is wrong in one line. Must not raise what a user would see as a bug."""

    def environment(self) -> dict[str, str]:
        """Variables that its processes need beside those that are set."""
        return {}

    def obituary(self, errors: str) -> str:
        """What a process that died says on its standard error, in one line."""
        return " ".join(errors.strip().splitlines()[-1:])

    def is_upstream(self, case: bytes) -> bool:
        """Whether a case that killed its process also kills upstream's own tool, without our code."""
        return False

    def make(self, seed: int) -> bytes:
        """The case of a seed."""
        return self.case(random.Random(f"{self.name}:{seed}"))


class Contexts:
    """MLIR contexts without threads, each for several cases: to make one takes longer than most cases."""

    def __init__(self) -> None:
        self._context: ir.Context | None = None
        self._left = 0

    def next(self) -> ir.Context:
        """The context of the next case."""
        from tilewright.mlir import ir

        if self._context is None or self._left == 0:
            self._context, self._left = ir.Context(), _CASES_PER_CONTEXT
            self._context.enable_multithreading(False)
        self._left -= 1
        return self._context


def describe(error: BaseException) -> str:
    """The error's class, message and innermost frame of ours in one line."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "tilewright" in path.parts:
            frames.append(f"{path.name}:{trace.tb_frame.f_code.co_name}")
        trace = trace.tb_next
    where = frames[-1] if frames else "?"
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:300]}"
