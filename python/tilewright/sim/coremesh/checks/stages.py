# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many software stages a number passes: the depth of chains of relays."""

from __future__ import annotations

import numpy as np

from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.program import Program, Recv, Relay
from tilewright.sim.coremesh.steps import Step


def stages_of(program: Program, field: Field, steps: list[Step]) -> dict[str, int]:
    """By route: the most receptions in a row, each fed by a relay, that end on it. Routes with fixed sources only.

    A route that several phases use counts as if they followed each other without a stop in memory.
    """
    fixed = {route.name: route for route in program.routes if depth(route.source) <= 2}
    receiving: dict[str, np.ndarray] = {}
    relays: dict[tuple[str, str], np.ndarray] = {}
    none = np.zeros((1, 1), dtype=bool)
    for step in steps:
        instruction = step.instruction
        if not isinstance(instruction, Recv | Relay):
            continue
        mask = field.mask(instruction.cores, step.loops)
        name = instruction.incoming if isinstance(instruction, Relay) else instruction.route
        receiving[name] = mask | receiving.get(name, none)
        if isinstance(instruction, Relay) and mask.any() and {name, instruction.outgoing} <= set(fixed):
            relays[name, instruction.outgoing] = mask | relays.get((name, instruction.outgoing), none)
    found = {name: mask.astype(np.int64) for name, mask in receiving.items() if name in fixed}
    for _ in range(max(field.height, field.width)):
        after = dict(found)
        for (incoming, outgoing), mask in relays.items():
            if outgoing in found:
                above = np.where(mask, found[incoming], 0)
                reached = _at_source(field, fixed[outgoing], above, field.sources(fixed[outgoing], ())) + 1
                after[outgoing] = np.maximum(after[outgoing], np.where(receiving[outgoing], reached, 0))
        if all(np.array_equal(after[name], found[name]) for name in found):
            break
        found = after
    return {name: int(stages.max()) for name, stages in found.items()}


def _at_source(field: Field, route, values: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """At each core the value of its source on a route; 0 where that is outside."""
    axis = 1 if route.axis == "x" else 0
    shape = list(np.broadcast_shapes(values.shape, sources.shape))
    shape[axis] = field.length(route.axis)
    values, sources = np.broadcast_to(values, shape), np.broadcast_to(sources, shape)
    return np.where(sources >= 0, np.take_along_axis(values, np.maximum(sources, 0), axis=axis), 0)
