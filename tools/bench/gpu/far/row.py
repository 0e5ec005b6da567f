# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of a case: the row of the table, and of the results' JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

#: Our forms of a call; all other names are peers.
OURS = ("ours", "ours_graph")
#: How a case can end beside "ok": the kernels are wrong, or something ended its process.
BAD = ("wrong", "failed", "hang", "crash", "lost")


@dataclass
class Row:
    """What became of a case.

    Attributes:
        name: of the case.
        slice: of the case.
        status: ok, slow (misses its goal), wrong, failed (an error), hang (no end within its time), crash (a signal),
            lost (its CUDA context is), not built, out of time.
        message: why, where it is not ok.
        error: max|ours - reference| / max|reference|; `peer_error` that of PyTorch's calls, `allowed` the bound.
        error_after: the same of a run after the timing, of our graph where there is one.
        runs: that were compared bit by bit.
        repeatable: whether all of them gave the same bits.
        copies: of the inputs, in turns while timing, so that they come from memory and not from the L2 cache.
        seconds: median of the bursts, by contestant.
        spread: distance of the slowest and fastest burst of ours relative to the median.
        code: cubin or ptx: what our kernels were loaded from (ptx, where one of them was).
        kernels: of one run of ours: plan, prediction, and the time where it was taken.
        clocks: of the GPU right after the timing (state.py).
        notes: peers that were left out, and why.
    """

    name: str
    slice: str
    status: str = "ok"
    message: str = ""
    error: float | None = None
    peer_error: float | None = None
    allowed: float | None = None
    error_after: float | None = None
    runs: int = 0
    repeatable: bool | None = None
    copies: int = 1
    seconds: dict[str, float] = field(default_factory=dict)
    spread: float | None = None
    code: str | None = None
    kernels: list[dict[str, Any]] = field(default_factory=list)
    clocks: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    goal: float | None = None
    reached: float | None = None
    rate: float | None = None

    @property
    def ours(self) -> float | None:
        """The faster form of our call."""
        return min((t for name, t in self.seconds.items() if name in OURS), default=None)

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest peer and its time."""
        peers = [(t, name) for name, t in self.seconds.items() if name not in OURS]
        return (min(peers)[1], min(peers)[0]) if peers else None

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Row:
        """The row of what `as_json` returned; what other versions add is left out."""
        names = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in known.items() if name in names})

    @classmethod
    def new(cls, case: Mapping[str, Any]) -> Row:
        """The row of a case that nothing is known of yet."""
        row = cls(case["name"], case["slice"], goal=case["goal"])
        if case["folder"] is None:
            row.status, row.message = "not built", case["failure"]
        return row
