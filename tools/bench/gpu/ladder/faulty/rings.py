# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in the phases of a ring of buffers: counts, bytes, parities, waits, arrivals, fences."""

from __future__ import annotations

import numpy as np

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis import phases_cause
from bench.gpu.far.ladder.diagnosis.cause import Cause, get, put
from bench.gpu.far.ladder.diagnosis.phases import PITCH, RingObserved, outcomes, source
from bench.gpu.far.ladder.setup import MbarrierSetup
from bench.gpu.ladder.faulty.boxes import LIMIT
from bench.gpu.ladder.faulty.family import Fault, drop
from bench.gpu.ladder.ring import STAGES, ring
from tilewright.runtime.gpu.gpu_device import Device

#: the first goes round once: what is read too early stays poison
_CASES = (
    MbarrierSetup(4, 4, 1, 2, PITCH, PITCH),
    MbarrierSetup(3, 8, 1, 2, PITCH, PITCH),
    MbarrierSetup(2, 7, 1, 2, 768, 768),
)
_FREE, _FULL = "%p3, [%r14]", "%p3, [%r13], %r15"
_ANSWER = "  setp.eq.u32 %p3, 0, 0;"
#: what is dropped: the statement, what stands there then, the field that it means
_EDITS = (
    (_FULL, _ANSWER, "full_parity"),
    (_FREE, _ANSWER, "empty_parity"),
    ("arrive.expect_tx", "  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r13], %n4;", "full_count"),
    ("@%p4 mbarrier.arrive", "", "empty_count"),
    ("bar.warp.sync", "", "bar.warp.sync"),
    ("fence.mbarrier_init", "", "fence.mbarrier_init"),
    ("fence.proxy.async", "", "fence.proxy.async"),
)
_FIELDS = ("stages", "full_count", "empty_count", "tx_bytes", "box_bytes", "full_parity", "empty_parity")


class Rings:
    """A ring in several sizes; a fault is in the kernel, and so in all of them."""

    rung = "ring"
    cases = _CASES

    def draw(self, rng: np.random.Generator) -> Fault:
        """A fault of a count, a parity or the kernel's text."""
        if rng.random() < 0.3:
            statement, other, field = _EDITS[int(rng.integers(len(_EDITS)))]
            return Fault(self.rung, -1, field, statement, "dropped", None, (), drop(statement, other))
        field, old = _FIELDS[int(rng.integers(len(_FIELDS)))], self.cases[1]
        more = int(rng.integers(1, 20))
        value = {
            "stages": lambda: 1 + more % STAGES,
            "full_count": lambda: old.full_count + more,
            "empty_count": lambda: old.empty_count + more,
            "tx_bytes": lambda: 16 * more * int(rng.choice([-1, 1])),
            "box_bytes": lambda: -16 * more,
        }.get(field, lambda: 1 - get(old, field))()
        return Fault(self.rung, -1, field, get(old, field), value)

    def observe(self, device: Device, case: int, fault: Fault | None) -> RingObserved:
        """Run a case."""
        setup, text = self.cases[case], ring()
        if fault is not None:
            setup = _faulty(setup, fault)
            text = fault.edit(text) if fault.edit else text
        return watching.ring(device, text, setup, source(self.cases[case]), LIMIT)

    def passes(self, case: int, seen: RingObserved) -> bool:
        """Whether all rounds came through as loaded."""
        return any(one.same(seen) for one in outcomes(self.cases[case]))

    def diagnose(self, case: int, seen: RingObserved) -> Cause | None:
        """The count, parity or wait."""
        return phases_cause.diagnose(self.cases[case], seen)


def _faulty(setup: MbarrierSetup, fault: Fault) -> MbarrierSetup:
    """A case's set-up with the fault in it: numbers of bytes are changes, others values."""
    if fault.edit is not None:
        return setup
    value = get(setup, fault.field) + fault.found if fault.field.endswith("_bytes") else fault.found
    return put(setup, fault.field, value)
