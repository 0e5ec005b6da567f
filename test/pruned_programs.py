# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs in `linalg` with pruned constants, for tests of what propagates.

Numbers are small integers in f64, so that sums are exact in any order. Values are matrices of a few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

_MAPS = """
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn3 = affine_map<(m, n, k) -> (m, n)>
#mn = affine_map<(m, n) -> (m, n)>
#nm = affine_map<(m, n) -> (n, m)>
#m = affine_map<(m, n) -> (m)>
#n = affine_map<(m, n) -> (n)>
#bmk = affine_map<(b, m, n, k) -> (m, b, k)>
#bnk = affine_map<(b, m, n, k) -> (n, b, k)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>
#bkn = affine_map<(b, m, n, k) -> (k, b, n)>
#bmk2 = affine_map<(b, m, n, k) -> (b, m, k)>
#xk = affine_map<(e, m, n, k) -> (m, k)>
#ekn = affine_map<(e, m, n, k) -> (e, k, n)>
#emn = affine_map<(e, m, n, k) -> (e, m, n)>
#me = affine_map<(m, n, e) -> (m, e)>
#emn3 = affine_map<(m, n, e) -> (e, m, n)>
#mn_e = affine_map<(m, n, e) -> (m, n)>
#mbn = affine_map<(b, m, n, k) -> (m, b, n)>
"""
_P, _R = '"parallel"', '"reduction"'


def tensor(*sizes: int) -> str:
    """A type."""
    return f"tensor<{'x'.join(map(str, sizes))}xf64>"


def literal(array: np.ndarray) -> str:
    """A constant's elements."""
    return str(array.astype(float).tolist())


@dataclass
class Program:
    """A program under construction: lines, and matrices to go on from."""

    rng: np.random.Generator
    rows: int
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, int]] = field(default_factory=list)
    made: int = 0
    widest: int = 6
    external: bool = False
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def new(self) -> str:
        """A name."""
        self.made += 1
        return f"%v{self.made}"

    def constant(self, *sizes: int) -> str:
        """Small integers, with slices of zeros along some axis, or without."""
        array = self.rng.integers(-2, 3, sizes)
        array[array == 0] = 1
        for axis, size in enumerate(sizes):
            if self.rng.random() < 0.6:
                dead = self.rng.permutation(size)[: self.rng.integers(0, size + 1)]
                np.moveaxis(array, axis, 0)[dead] = 0
        name, kind = self.new(), tensor(*sizes)
        if self.external:
            symbol = f"w{len(self.weights)}"
            self.weights[symbol] = array.astype(np.float64)
            self.lines.append(f"{name} = ml_program.global_load_const @{symbol} : {kind}")
        else:
            self.lines.append(f"{name} = arith.constant dense<{literal(array)}> : {kind}")
        return name

    def filled(self, *sizes: int, number: float = 0.0) -> str:
        """A tensor to begin sums with."""
        name, empty, scalar = self.new(), self.new(), self.new()
        self.lines.append(f"{scalar} = arith.constant {number:e} : f64")
        self.lines.append(f"{empty} = tensor.empty() : {tensor(*sizes)}")
        kind = tensor(*sizes)
        self.lines.append(f"{name} = linalg.fill ins({scalar} : f64) outs({empty} : {kind}) -> {kind}")
        return name

    def generic(
        self, maps: list[str], kinds: list[str], inputs: list[tuple[str, tuple[int, ...]]], init: str,
        sizes: tuple[int, ...], body: str,
    ) -> str:  # fmt: skip
        """An operation whose body gets %a, %b, ... and the accumulator %o, and yields %r."""
        name = self.new()
        names = [f"%{letter}" for letter in "abc"[: len(inputs)]]
        ins = ", ".join(value for value, _ in inputs) + " : " + ", ".join(tensor(*s) for _, s in inputs)
        arguments = ", ".join(f"{n}: f64" for n in [*names, "%o"])
        self.lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{', '.join(kinds)}]}} "
            f"ins({ins}) outs({init} : {tensor(*sizes)}) {{\n^bb0({arguments}):\n{body}\nlinalg.yield %r : f64\n}} "
            f"-> {tensor(*sizes)}"
        )
        return name

    def pick(self) -> tuple[str, int]:
        """A matrix that is there."""
        return self.values[self.rng.integers(len(self.values))]

    def text(self) -> str:
        """The module: @main returns the last matrix, and sometimes an earlier one."""
        chosen = [self.values[-1]]
        if self.rng.random() < 0.3:
            chosen.append(self.pick())
        kinds = ", ".join(tensor(self.rows, n) for _, n in chosen)
        lines = "\n".join(self.lines)
        end = f"return {', '.join(v for v, _ in chosen)} : {kinds}"
        width = self.values[0][1]
        held = {name: tensor(*array.shape) for name, array in self.weights.items()}
        lines_of = [f"ml_program.global private @{n}(#ml_program.extern : {k}) : {k}\n" for n, k in held.items()]
        head = f"{_MAPS}{''.join(lines_of)}func.func @main(%x: {tensor(self.rows, width)}) -> ({kinds}) {{"
        return f"{head}\n{lines}\n{end}\n}}\n"


