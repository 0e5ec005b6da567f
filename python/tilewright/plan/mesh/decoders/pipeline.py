# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model whose layers do not fit one region of cores: stages on several, one after the other (WaferLLM, section 4.2).

A region is a grid of the size that layers want; as many as the machine has rows and columns for, in the order of a
snake, so that each stands beside the next. A stage holds weights and caches of its layers; what a layer works with is
shared by them. One token is in one region at a time: others are idle unless other requests are on their way.

How many layers each region has is the plan's decision: a `Pipeline` is a value, and may be made with other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.core.errors import UserError
from tilewright.plan.mesh.decoders.decode_layer import DecodeLayer, decode_layer
from tilewright.plan.mesh.decoders.hand_over import Way, hand_over
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program

#: Inputs that come with each token, or are shared by all layers.
_PASSING = {"x", "cos", "sin", "mask"}


@dataclass(frozen=True)
class Region:
    """A grid of cores within the machine's: row and column of its first core."""

    y: int
    x: int
    height: int
    width: int

    def way_to(self, other: Region) -> Way:
        """Where the next region of a snake stands."""
        return "down" if other.y > self.y else "right" if other.x > self.x else "left"


@dataclass(frozen=True)
class Footprint:
    """Bytes of one core.

    Attributes:
        layer: weights and caches of one layer; ``caches``: of those, what grows with tokens.
        work: what one layer at a time works with.
        free: memory beside code.
    """

    layer: int
    caches: int
    work: int
    free: int

    @property
    def layers(self) -> int:
        """Layers that fit."""
        return max(0, self.free - self.work) // self.layer


def footprint(layer: DecodeLayer, machine: Machine) -> Footprint:
    """What a layer takes of a core; buffers of its program, each with memory of its own."""
    program = decode_layer(layer)
    held = {place.slot.buffer: place.name for place in program.inputs if place.name not in _PASSING}
    sizes = {one.name: prod(one.shape) * one.slots * one.dtype.itemsize for one in program.buffers}
    weights = sum(size for name, size in sizes.items() if name in held)
    caches = sum(size for name, size in sizes.items() if held.get(name) in ("k", "v"))
    free = machine.sram_bytes - machine.mesh.code_bytes
    return Footprint(weights, caches, sum(sizes.values()) - weights, free)


def regions_of(height: int, width: int, machine: Machine) -> tuple[Region, ...]:
    """The regions of so many cores that a machine has room for, as a snake."""
    rows, columns = machine.mesh.height // height, machine.mesh.width // width
    return tuple(
        Region(row * height, (column if row % 2 == 0 else columns - 1 - column) * width, height, width)
        for row in range(rows)
        for column in range(columns)
    )


@dataclass(frozen=True)
class Stage:
    """Layers of one region, and what they take of each of its cores.

    Attributes:
        first, layers: which.
        bytes: of weights, caches and work; ``free``: of what a core has beside code.
        tokens: that its caches have room for, and could have in all of the memory that is left.
    """

    region: Region
    first: int
    layers: int
    bytes: int
    free: int
    tokens: tuple[int, int]

    def __str__(self) -> str:
        """One line."""
        region = self.region
        return (
            f"layers {self.first} to {self.first + self.layers - 1} on {region.height} x {region.width} cores at "
            f"({region.y}, {region.x}): {self.bytes} of {self.free} bytes of a core, {self.tokens[0]} tokens, "
            f"{self.tokens[1]} at most"
        )


