# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a product takes on a GPU, from the device description alone.

CTAs run in waves, as many at a time as fit. In a wave, the longest of four overlaps the others: the arithmetic, reading
shared memory for it, moving what the wave needs from L2, and its share of what comes from memory. What no ring hides is
added: the first step of each wave comes from memory, and its results are stored; of the first and last wave only, where
CTAs are persistent, since a ring is filled again while results are computed and stored. What
follows a tile's sums (functions, rounding, a store to shared memory) takes vector units' time while units that multiply
have nothing to do, unless another CTA is there. Matrices that what follows
reads come from memory once the product is done, or beside it where TMA fetches them. CTAs of a cluster load what they
share once, and wait for each other. CTAs that share steps have the same work (stream-K), and hand on sums
through L2. (Roller, section 3.3, has the first and the last of the four; its tiles are filled
to the same waves.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, sqrt

from tilewright.plan.cost.gemm import Problem, has_unit
from tilewright.plan.cost.gemm_shapes import Shape, shapes, tiles
from tilewright.plan.cost.kernel import instructions, is_function
from tilewright.plan.cost.prediction import Prediction, choice_fields
from tilewright.plan.cost.roofline import drawn, launched, sustained, transfer
from tilewright.plan.model.gpu import Gpu

# Numbers of the protocols that the lowering emits, in latencies of L2 or in loads; those of machines are rates.

#: Reads of shared memory for bytes that lie against the order of fragments: single ones, where ldmatrix brings 16.
_SINGLE = 4
#: Latencies of L2 from a slot's last use to its next one: the copy, and two waits at barriers.
_ROUND_TRIP = 2
#: The same between CTAs of a cluster: both have to be done with a slot, and one says so to the other.
_CLUSTER_TRIP = 3
#: Latencies of L2 that barriers of a cluster cost a CTA: one before the first copy, one before it ends.
_CLUSTER_BARRIERS = 2
#: Latencies of L2 between sums that are stored and who adds them: the store, the semaphore, the load.
_MEETS = 3
#: Times that differ by less than this part are the same.
_ALIKE = 0.01
#: Threads that read the same element of shared memory at once, where vector units multiply.
_BROADCAST = 4


def peak(problem: Problem, gpu: Gpu) -> float:
    """Operations per second of one multiprocessor."""
    kind = problem.kind if has_unit(problem, gpu) else "f64" if problem.kind == "f64" else "f32"
    return gpu.device.units.peak_of(kind)


def roofline(problem: Problem, gpu: Gpu) -> float:
    """The least seconds that a product can take: at its type's peak, or for each tensor once from memory."""
    rate = dict(gpu.device.units.peak).get(problem.kind) or peak(problem, gpu)
    held = problem.held + problem.batch * problem.rows * problem.lanes * (problem.out_bytes + problem.adds)
    return max(problem.operations / (rate * gpu.units), held / gpu.device.level("memory").bandwidth)


def raster(problem: Problem, shape: Shape, resident: int) -> int:
    """Rows of tiles that a band of tasks has, so that a wave reads the least: about as tall as it is wide in bytes."""
    down = problem.down(shape.rows)
    across = ceil(problem.lanes / shape.lanes)
    if down == 1 or across == 1 or down * across <= resident:
        return 1
    best = sqrt(resident * shape.lanes / shape.rows)
    return max(1, min(1 << round(max(best, 1)).bit_length() - 1, down))


def predict(problem: Problem, shape: Shape, gpu: Gpu, even: bool = False) -> Prediction:
    """The time of a product in CTAs of a given shape.

    Its bound is ``compute``, ``shared``, ``l2``, ``memory``, ``latency``, ``widen`` where an operand is small in
    memory, or ``promote`` where vector units add what matrix units have of a sum.

    Args:
        problem: the product.
        shape: of its tiles.
        gpu: the machine.
        even: as if tiles could be cut at no cost, so that all multiprocessors had the same work: a bound.
    """
    device, count = gpu.device, tiles(problem, shape)
    even = even or shape.stream_k > 0
    held = max(gpu.occupancy(shape.threads, shape.shared(problem), shape.registers(problem)), 1)
    resident = held * gpu.units
    waves = ceil(count / resident)
    last = count - (waves - 1) * resident
    rounds = (waves - 1) * held + ceil(last / gpu.units)  # tiles that the busiest multiprocessor computes
    rounds, fills = (count / gpu.units, count / resident) if even else (rounds, waves)
    steps = ceil(problem.depth / shape.depth) * problem.outer
    here = min(held, ceil(count / gpu.units))
    out = problem.batch * problem.rows * problem.lanes * (problem.out_bytes + problem.adds)
    near = count * steps * shape.loaded_bytes(problem)
    far = _memory_bytes(problem, shape, resident, near, out, device.level("l2").bytes)
    factor = 1.0 if even else drawn(device, max(gpu.units / count, 1.0))
    # A slot is free again a round trip to L2 after it was used: what a ring does not hide, however few bytes there are.
    # What is not in L2 yet comes from memory: bytes under way, over its latency, are all that a multiprocessor moves.
    fresh = min(far / max(near + out, 1), 1.0) * device.level("memory").latency
    trip = max((_CLUSTER_TRIP if shape.clustered else _ROUND_TRIP) * device.level("l2").latency, fresh)
    work = 2 * shape.rows * shape.lanes * shape.depth * steps
    promoting = rounds * _promoting(problem, shape, gpu)
    rate, unit = _rate_of(problem, shape, gpu, here)
    parts = {
        # One warpgroup alone adds while its unit waits; of several, others multiply.
        "compute": rounds * work / rate + (promoting if here * shape.warps < 8 else 0.0),
        "shared": rounds * steps * _shared_bytes(problem, shape, gpu) / device.level("shared").bandwidth,
        "l2": transfer(device, "l2", near + out) * factor,
        "memory": transfer(device, "memory", far) * factor,
        "latency": fills * steps * trip / (shape.stages - 1) if shape.stages > 1 else 0.0,
        "widen": rounds * steps * _widening(problem, shape, gpu),
        "promote": promoting,
    }
    bound = max(parts, key=lambda name: parts[name])
    # A ring that goes on is full when the next tile begins. Steps of stream-K are two parts, and whole tiles.
    starts = 1 if shape.persistent and shape.wgmma else waves + bool(shape.stream_k)
    ends = 1 if shape.persistent else min(waves, 2)
    tail = transfer(device, "l2", ends * out / max(waves, 1))
    waiting = starts * _latency(problem, shape, gpu, steps, here) + tail + _handing(shape, gpu, count, held)
    # The last tile's results are stored while nothing else is done: the tail has that. What is computed has it not.
    waiting += _epilogue(problem, shape, gpu, 0.0)
    if here == 1:
        waiting += max(rounds - 1, 0) * _epilogue(problem, shape, gpu, device.rate("slots.epilogue"))
    launch = launched(device, 0)
    return Prediction(
        seconds=parts[bound] + waiting + launch,
        bound="latency" if waiting > parts[bound] else bound,
        parts=parts,
        l2_bytes=near + out,
        memory_bytes=far,
        operations=problem.operations,
        occupancy=held,
        roofline=roofline(problem, gpu),
        waiting=waiting,
        launch=launch,
        products=problem.operations,
        unit=unit,
    )


def _rate_of(problem: Problem, shape: Shape, gpu: Gpu, here: int) -> tuple[float, str]:
    """Operations per second that a multiprocessor with so many CTAs reaches with everything at hand, and their rate."""
    device, whole = gpu.device, peak(problem, gpu)
    if shape.wgmma:
        return _bounded(whole * device.rate("wgmma.reached"), "wgmma.reached", problem, gpu)
    busy = min(1.0, here * shape.warps / device.rate("busy_warps"))
    if has_unit(problem, gpu):
        name = "mma.reached.hopper" if gpu.hopper else "mma.reached"
        return _bounded(whole * device.rate(name) * busy, name, problem, gpu)
    busy *= shape.side**2 / (shape.side**2 + shape.side)  # loads of 16 bytes take turns with multiply-adds
    return whole * device.rate("vector.reached") * busy, "vector.reached"


def _bounded(reached: float, name: str, problem: Problem, gpu: Gpu) -> tuple[float, str]:
    """What units reach, or what their power allows for long, and the rate that it is."""
    most = sustained(gpu.device, problem.kind)
    return (most, f"sustained.{problem.kind}") if most < reached else (reached, name)


def _epilogue(problem: Problem, shape: Shape, gpu: Gpu, storing: float) -> float:
    """Seconds in which a multiprocessor computes what follows a tile's sums, and stores it near.

    Args:
        problem: the product.
        shape: of its tiles.
        gpu: the machine.
        storing: instructions of a lane that round a sum and store it.
    """
    device = gpu.device
    functions = sum(map(is_function, problem.behind))
    slots = storing + functions + sum(instructions(device, name) for name in problem.behind)
    clocks = max(slots / device.rate("lanes"), functions / device.rate("functions"))
    return shape.rows * shape.lanes * clocks / device.units.frequency


def _latency(problem: Problem, shape: Shape, gpu: Gpu, steps: int, here: int) -> float:
    """Seconds that the start of a wave waits: for its first step, for its neighbour, for matrices behind the sums."""
    l2, memory = gpu.device.level("l2").latency, gpu.device.level("memory").latency
    behind = memory / here if problem.adds and not shape.fetched else 0.0
    first = behind + memory + (0 if shape.stages > 1 else steps * l2 / here)
    return first + _CLUSTER_BARRIERS * l2 if shape.clustered else first


def _handing(shape: Shape, gpu: Gpu, count: int, held: int) -> float:
    """Seconds in which CTAs hand on sums: each those of one tile, and who finishes a tile reads those of its others."""
    if not shape.stream_k:
        return 0.0
    level = gpu.device.level("l2")
    others = 1 if count > shape.stream_k else ceil(shape.stream_k / count)
    sums = shape.rows * shape.lanes * 4 * held / (level.bandwidth / gpu.units)
    return (1 + others) * sums + _MEETS * level.latency


def _widening(problem: Problem, shape: Shape, gpu: Gpu) -> float:
    """Seconds in which the vector units of a multiprocessor widen what a step of a CTA has of a packed operand."""
    packed = problem.packed
    if packed is None:
        return 0.0
    down, across = shape.grid if has_unit(problem, gpu) else (shape.warps, shape.warps)
    again = shape.warps // (across if packed.lanes else down)  # warps that have the same fragments
    elements = (shape.lanes if packed.lanes else shape.rows) * shape.depth * again
    conversion = gpu.device.rate("conversion.hopper" if gpu.capability >= 90 else "conversion")
    lanes = packed.instructions + packed.conversions * conversion
    return elements * lanes / (gpu.device.units.peak_of("f32") / 2)


def _promoting(problem: Problem, shape: Shape, gpu: Gpu) -> float:
    """Seconds in which the vector units of a multiprocessor add to a tile's sums what matrix units have of them."""
    return shape.promotions(problem) * shape.rows * shape.lanes / (gpu.device.units.peak_of("f32") / 2)


def _shared_bytes(problem: Problem, shape: Shape, gpu: Gpu) -> int:
    """Bytes that a step reads from shared memory: fragments of both operands for each warp or warpgroup."""
    element = shape.depth * problem.bytes
    if shape.wgmma:
        return shape.rows // 64 * (64 + shape.lanes) * element
    if not has_unit(
        problem, gpu
    ):  # each thread reads its rows and lanes; a quarter of a warp reads the same ones at once
        return round(shape.threads * 2 * shape.side * element / _BROADCAST) + _rewritten(problem, shape)
    side = sqrt(shape.rows * shape.lanes / shape.warps)
    against = _SINGLE if problem.bytes == 1 and not problem.deep else 1
    return round(shape.warps * side * shape.depth * (problem.widths[0] + against * problem.widths[1]))


def _rewritten(problem: Problem, shape: Shape) -> int:
    """Bytes of a packed operand that pass through shared memory again, wide: vector units read it there."""
    if problem.packed is None:
        return 0
    elements = (shape.lanes if problem.packed.lanes else shape.rows) * shape.depth
    return round(elements * (problem.packed.bytes + problem.bytes))


def _memory_bytes(problem: Problem, shape: Shape, resident: int, near: int, out: int, cache: int) -> int:
    """What a run reads and writes beyond L2: each operand once, again where a wave's share of it leaves L2."""
    if problem.held <= cache // 2:
        return min(problem.held, near) + out
    depth = problem.depth * problem.outer * problem.batch
    down, across = problem.down(shape.rows), ceil(problem.lanes / shape.lanes)
    band = raster(problem, shape, resident) if across > 1 else min(resident, down)
    wide = min(max(resident // band, 1), across)
    passes = ceil(across / wide) * ceil(down / band)
    rows, lanes = min(band, down) * shape.rows / problem.overlap, wide * shape.lanes
    per_wave = problem.bytes_of(rows * depth, lanes * depth)
    return min(max(passes * per_wave, problem.held), near) + out


@dataclass(frozen=True)
class Choice:
    """The shape of a product, its predicted time, and what else could be taken.

    Attributes:
        shape: that is taken.
        prediction: of it.
        runner_up: the next best one of another tile; None where there is none.
        runner_up_seconds: of it.
        candidates: tiles that fit, each in its best form.
        number: of the shape among these.
        other: with the same tile, the best one without a cluster where the choice has one, else the best with one; None
            where there is none.
        other_prediction: of it.
        whole: with stream-K, the best shape in which each tile is one CTA's; None without.
        whole_seconds: of it.
    """

    shape: Shape
    prediction: Prediction
    runner_up: Shape | None
    runner_up_seconds: float
    candidates: int
    number: int = 0
    other: Shape | None = None
    other_prediction: Prediction | None = None
    whole: Shape | None = None
    whole_seconds: float = 0.0

    def attribute(self) -> str:
        """The choice as `tile.prediction`: times in ns, the launch included."""
        runner_up = "" if self.runner_up is None else str(self.runner_up)
        fields = choice_fields(str(self.shape), self.candidates, self.number, runner_up, self.runner_up_seconds)
        if self.other is not None and self.other_prediction is not None:
            fields.append('cluster = "{}x{}"'.format(*self.shape.cluster))
            fields.append('other_cluster = "{}x{}"'.format(*self.other.cluster))
            fields.append(f"other_cluster_ns = {self.other_prediction.seconds * 1e9:.0f} : i64")
            fields.append(f"other_cluster_l2_bytes = {self.other_prediction.l2_bytes} : i64")
        if self.whole is not None:
            fields.append(f'whole = "{self.whole}"')
            fields.append(f"whole_ns = {self.whole_seconds * 1e9:.0f} : i64")
        return self.prediction.attribute(fields)


def _ranked(found: Iterable[tuple[Prediction, Shape]]) -> list[tuple[Prediction, Shape]]:
    """Shapes by time, the best first; those within `_ALIKE` of the least by what they move and occupy."""
    ranked = sorted(found, key=lambda pair: pair[0].seconds)
    most = ranked[0][0].seconds * (1 + _ALIKE) if ranked else 0.0

    def rank(pair: tuple[Prediction, Shape]) -> tuple[float, ...]:
        prediction, shape = pair
        moved = (prediction.l2_bytes, prediction.parts["shared"], shape.warps, shape.stages)
        return (0.0, *moved) if prediction.seconds <= most else (prediction.seconds, *moved)

    return sorted(ranked, key=rank)


def choose(problem: Problem, gpu: Gpu, number: int = 0) -> Choice | None:
    """The shape with the least predicted time; None where the machine has none.

    Candidates differ in their rows or lanes; `number` says which one it shall be, the fastest one being the first.
    Among shapes whose times are within a percent of the least, the one that moves the least from L2, then from shared
    memory, then that with the fewest warps and the smallest ring. Steps are divided (stream-K) where that is faster
    than the best shape with whole tiles, by more than predictions may be wrong: the law leaves out the ends of parts.
    Equal layers of a network are equal problems, and asked about by several passes: each is decided once.
    """
    return choose_among(problem, gpu, number, shapes)


@lru_cache(512)
def choose_among(
    problem: Problem, gpu: Gpu, number: int, candidates: Callable[[Problem, Gpu], Iterable[Shape]]
) -> Choice | None:
    """Candidates are part of the key: who restricts them, as `tools/bench/gpu` does, meets no older choice."""
    every = [(predict(problem, shape, gpu), shape) for shape in candidates(problem, gpu)]
    whole = next(iter(_ranked(found for found in every if not found[1].stream_k)), None)
    most = inf if whole is None else whole[0].seconds / (1 + gpu.device.rate("prediction_error.order"))
    ranked = _ranked(found for found in every if not found[1].stream_k or found[0].seconds <= most)
    first: dict[tuple[int, int], tuple[Prediction, Shape]] = {}
    for pair in ranked:
        first.setdefault((pair[1].rows, pair[1].lanes), pair)
    found = list(first.values())
    if not found:
        return None
    number = min(number, len(found) - 1)
    best, shape = found[number]
    later = found[number + 1] if number + 1 < len(found) else None
    same = (r for r in ranked if (r[1].rows, r[1].lanes) == (shape.rows, shape.lanes))
    other = next((r for r in same if r[1].clustered != shape.clustered and not r[1].stream_k), None)
    whole = whole if shape.stream_k else None
    return Choice(
        shape,
        best,
        later and later[1],
        later[0].seconds if later else 0.0,
        len(found),
        number,
        other and other[1],
        other and other[0],
        whole and whole[1],
        whole[0].seconds if whole else 0.0,
    )