def _product(p: Program) -> tuple[str, int]:
    value, width = p.pick()
    lanes = int(p.rng.integers(2, p.widest + 1))
    weight, sums = p.constant(width, lanes), p.filled(p.rows, lanes)
    body = "%t = arith.mulf %a, %b : f64\n%r = arith.addf %o, %t : f64"
    inputs = [(value, (p.rows, width)), (weight, (width, lanes))]
    return p.generic(["#mk", "#kn", "#mn3"], [_P, _P, _R], inputs, sums, (p.rows, lanes), body), lanes


def _vector(p: Program) -> tuple[str, int]:
    value, width = p.pick()
    name = p.rng.choice(["mulf", "addf", "subf", "maximumf"])
    inputs = [(value, (p.rows, width)), (p.constant(width), (width,))]
    init = p.filled(p.rows, width)
    body = f"%r = arith.{name} %a, %b : f64"
    return p.generic(["#mn", "#n", "#mn"], [_P, _P], inputs, init, (p.rows, width), body), width


def _masked(p: Program) -> tuple[str, int]:
    value, width = p.pick()
    body = "%z = arith.constant 0.0 : f64\n%s = arith.cmpf ogt, %b, %z : f64\n%r = arith.select %s, %a, %b : f64"
    inputs = [(value, (p.rows, width)), (p.constant(width), (width,))]
    return p.generic(["#mn", "#n", "#mn"], [_P, _P], inputs, p.filled(p.rows, width), (p.rows, width), body), width


def _relu(p: Program) -> tuple[str, int]:
    value, width = p.pick()
    body = "%z = arith.constant 0.0 : f64\n%r = arith.maximumf %a, %z : f64"
    return p.generic(
        ["#mn", "#mn"], [_P, _P], [(value, (p.rows, width))], p.filled(p.rows, width), (p.rows, width), body
    ), width


def _residual(p: Program) -> tuple[str, int]:
    value, width = p.pick()
    other = next(v for v, n in reversed(p.values) if n == width)
    body = "%r = arith.addf %a, %b : f64"
    inputs = [(value, (p.rows, width)), (other, (p.rows, width))]
    init = p.filled(p.rows, width)
    return p.generic(["#mn", "#mn", "#mn"], [_P, _P], inputs, init, (p.rows, width), body), width


def _centered(p: Program) -> tuple[str, int]:
    """What a normalization does: a reduction of each row, or column, and its result in each element."""
    value, width = p.pick()
    name, begin = [("addf", 0.0), ("maximumf", -1e300)][p.rng.integers(2)]
    kept, kinds, size = [("#m", [_P, _R], p.rows), ("#n", [_R, _P], width)][p.rng.integers(2)]
    body = f"%r = arith.{name} %o, %a : f64"
    inputs = [(value, (p.rows, width))]
    sums = p.generic(["#mn", kept], kinds, inputs, p.filled(size, number=begin), (size,), body)
    body = "%r = arith.subf %a, %b : f64"
    inputs = [(value, (p.rows, width)), (sums, (size,))]
    return p.generic(["#mn", kept, "#mn"], [_P, _P], inputs, p.filled(p.rows, width), (p.rows, width), body), width


def _joined(p: Program) -> tuple[str, int]:
    (a, m), (b, n) = p.pick(), p.pick()
    into, half, whole = p.filled(p.rows, m + n), p.new(), p.new()
    kind = tensor(p.rows, m + n)
    for name, value, target, at, size in ((half, a, into, 0, m), (whole, b, half, m, n)):
        place = f"[0, {at}] [{p.rows}, {size}] [1, 1]"
        p.lines.append(
            f"{name} = tensor.insert_slice {value} into {target}{place} : {tensor(p.rows, size)} into {kind}"
        )
    return whole, m + n