@dataclass(frozen=True)
class Pipeline:
    """A plan.

    Attributes:
        layer: of the decoder, with its cache: one like all others.
        machine: that it is for.
        layers: of each region, in the order of `regions_of`.
    """

    layer: DecodeLayer
    machine: Machine
    layers: tuple[int, ...]

    def __post_init__(self) -> None:
        regions, one = self.regions, footprint(self.layer, self.machine)
        if not self.layers or min(self.layers) < 1:
            raise UserError(f"Each stage of a pipeline has layers; these have {list(self.layers)}.")
        if len(self.layers) > len(regions):
            raise UserError(
                f"{len(self.layers)} stages do not fit machine '{self.machine.name}': its "
                f"{self.machine.mesh.height} x {self.machine.mesh.width} cores have {len(regions)} regions of "
                f"{self.layer.cache.height} x {self.layer.cache.width}. {_REMEDY}"
            )
        for number, count in enumerate(self.layers):
            if count > one.layers:
                region = regions[number]
                raise UserError(
                    f"Memory of core ({region.y}, {region.x}): stage {number} has {count} layers, which take "
                    f"{one.work + count * one.layer} bytes, and {one.free} are free beside code: {one.layers} layers "
                    f"fit. {_REMEDY}"
                )

    @property
    def regions(self) -> tuple[Region, ...]:
        """All that the machine has."""
        return regions_of(self.layer.cache.height, self.layer.cache.width, self.machine)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The capacity report: what each region holds."""
        one, cache = footprint(self.layer, self.machine), self.layer.cache
        longer = footprint(replace(self.layer, cache=replace(cache, slots=cache.slots + 1)), self.machine)
        found, first = [], 0
        for region, count in zip(self.regions, self.layers, strict=False):
            used = one.work + count * one.layer
            slots = cache.slots + (one.free - used) // (longer.work + count * longer.layer - used)
            most = replace(cache, slots=slots).tokens
            found.append(Stage(region, first, count, used, one.free, (cache.tokens, most)))
            first += count
        return tuple(found)

    def hand_overs(self) -> tuple[Program, ...]:
        """Programs between stages, one for each stage but the last."""
        decoder, cache = self.layer.decoder, self.layer.cache
        used = self.regions[: len(self.layers)]
        return tuple(
            hand_over(decoder.width, (cache.height, cache.width), one.way_to(other), decoder.dtype)
            for one, other in zip(used, used[1:], strict=False)
        )


_REMEDY = "Use larger regions, fewer slots in caches, or a machine with more memory."


def plan_pipeline(layer: DecodeLayer, layers: int, machine: Machine) -> Pipeline:
    """Return the plan of fewest regions, which have as many layers each as can be.

    Raises:
        UserError: not one layer fits a region, or not all of them the machine.
    """
    if layers < 1:
        raise UserError(f"A model has 1 layer or more, not {layers}.")
    one = footprint(layer, machine)
    if not one.layers:
        raise UserError(
            f"Memory of a core: one layer takes {one.work + one.layer} bytes, and {one.free} are free beside code on "
            f"machine '{machine.name}'. {_REMEDY}"
        )
    count = -(-layers // one.layers)
    return Pipeline(layer, machine, tuple(layers // count + (number < layers % count) for number in range(count)))


@dataclass(frozen=True)
class PipelineTime:
    """Cycles of one token (T1), without embedding and head.

    Attributes:
        layer: of one layer.
        stages: of all layers of each stage.
        hand_overs: between them.
    """

    layer: float
    stages: tuple[float, ...]
    hand_overs: tuple[float, ...]

    @property
    def cycles(self) -> float:
        """Of the token."""
        return sum(self.stages) + sum(self.hand_overs)

    @property
    def interval(self) -> float:
        """Between tokens of different requests, where enough of them are on their way.

        A region receives, computes and sends in turn: programs do not overlap on it.
        """
        received, sent = (0.0, *self.hand_overs), (*self.hand_overs, 0.0)
        return max(map(sum, zip(received, self.stages, sent, strict=True)))

    @property
    def utilization(self) -> float:
        """Of the regions, with one request."""
        return 1 / len(self.stages)


def time_pipeline(plan: Pipeline) -> PipelineTime:
    """Return what a token takes at the length of the plan's cache."""
    layer = time_program(decode_layer(plan.layer), plan.machine, loads=False).cycles
    return PipelineTime(layer, tuple(count * layer for count in plan.layers), _cycles(plan.hand_overs(), plan.machine))


def _cycles(programs: Sequence[Program], machine: Machine) -> tuple[float, ...]:
    known: dict[str, float] = {}
    for one in programs:
        if one.name not in known:
            known[one.name] = time_program(one, machine, loads=False).cycles
    return tuple(known[one.name] for one in programs)
