# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers: %tid, %ctaid, lane masks, clocks, places in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilewright.sim.ptx.sync.step import Step

_AXES = "xyz"

SPECIAL: dict[str, Callable[[Step], np.ndarray | np.generic]] = {}


def _axes(name: str, read: Callable[[Step, int], np.ndarray | int]) -> None:
    for axis, letter in enumerate(_AXES):
        SPECIAL[f"%{name}.{letter}"] = lambda step, axis=axis: np.asarray(read(step, axis), np.int64)


def _tid(step: Step, axis: int) -> np.ndarray:
    x, y, _ = step.machine.launch.block
    tid = step.tid
    return (tid % x, tid // x % y, tid // (x * y))[axis]


def _cluster_ctaid(step: Step, axis: int) -> np.ndarray:
    return step.machine.cta_of[step.slots, axis] % step.machine.launch.cluster[axis]


def _cluster_id(step: Step, axis: int) -> np.ndarray:
    return step.machine.cta_of[step.slots, axis] // step.machine.launch.cluster[axis]


_axes("tid", _tid)
_axes("ntid", lambda step, axis: step.machine.launch.block[axis])
_axes("ctaid", lambda step, axis: step.machine.cta_of[step.slots, axis])
_axes("nctaid", lambda step, axis: step.machine.launch.grid[axis])
_axes("cluster_ctaid", _cluster_ctaid)
_axes("cluster_nctaid", lambda step, axis: step.machine.launch.cluster[axis])
_axes("clusterid", _cluster_id)
_axes("nclusterid", lambda step, axis: step.machine.launch.grid[axis] // step.machine.launch.cluster[axis])


def _lane(step: Step) -> np.ndarray:
    return step.ids & 31


def _mask(kind: str) -> Callable[[Step], np.ndarray]:
    def read(step: Step) -> np.ndarray:
        bit = np.int64(1) << _lane(step)
        below = bit - 1
        full = np.int64(0xFFFFFFFF)
        return {"eq": bit, "lt": below, "le": below | bit, "gt": full & ~(below | bit), "ge": full & ~below}[kind]

    return read


for _kind in ("eq", "lt", "le", "gt", "ge"):
    SPECIAL[f"%lanemask_{_kind}"] = _mask(_kind)

SPECIAL["%laneid"] = _lane
SPECIAL["%warpid"] = lambda step: step.tid >> 5
SPECIAL["%nwarpid"] = lambda step: np.int64(step.machine.threads >> 5)
SPECIAL["%smid"] = lambda step: step.slots
SPECIAL["%nsmid"] = lambda step: np.int64(step.machine.slots)
SPECIAL["%gridid"] = lambda step: np.int64(1)
SPECIAL["%clock"] = lambda step: np.int64(step.machine.issued & 0xFFFFFFFF)
SPECIAL["%clock_hi"] = lambda step: np.int64(step.machine.issued >> 32)
SPECIAL["%clock64"] = lambda step: np.int64(step.machine.issued)
SPECIAL["%globaltimer"] = lambda step: np.int64(step.machine.issued)
SPECIAL["%globaltimer_lo"] = lambda step: np.int64(step.machine.issued & 0xFFFFFFFF)
SPECIAL["%globaltimer_hi"] = lambda step: np.int64(step.machine.issued >> 32)
SPECIAL["%cluster_ctarank"] = lambda step: step.machine.rank_of[step.slots]
SPECIAL["%cluster_nctarank"] = lambda step: np.int64(step.machine.cluster_size)
for _number in range(32):  # set by drivers; a program that does not know its driver reads zeros
    SPECIAL[f"%envreg{_number}"] = lambda step: np.int64(0)
SPECIAL["%is_explicit_cluster"] = lambda step: np.int64(step.machine.cluster_size > 1)
SPECIAL["%dynamic_smem_size"] = lambda step: np.int64(step.machine.launch.shared_bytes)
SPECIAL["%total_smem_size"] = lambda step: np.int64(step.machine.shared.used)