def _part(p: Program) -> tuple[str, int]:
    value, width = p.pick()
    begin = int(p.rng.integers(width))
    size = int(p.rng.integers(1, width - begin + 1))
    name = p.new()
    place = f"[0, {begin}] [{p.rows}, {size}] [1, 1]"
    p.lines.append(f"{name} = tensor.extract_slice {value}{place} : {tensor(p.rows, width)} to {tensor(p.rows, size)}")
    return name, size


def _heads(p: Program) -> tuple[str, int]:
    """Scores of heads, times values: batched products of what reshapes split, and joined again."""
    heads, depth = int(p.rng.integers(1, 4)), int(p.rng.integers(1, 4))
    parts = []
    for _ in range(3):
        value, width = p.pick()
        weight, sums = p.constant(width, heads * depth), p.filled(p.rows, heads * depth)
        body = "%t = arith.mulf %a, %b : f64\n%r = arith.addf %o, %t : f64"
        inputs = [(value, (p.rows, width)), (weight, (width, heads * depth))]
        flat = p.generic(["#mk", "#kn", "#mn3"], [_P, _P, _R], inputs, sums, (p.rows, heads * depth), body)
        name = p.new()
        shape = f"output_shape [{p.rows}, {heads}, {depth}]"
        kinds = f"{tensor(p.rows, heads * depth)} into {tensor(p.rows, heads, depth)}"
        p.lines.append(f"{name} = tensor.expand_shape {flat} [[0], [1, 2]] {shape} : {kinds}")
        parts.append((name, (p.rows, heads, depth)))
    body = "%t = arith.mulf %a, %b : f64\n%r = arith.addf %o, %t : f64"
    four = [_P, _P, _P, _R]
    shape = (heads, p.rows, p.rows)
    scores = p.generic(["#bmk", "#bnk", "#bmn"], four, parts[:2], p.filled(*shape), shape, body)
    shape3 = (p.rows, heads, depth)
    inputs = [(scores, shape), parts[2]]
    mixed = p.generic(["#bmk2", "#bkn", "#mbn"], four, inputs, p.filled(*shape3), shape3, body)
    name = p.new()
    kinds = f"{tensor(*shape3)} into {tensor(p.rows, heads * depth)}"
    p.lines.append(f"{name} = tensor.collapse_shape {mixed} [[0], [1, 2]] : {kinds}")
    return name, heads * depth


def _experts(p: Program) -> tuple[str, int]:
    """A mixture: gates of experts times their products, some of which are dead."""
    value, width = p.pick()
    count, lanes = int(p.rng.integers(2, 5)), int(p.rng.integers(2, p.widest + 1))
    x, body = (value, (p.rows, width)), "%t = arith.mulf %a, %b : f64\n%r = arith.addf %o, %t : f64"
    inputs = [x, (p.constant(width, count), (width, count))]
    gates = p.generic(["#mk", "#kn", "#mn3"], [_P, _P, _R], inputs, p.filled(p.rows, count), (p.rows, count), body)
    shape = (count, p.rows, lanes)
    inputs = [x, (p.constant(count, width, lanes), (count, width, lanes))]
    made = p.generic(["#xk", "#ekn", "#emn"], [_P, _P, _P, _R], inputs, p.filled(*shape), shape, body)
    inputs, sums = [(gates, (p.rows, count)), (made, shape)], p.filled(p.rows, lanes)
    return p.generic(["#me", "#emn3", "#mn_e"], [_P, _P, _R], inputs, sums, (p.rows, lanes), body), lanes


STEPS: tuple[Callable[[Program], tuple[str, int]], ...] = (
    _product, _product, _vector, _masked, _relu, _residual, _centered, _joined, _part, _heads, _experts,
)  # fmt: skip


def random_program(seed: int, steps: int = 6, rows: int = 3, widest: int = 6) -> tuple[str, tuple[int, int]]:
    """The text of a program, and the shape of its input."""
    program = drawn(np.random.default_rng(seed), steps, rows, widest)
    return program.text(), (rows, program.values[0][1])


def drawn(rng: np.random.Generator, steps: int, rows: int, widest: int, external: bool = False) -> Program:
    """A program; its constants are external weights, if they shall be."""
    program = Program(rng, rows, widest=widest, external=external)
    program.values.append(("%x", int(rng.integers(2, 6))))
    for _ in range(steps):
        program.values.append(STEPS[rng.integers(len(STEPS))](program))
    program.values.append(_product(program))
    return program
