# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaign `kernels`: kernels by hand, called with sizes, grids, places and types that often do not fit.

Each case is a kernel and some calls of it, a part of them with new numbers alone. The interpreter says what is right: a
call that it refuses must be an error, any other one must give its results. The code runs under AddressSanitizer.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from . import sanitizer
from .campaign import Campaign, describe

_CALLS = 5  # of a kernel, with sizes of their own
_AGAIN = 20  # each, with other numbers
_ELEMENTS = {"f32": np.float32, "i32": np.int32, "f64": np.float64, "i8": np.int8}


class Kernels(Campaign):
    """Random kernels of one access that reads and one that updates, by all ways that the dialect has."""

    name = "kernels"
    suffix = ".json"
    seconds = 240
    memory = None  # the shadow of all memory is address space, too

    def environment(self) -> dict[str, str]:
        """The run-time of the sanitizer, in front of all others."""
        return sanitizer.environment()

    def obituary(self, errors: str) -> str:
        """What the sanitizer reports, if it does."""
        return sanitizer.message(errors) or super().obituary(errors)

    def prepare(self) -> None:
        """What this process starts needs no sanitizer."""
        sanitizer.entered()

    def case(self, choose: random.Random) -> bytes:
        """A kernel's text, and its calls as seeds and shapes."""
        made = _Made(choose)
        calls = [made.call() for _ in range(_CALLS)]
        return json.dumps({"text": made.text(), "element": made.element, "calls": calls}, indent=1).encode()

    def execute(self, case: bytes) -> str | None:
        """Make each call, and compare."""
        import tilewright as tw

        said = json.loads(case)
        ours = tw.kernel(said["text"], threads=1)
        theirs = tw.kernel(said["text"], target="reference", checks=False)
        for call in said["calls"]:
            for seed in range(call["seed"], call["seed"] + _AGAIN):
                found = _judged(ours, theirs, said["element"], call, seed)
                if found is not None:
                    return f"call {call} with seed {seed}: {found}"
        return None


def _judged(ours: Any, theirs: Any, element: str, call: dict[str, Any], seed: int) -> str | None:
    """What is wrong with a call; None: it is an error and has to be, or its result is right."""
    from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError

    arguments = _arguments(element, call, seed)
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    try:
        wanted = theirs(*copies, grid=call["grid"])["y"]
    except TilewrightError:
        wanted = None
    try:
        got = ours(*arguments, grid=call["grid"])["y"]
    except UnsupportedError:
        return None
    except InternalError as error:
        return describe(error)
    except TilewrightError as error:
        return None if wanted is None else f"refused what the interpreter takes: {describe(error)}"
    if wanted is None:
        return "no error where the interpreter has one"
    return None if np.array_equal(wanted, got, equal_nan=True) else "another result than the interpreter's"


