# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which count, parity or wait of a ring explains where it stands still, or the stale data that it hands on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import Cause, Hypothesis, changed, get, search
from bench.gpu.far.ladder.diagnosis.phases import RingObserved, outcomes, source
from bench.gpu.far.ladder.diagnosis.tma import POISON
from bench.gpu.far.ladder.setup import MbarrierSetup

_MOST = 64


def diagnose(setup: MbarrierSetup, observed: RingObserved) -> Cause | None:
    """The field that explains everything observed; None: none does alone (or nothing is wrong)."""
    if _given(setup, observed):
        return None
    early = _early(setup, observed)
    if early:
        field, text = early
        return Cause(field, get(setup, field), ("another parity, or no wait",), text)
    return search(_hypotheses(setup, observed), lambda one: _given(one, observed), _text)


def _given(setup: MbarrierSetup, observed: RingObserved) -> bool:
    return any(one.same(observed) for one in outcomes(setup))


def _early(setup: MbarrierSetup, observed: RingObserved) -> tuple[str, str] | None:
    """A wait that lets through too early: buffers were read before their load, or loaded before they were read."""
    expected = source(setup)
    for number in range(observed.consumed):
        row = observed.result[number]
        if (row == expected[number]).all():
            continue
        older = expected[number - setup.stages] if number >= setup.stages else np.full_like(row, POISON)
        if ((row == older) | (row == expected[number])).all():
            return "full_parity", _WORDS["full_parity"]
        if (
            number + setup.stages < setup.rounds
            and (expected[number + setup.stages :: setup.stages] == row).any(0).all()
        ):
            return "empty_parity", _WORDS["overwritten"]
        return None
    return None


def _hypotheses(setup: MbarrierSetup, observed: RingObserved) -> Iterator[Hypothesis]:
    for number in range(1, _MOST):
        yield changed(setup, "full_count", setup.full_count + number)
        yield changed(setup, "empty_count", setup.empty_count + number)
    yield changed(setup, "full_parity", 1 - setup.full_parity)
    yield changed(setup, "empty_parity", 1 - setup.empty_parity)
    excess = observed.full[0]
    if excess:
        yield changed(setup, "tx_bytes", setup.tx_bytes + int(16 * excess))
        yield changed(setup, "box_bytes", setup.box_bytes - int(16 * excess))
    for stages in range(1, 9):
        if stages != setup.stages:
            yield changed(setup, "stages", stages)


def _text(one: Hypothesis) -> str:
    return _WORDS[one.field].format(found=one.found, expected=one.expected)


_WORDS = {
    "full_count": "a full barrier waits for {found} arrivals a phase, {expected} come: count of mbarrier.init, or an "
    "arrival that is missing",
    "empty_count": "an empty barrier waits for {found} arrivals a phase, {expected} come: count of mbarrier.init, or "
    "an arrival that is missing",
    "tx_bytes": "arrive.expect_tx announces {found} bytes, a load brings {expected}",
    "box_bytes": "a load brings {found} bytes, {expected} are announced: size of the copy",
    "full_parity": "the consumer reads buffers before their load: its wait for the full barrier passes at once (parity "
    "of mbarrier.try_wait, or no wait)",
    "empty_parity": "the producer's first wait does not pass: parity {found} of the empty barrier, not {expected}",
    "overwritten": "buffers are loaded again before they are read: the producer does not wait for the empty barrier",
    "stages": "the ring goes round after {found} buffers, not {expected}",
}
