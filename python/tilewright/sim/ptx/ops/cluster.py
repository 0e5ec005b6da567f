# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters: addresses of other CTAs' shared memory, barriers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.shared_memory import RANK_SHIFT
from tilewright.sim.ptx.order.races import detector
from tilewright.sim.ptx.sync.step import Wait
from tilewright.sim.ptx.syntax.registry import opcode

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction

_RANK = np.int64(0xFF << RANK_SHIFT)


@opcode("mapa")
def mapa(ins: Instruction, decode: Decoder) -> Run:
    """The address of the same place in another CTA of the cluster."""
    decode.arity(3)
    decode.known("shared::cluster", "u32", "u64")
    width = decode.type()
    put, at, rank = (
        decode.target(ins.args[0], width),
        decode.source(ins.args[1], width),
        decode.source(ins.args[2], "u32"),
    )

    def run(step: Step) -> None:
        ranks = step.full(rank(step)).astype(np.int64)
        size = step.machine.cluster_size
        if (ranks >= size).any():
            step.fail("out-of-bounds", f"rank {int(ranks.max())} in a cluster of {size} CTAs", ranks >= size)
        addresses = step.full(at(step)).astype(np.int64)
        put(step, (addresses & ~_RANK | ranks << RANK_SHIFT).astype(decode.dtype(width)))

    return run


@opcode("getctarank")
def getctarank(ins: Instruction, decode: Decoder) -> Run:
    """The rank of the CTA that a shared-memory address belongs to."""
    decode.arity(2)
    decode.known("shared::cluster", "u32", "u64")
    put, at = decode.target(ins.args[0], "u32"), decode.source(ins.args[1], decode.type())
    return lambda step: put(step, ((step.full(at(step)).astype(np.int64) & _RANK) >> RANK_SHIFT).astype(np.uint32))


class ClusterBarriers:
    """The barrier of each cluster: how often each thread has arrived, and which phases are complete."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.per_cluster = machine.threads * machine.cluster_size
        self.arrivals = np.zeros(machine.lanes, np.int64)
        self.waited = np.zeros(machine.lanes, np.int64)
        self.complete = np.zeros(machine.lanes // self.per_cluster, np.int64)
        machine.on_exit.append(lambda _, lanes: self.update(np.unique(lanes.ids // self.per_cluster)))

    def arrive(self, step: Step, relaxed: bool) -> None:
        """Threads arrive."""
        again = self.arrivals[step.sel] > self.waited[step.sel]
        if again.any():
            step.fail("barrier", "barrier.cluster.arrive twice with no barrier.cluster.wait between", again)
        self.arrivals[step.sel] += 1
        clusters = np.unique(step.ids // self.per_cluster)
        races = detector(self.machine)
        if races is not None:
            release = races.release_fenced if relaxed else races.release
            for cluster in clusters.tolist():
                release(step.narrowed(step.ids // self.per_cluster == cluster), ("cluster", cluster))
        self.machine.progress += 1
        self.update(clusters)

    def update(self, clusters: np.ndarray) -> None:
        """Complete the phases that all threads alive have arrived at."""
        for cluster in clusters.tolist():
            lanes = slice(cluster * self.per_cluster, (cluster + 1) * self.per_cluster)
            alive = self.machine.scheduler.alive[lanes]
            if not alive.any() or self.arrivals[lanes][alive].min() <= self.complete[cluster]:
                continue
            self.complete[cluster] += 1
            self.machine.races.phase(("cluster", cluster))
            self.machine.wake(("cluster", cluster))

    def wait(self, step: Step) -> Wait | None:
        """Threads wait for the phase that they arrived at."""
        if (self.arrivals[step.sel] == self.waited[step.sel]).any():
            step.fail("barrier", "barrier.cluster.wait without barrier.cluster.arrive before it")
        clusters = step.ids // self.per_cluster
        open_ = self.complete[clusters] >= self.arrivals[step.sel]
        passed = step.ids[open_]
        self.waited[passed] = self.arrivals[passed]
        for cluster in np.unique(clusters[open_]).tolist():
            self.machine.races.acquire(step.warps[open_ & (clusters == cluster)], ("cluster", cluster))
        if open_.all():
            return None
        keys = [("cluster", int(cluster)) for cluster in clusters[~open_]]
        return Wait(~open_, keys, "waits for the other threads of the cluster", retry=True)


def _barriers(machine: Machine) -> ClusterBarriers:
    found = machine.state.get("cluster")
    if found is None:
        found = machine.state["cluster"] = ClusterBarriers(machine)
    return found


@opcode("barrier.cluster.arrive")
def arrive(ins: Instruction, decode: Decoder) -> Run:
    """Arrives at the cluster's barrier."""
    decode.arity(0)
    decode.known("cluster", "arrive", "release", "relaxed", "aligned")
    relaxed = ins.has("relaxed")
    return lambda step: _barriers(step.machine).arrive(step, relaxed)


@opcode("barrier.cluster.wait")
def wait(ins: Instruction, decode: Decoder) -> Run:
    """Waits until all threads of the cluster have arrived."""
    decode.arity(0)
    decode.known("cluster", "wait", "acquire", "aligned")
    return lambda step: _barriers(step.machine).wait(step)
