# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stream-K gains and ping-pong would gain, by the plan's own law: `tools/bench/run gpu-schedules [--device NAME]`.

For products of models, predicted microseconds of three schedules, each in the tiles that are best for it:

- *whole*: what the plan takes if each tile is one CTA's, the depth cut into parts (split-K) where that is predicted to
  be faster.
- *stream-K*: full waves as they are, and the steps of the last full wave and of what is left dealt evenly over all CTAs
  (`tile-stream-k`). A CTA stores at most one tile of f32 sums for another one, and who has a tile's last step reads
  those of all others: both at a multiprocessor's share of L2, and three latencies of L2 for the semaphore between them.
  No clusters, and no matrices that sums meet: the plan takes it where it gains more than 5 %.
- *ping-pong*: two warpgroups on tiles of their own, the results of one converted and stored while the other one
  multiplies (CUTLASS 3). The plan's warpgroups share a tile, and matrix units wait for its end; that wait, which the
  plan's law leaves out since all shapes have it, is added to the time of whole tiles (column *with ends*): results
  twice through shared memory (in, and out by TMA), and an instruction and a half for each element. CTAs that share a
  multiprocessor hide it from each other.

Nothing is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from tilewright import devices
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape, shapes, tiles
from tilewright.plan.cost.gemm_time import predict
from tilewright.plan.gpu.split_k import best_parts
from tilewright.plan.model.gpu import Gpu

_DEVICES = ("nvidia-a100", "nvidia-h100", "nvidia-h200")
#: Instructions for an element of a result on its way out: half a conversion, half a store, what follows a product.
_INSTRUCTIONS = 1.5
_LANES = 128


