# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A predicted time, and what `tile.prediction` says of it and of the choice that it led to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """The predicted time of a kernel of a GPU, and what it follows from.

    Attributes:
        seconds: in all, the launch included.
        bound: what takes longest: one of `parts`, or ``latency``.
        parts: seconds of each of what overlaps.
        waiting: seconds that nothing overlaps: latencies, what comes before the first step and behind the last one.
        launch: seconds of the launch.
        products: of `operations`, those of products.
        unit: the rate that ``compute`` scales with; empty where the data sheet's peak alone decides.
        l2_bytes: bytes that all CTAs together read from L2, and write.
        memory_bytes: of which come from (and go to) memory.
        operations: of all units that compute.
        occupancy: CTAs that a multiprocessor holds.
        roofline: seconds at the peak, or at the bandwidth of memory for each tensor once.
    """

    seconds: float
    bound: str
    parts: Mapping[str, float]
    l2_bytes: int
    memory_bytes: int
    operations: int
    occupancy: int
    roofline: float
    waiting: float = 0.0
    launch: float = 0.0
    products: int = 0
    unit: str = ""

    def attribute(self, more: Sequence[str] = ()) -> str:
        """As `tile.prediction`: times in ns, with some more fields as text.

        The time is that of the longest part, of what waits and of the launch, so that who measures a kernel knows
        what each rate has to do with it (`tools/bench/run gpu-refit`).

        Args:
            more: fields of the choice.
        """
        told = [name for name, seconds in self.parts.items() if seconds]
        fields = [
            f"ns = {self.seconds * 1e9:.0f} : i64",
            f'bound = "{self.bound}"',
            *(f"{name}_ns = {self.parts[name] * 1e9:.0f} : i64" for name in told),
            f"waiting_ns = {self.waiting * 1e9:.0f} : i64",
            f"launch_ns = {self.launch * 1e9:.0f} : i64",
            *([f'unit = "{self.unit}"'] if self.unit else []),
            f"roofline_ns = {self.roofline * 1e9:.0f} : i64",
            f"l2_bytes = {self.l2_bytes} : i64",
            f"memory_bytes = {self.memory_bytes} : i64",
            f"operations = {self.operations} : i64",
            *([f"products = {self.products} : i64"] if self.products else []),
            f"occupancy = {self.occupancy} : i64",
        ]
        return "{" + ", ".join([*fields, *more]) + "}"


def choice_fields(shape: str, candidates: int, number: int, runner_up: str, seconds: float | None = None) -> list[str]:
    """What `tile.prediction` says of a choice.

    Args:
        shape: that is taken.
        candidates: that there were.
        number: of the shape among these, the one with the least predicted time first.
        runner_up: the next one; empty: there is none.
        seconds: of that, where they are known.
    """
    fields = [f'shape = "{shape}"', f"candidates = {candidates} : i64"]
    if number:
        fields.append(f"number = {number} : i64")
    if runner_up:
        fields.append(f'runner_up = "{runner_up}"')
    if runner_up and seconds is not None:
        fields.append(f"runner_up_ns = {seconds * 1e9:.0f} : i64")
    return fields