def _arguments(element: str, call: dict[str, Any], seed: int) -> list[Any]:
    """Scalars, indices, what is read, what is updated; now and then of a wrong type, or with gaps."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(_ELEMENTS[element])
    shapes = call["shapes"]
    x, y = (rng.integers(-99, 99, shape).astype(dtype) for shape in shapes)
    low, high = call["places"]
    indices = rng.integers(low, high + 1, 8, dtype=np.int32)
    n, m = (int(rng.integers(first, last + 1)) for first, last in call["scalars"])
    if call["twist"] == "gaps" and x.ndim:
        wide = np.repeat(x, 2, axis=-1)
        x = wide[..., ::2]
    if call["twist"] == "order":
        x = np.asfortranarray(x)
    if call["twist"] == "type":
        x = x.astype(np.int64)
    if call["twist"] == "rank":
        y = y[None]
    return [n, m, indices, x, y]


class _Made:
    """One kernel: how its tile lies in memory, and where tasks are."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.element = choose.choice(tuple(_ELEMENTS))
        self.rank = choose.choice((1, 2, 2, 3))
        self.grid = choose.choice((0, 1, 1, 2))
        tile_rank = choose.randrange(1, min(self.rank, 2) + 1)
        self.shape = [choose.choice((1, 2, 4, 8)) for _ in range(tile_rank)]
        self.dims = sorted(choose.sample(range(self.rank), tile_rank))
        self.steps = [choose.choice((1, 1, 1, 2)) for _ in self.shape]
        self.loop = choose.choice((0, 0, 2, 3))
        self.factors = [[choose.choice((0, 1, 1, 2, 4, 8)) for _ in range(self.grid + 1)] for _ in range(self.rank)]
        self.shifts = [choose.choice((0, 0, 0, 1, -1)) for _ in range(self.rank)]
        self.by_scalar = choose.choice((-1, -1, -1, choose.randrange(self.rank)))
        self.reads = choose.choice(("plain", "plain", "masked", "masked size", "indices", "view"))
        self.writes = choose.choice(("plain", "plain", "masked", "masked size", "indices"))
        if "indices" in (self.reads, self.writes):
            self.shape[0] = 8

    # Calls ------------------------------------------------------------------------------------------------------------

    def call(self) -> dict[str, Any]:
        """Sizes near those that fit, a grid, ranges of what a run brings."""
        choose = self.choose
        grid = [choose.choice((0, 1, 1, 2, 3)) for _ in range(self.grid)]
        reach = [self._reach(dim, grid) for dim in range(self.rank)]
        shapes = [[max(0, size + choose.choice((0, 0, 0, 0, 1, 3, -1))) for size in reach] for _ in range(2)]
        limit = min((shape[self.dims[0]] for shape in shapes), default=1)
        inside = choose.random() < 0.5
        places = (0, max(limit - 1, 0)) if inside else (-2, limit + 1)
        scalars = [(0, choose.choice((0, 2, 9))), (choose.choice((0, -1)), choose.choice((1, 8)))]
        twist = choose.choice(("",) * 8 + ("gaps", "order", "type", "rank"))
        return {
            "grid": grid,
            "shapes": shapes,
            "places": places,
            "scalars": scalars,
            "twist": twist,
            "seed": choose.randrange(1 << 30),
        }

    def _reach(self, dim: int, grid: list[int]) -> int:
        last = max(self.shifts[dim], 0)
        for factor, bound in zip(self.factors[dim], [*grid, self.loop], strict=True):
            last += factor * max(bound - 1, 0)
        if dim in self.dims:
            at = self.dims.index(dim)
            last += (self.shape[at] - 1) * self.steps[at]
        return last + 1

    # Text -------------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The kernel."""
        memory = f"memref<{'?x' * self.rank}{self.element}>"
        grid = ", ".join(f"%g{i}" for i in range(self.grid))
        lines = [f"%c{n} = arith.constant {n} : index" for n in range(17)] + ["%cm1 = arith.constant -1 : index"]
        lines.append("%idx = tile.load %at[%c0] : memref<8xi32>, !tile.tile<8xi32>")
        inner = [*self._places(), *self._read(memory), *self._write(memory)]
        if self.loop:
            inner = [f"scf.for %l = %c0 to %c{self.loop} step %c1 {{", *inner, "}"]
        body = "\n  ".join([*lines, *inner, "tile.return"])
        head = f"tile.kernel @k(%n: index, %m: index, %at: memref<8xi32>, %x: {memory}, %y: {memory}) grid({grid}) {{"
        return f"{head}\n  {body}\n}}\n"

    def _places(self) -> list[str]:
        lines = []
        coordinates = [f"%g{i}" for i in range(self.grid)] + (["%l"] if self.loop else [])
        for dim in range(self.rank):
            at = "%cm1" if self.shifts[dim] < 0 else f"%c{self.shifts[dim]}"
            for number, coordinate in enumerate(coordinates):
                lines.append(f"%f{dim}_{number} = arith.muli {coordinate}, %c{self.factors[dim][number]} : index")
                lines.append(f"%s{dim}_{number} = arith.addi {at}, %f{dim}_{number} : index")
                at = f"%s{dim}_{number}"
            if dim == self.by_scalar:
                lines.append(f"%by{dim} = arith.addi {at}, %m : index")
                at = f"%by{dim}"
            lines.append(f"%p{dim} = arith.addi {at}, %c0 : index")
        return lines

    def _read(self, memory: str) -> list[str]:
        if self.reads != "view":
            before, access = self._access("%x", self.reads, memory, "r")
            return [*before, f"%a = tile.load {access[0]} : {memory}, {self._tile()}{access[1]}"]
        places = ", ".join(f"%p{d}" for d in range(self.rank))
        sizes = ", ".join(
            str((self.shape[self.dims.index(d)] - 1) * self.steps[self.dims.index(d)] + 1) if d in self.dims else "1"
            for d in range(self.rank)
        )
        ones = ", ".join("1" for _ in range(self.rank))
        kind = memory.replace("?x" * self.rank, sizes.replace(", ", "x") + "x")
        kind = kind[:-1] + f", strided<[{', '.join('?' * (self.rank - 1) + '1')}], offset: ?>>"
        zeros = ", ".join("%c0" for _ in range(self.rank))
        return [
            f"%v = memref.subview %x[{places}] [{sizes}] [{ones}] : {memory} to {kind}",
            f"%a = tile.load %v[{zeros}] {self._lies()} : {kind}, {self._tile()}",
        ]

    def _write(self, memory: str) -> list[str]:
        before, access = self._access("%y", self.writes, memory, "w")
        most = "arith.maximumf" if self.element.startswith("f") else "arith.maxsi"
        return [
            *before,
            f"%b = tile.load {access[0]} : {memory}, {self._tile()}{access[1]}",
            f"%t = {most} %a, %b : {self._tile()}",
            f"tile.store %t, {access[0]} : {self._tile()}, {memory}{access[1]}",
        ]

    def _access(self, memory: str, way: str, kind: str, prefix: str) -> tuple[list[str], tuple[str, str]]:
        """Lines before an access, and its text in front of the types and behind them."""
        places = ", ".join(f"%p{d}" for d in range(self.rank))
        text, before, behind = f"{memory}[{places}] {self._lies(way == 'indices')}", [], ""
        if way == "indices":
            text += " indices %idx along 0"
            behind = " (indices !tile.tile<8xi32>)"
        if way == "masked":
            text += f" valid ({', '.join(['%n', *['%c8'] * (len(self.shape) - 1)])})"
        if way == "masked size":
            bounds = []
            for dim in self.dims:
                before.append(f"%{prefix}d{dim} = memref.dim {memory}, %c{dim} : {kind}")
                before.append(f"%{prefix}r{dim} = arith.subi %{prefix}d{dim}, %p{dim} : index")
                bounds.append(f"%{prefix}r{dim}")
            text += f" valid ({', '.join(bounds)})"
        return before, (text, behind)

    def _lies(self, plain: bool = False) -> str:
        steps = [1 if plain and at == 0 else step for at, step in enumerate(self.steps)]
        return f"dims {self.dims} steps {steps}"

    def _tile(self) -> str:
        return f"!tile.tile<{'x'.join(map(str, self.shape))}x{self.element}>"