def _encoder(width: int, inner: int, rows: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    for m in rows:
        yield from ((m, 3 * width, width), (m, width, width), (m, inner, width), (m, width, inner))


#: (rows, lanes, depth) of linear layers: encoders and decoders with some tokens at a time.
LINEAR: dict[str, list[tuple[int, int, int]]] = {
    "MiniLM": list(_encoder(384, 1536, (128, 1024, 4096))),
    "BERT, GPT-2": list(_encoder(768, 3072, (128, 512, 1024, 2048, 4096, 8192))),
    "BERT-large": list(_encoder(1024, 4096, (512, 1024, 4096))),
    "7 B": list(_encoder(4096, 11008, (128, 512, 2048))),
    "squares": [(n, n, n) for n in (1024, 1536, 2048, 3072, 4096, 8192)],
}
#: ResNet-50: size of the image, channels, filters, window.
IMAGES = [
    (56, 64, 64, 1), (56, 64, 64, 3), (56, 64, 256, 1), (56, 256, 64, 1), (28, 128, 128, 3), (28, 128, 512, 1),
    (28, 512, 128, 1), (14, 256, 256, 3), (14, 256, 1024, 1), (14, 1024, 256, 1), (7, 512, 512, 3), (7, 512, 2048, 1),
    (7, 2048, 512, 1),
]  # fmt: skip


def problems() -> Iterator[tuple[str, Problem]]:
    """Products of f16 with their names."""
    for model, sizes in LINEAR.items():
        for m, n, k in sizes:
            problem = Problem(m, n, k, 1, 1, "f16", 2, stores=True, neighbours=True, may_stream_k=True)
            yield f"{model} {m}x{n}x{k}", problem
    for batch in (1, 32):
        for size, channels, filters, window in IMAGES:
            places = (size, size) if batch == 1 else (size, size, batch)
            overlap = float(window**2)
            problem = Problem(
                prod(places), filters, channels, window**2, 1, "f16", 2,
                stores=True, neighbours=True, places=places, overlap=overlap, may_stream_k=True,
            )  # fmt: skip
            yield f"ResNet-50 b{batch} {size}x{size} {channels}->{filters} {window}x{window}", problem


def whole(problem: Problem) -> Problem:
    """The same product in whole tiles."""
    return replace(problem, may_stream_k=False)


def stream_k(problem: Problem, gpu: Gpu) -> float | None:
    """Seconds of stream-K in the best tiles; None where there is nothing to deal."""
    return min((predict(problem, shape, gpu).seconds for shape in shapes(problem, gpu) if shape.stream_k), default=None)


def _end(problem: Problem, shape: Shape, gpu: Gpu) -> float:
    """Seconds for which matrix units wait at the end of a tile of one CTA alone."""
    points = shape.rows * shape.lanes
    through = 2 * points * problem.out_bytes / gpu.device.level("shared").bandwidth
    return through + points * _INSTRUCTIONS / (_LANES * gpu.device.units.frequency)


def cooperative(problem: Problem, gpu: Gpu) -> float:
    """Seconds of whole tiles with the ends of tiles, in the best tiles for that."""

    def took(shape: Shape) -> float:
        found = predict(problem, shape, gpu)
        alone = found.occupancy == 1 or tiles(problem, shape) <= gpu.units
        ends = ceil(tiles(problem, shape) / gpu.units) if alone else 1
        return found.seconds + ends * _end(problem, shape, gpu)

    return min(took(shape) for shape in shapes(whole(problem), gpu))


def ping_pong(problem: Problem, gpu: Gpu) -> float | None:
    """Seconds of ping-pong in the best tiles; None where there are no warpgroups."""
    most = 64 * 256  # what a warpgroup holds of f32

    def took(shape: Shape) -> float:
        return predict(problem, shape, gpu).seconds + _end(problem, shape, gpu)

    fit = [s for s in shapes(whole(problem), gpu) if s.wgmma and s.persistent and s.rows * s.lanes <= most]
    return min(map(took, fit), default=None)


@dataclass(frozen=True)
class Line:
    """Predicted seconds of one product."""

    name: str
    parts: int | None
    whole: float
    streamed: float | None
    ends: float
    ping: float | None

    def __str__(self) -> str:
        """Return a row of the table."""
        ping = f"{self.ping * 1e6:9.1f}  {self.ends / self.ping - 1:6.1%}" if self.ping else f"{'':9}  {'':6}"
        streamed = f"{self.streamed * 1e6:9.1f}  {self.gain:6.1%}" if self.streamed else f"{'':9}  {'':6}"
        return f"{self.name:42} {self.whole * 1e6:9.1f} {self.parts or 1:3} {streamed}   {self.ends * 1e6:9.1f} {ping}"

    @property
    def gain(self) -> float:
        """Of stream-K: 0.1 where it is a tenth faster."""
        return self.whole / self.streamed - 1 if self.streamed else 0.0


def lines(device: str) -> Iterator[Line]:
    """One line per product."""
    gpu = Gpu.of(devices.get(device))
    for name, problem in problems():
        parts, seconds = best_parts(whole(problem), gpu)
        ping = ping_pong(problem, gpu)
        yield Line(name, parts, seconds, stream_k(problem, gpu), cooperative(problem, gpu), ping)


def _count(found: Sequence[Line], gain: Callable[[Line], float]) -> str:
    gains = sorted(gain(line) for line in found)
    return (
        f"{sum(g > 0.05 for g in gains)} of {len(gains)} gain more than 5 %, the most {gains[-1]:.1%}"
        if gains
        else "none"
    )


def main(arguments: Sequence[str]) -> int:
    """Print the table; returns 0."""
    parser = argparse.ArgumentParser(prog="tools/bench/run gpu-schedules", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", action="append", help="a device description; more than once: all of them")
    options = parser.parse_args(list(arguments))
    print(
        "Predicted from the device description, not measured. Microseconds; parts of split-K; gains of each schedule."
    )
    for name in options.device or _DEVICES:
        print(
            f"\n{name}\n{'':42} {'whole':>9}  in {'stream-K':>9}  {'gain':>6} "
            f"  {'with ends':>9} {'ping-pong':>9}  {'gain':>6}"
        )
        found = list(lines(name))
        print(*found, sep="\n")
        print("stream-K:", _count(found, lambda line: line.gain))
        pings = [line for line in found if line.ping]
        print("ping-pong:", _count(pings, lambda line: line.ends / (line.ping or 1.0) - 1))
    return 0
