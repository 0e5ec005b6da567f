# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion of random chains against the best of all groupings: kernels launched and bytes moved.

A grouping is legal where the planner, given the operations of one group alone, would make one task of them, and where
groups need each other in no cycle. Brute force tries all legal groupings of a small graph.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tilewright.ir.structure import LinalgOp, Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.plan.graph.plan_fusion import Graph
from tilewright.plan.model.traffic import Levels, tensor_bytes

LEVELS = Levels(1 << 20, 32 << 20, 246.0, 120.0, 41.0)
ROWS, COLUMNS = 256, 96
HEAD = """
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
"""
FULL, ROW, SQUARE = f"tensor<{ROWS}x{COLUMNS}xf32>", f"tensor<{ROWS}xf32>", f"tensor<{COLUMNS}x{COLUMNS}xf32>"


class Chain:
    """A random program on a matrix: elementwise operations, sums of rows, rows spread over columns, products."""

    def __init__(self, seed: int, length: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.full, self.rows = ["%x"], []
        for number in range(length):
            self.rng.choice([self.unary, self.binary, self.sum, self.spread, self.product])(number)
        unread = [v for v in [*self.full, *self.rows] if v != "%x" and not self._is_read(v)]
        self.results = [(v, FULL if v in self.full else ROW) for v in unread]

    def _is_read(self, value: str) -> bool:
        return any(f"ins({value} " in line or f"{value}," in line or f", {value} :" in line for line in self.lines)

    def generic(self, name: str, maps: str, kinds: str, inputs: list[tuple[str, str]], out: str, body: str) -> None:
        names = ", ".join(v for v, _ in inputs)
        types = ", ".join(t for _, t in inputs)
        arguments = ", ".join(f"%v{n}: f32" for n in range(len(inputs)))
        self.lines.append(
            f"  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins({names} : {types}) outs(%e{'f' if out == FULL else 'r'} : {out}) {{\n"
            f"  ^bb0({arguments}, %o: f32):\n{body}\n    linalg.yield %t : f32\n  }} -> {out}"
        )

    def recent(self) -> str:
        return self.rng.choice(self.full[-2:])

    def unary(self, number: int) -> None:
        name, source = f"%u{number}", self.recent()
        self.generic(name, "#ij, #ij", '"parallel", "parallel"', [(source, FULL)], FULL, "    %t = math.exp %v0 : f32")
        self.full.append(name)

    def binary(self, number: int) -> None:
        name, sources = f"%b{number}", [(self.recent(), FULL), (self.rng.choice(self.full), FULL)]
        self.generic(
            name, "#ij, #ij, #ij", '"parallel", "parallel"', sources, FULL, "    %t = arith.addf %v0, %v1 : f32"
        )
        self.full.append(name)

    def sum(self, number: int) -> None:
        name, source = f"%s{number}", self.recent()
        self.generic(
            name, "#ij, #i", '"parallel", "reduction"', [(source, FULL)], ROW, "    %t = arith.addf %o, %v0 : f32"
        )
        self.rows.append(name)

    def spread(self, number: int) -> None:
        if not self.rows:
            return self.sum(number)
        name, sources = f"%r{number}", [(self.recent(), FULL), (self.rows[-1], ROW)]
        self.generic(
            name, "#ij, #i, #ij", '"parallel", "parallel"', sources, FULL, "    %t = arith.mulf %v0, %v1 : f32"
        )
        self.full.append(name)

    def product(self, number: int) -> None:
        name, sources = f"%p{number}", [(self.recent(), FULL), ("%w", SQUARE)]
        body = "    %p = arith.mulf %v0, %v1 : f32\n    %t = arith.addf %o, %p : f32"
        self.generic(name, "#a, #b, #c", '"parallel", "parallel", "reduction"', sources, FULL, body)
        self.full.append(name)

    def text(self) -> str:
        types = ", ".join(t for _, t in self.results)
        return (
            f"{HEAD}func.func @main(%x: {FULL}, %w: {SQUARE}) -> ({types}) {{\n"
            f"  %ef = tensor.empty() : {FULL}\n  %er = tensor.empty() : {ROW}\n"
            + "\n".join(self.lines)
            + f"\n  return {', '.join(v for v, _ in self.results)} : {types}\n}}"
        )


def tasks_of(ops: list[LinalgOp]) -> list[frozenset[LinalgOp]]:
    """The planner's grouping."""
    graph = Graph(ops, 0, LEVELS)
    graph.build()
    return [frozenset(op for nest in task.nests for op in nest.ops) for task in graph.tasks if task.nests]


def moved(groups: list[frozenset[LinalgOp]]) -> int:
    """Bytes that kernels read and write."""
    total = 0
    for group in groups:
        members = {op.op for op in group}
        made = {op.result for op in group}
        total += sum(tensor_bytes(v) for v in {a.value for op in group for a in op.inputs} - made)
        total += sum(tensor_bytes(v) for v in made if any(u.owner.operation not in members for u in v.uses))
    return total


def is_acyclic(groups: list[frozenset[LinalgOp]]) -> bool:
    """Whether the groups can run one after the other."""
    of = {op.result: number for number, group in enumerate(groups) for op in group}
    needs = [{of[a.value] for op in g for a in op.inputs if a.value in of} - {n} for n, g in enumerate(groups)]
    left = set(range(len(groups)))
    while left:
        ready = {n for n in left if not needs[n] & left}
        if not ready:
            return False
        left -= ready
    return True


def groupings(ops: list[LinalgOp]) -> Iterator[list[frozenset[LinalgOp]]]:
    """All legal ones."""
    legal: dict[frozenset[LinalgOp], bool] = {}

    def is_task(group: frozenset[LinalgOp]) -> bool:
        if group not in legal:
            legal[group] = len(tasks_of([op for op in ops if op in group])) == 1
        return legal[group]

    def extend(number: int, groups: list[frozenset[LinalgOp]]) -> Iterator[list[frozenset[LinalgOp]]]:
        if number == len(ops):
            if all(is_task(g) for g in groups) and is_acyclic(groups):
                yield groups
            return
        for at, group in enumerate(groups):
            yield from extend(number + 1, [*groups[:at], group | {ops[number]}, *groups[at + 1 :]])
        yield from extend(number + 1, [*groups, frozenset({ops[number]})])

    yield from extend(0, [])


@pytest.mark.parametrize("seed", range(40))
def test_against_brute_force(seed):
    """Bytes moved within 1.5 times those of the best grouping; kernels within one more."""
    chain = Chain(seed, length=random.Random(seed).randint(3, 7))
    with ir.Context() as context:
        module = ir.Module.parse(chain.text(), context)
        (block,) = (b for b in blocks(module.operation) if len(b.operations) > 1)
        ops = linalg_ops(block, Weights())
        ours = tasks_of(ops)
        best = min(groupings(ops), key=lambda groups: (moved(groups), len(groups)))
        assert is_acyclic(ours)
        print(f"bytes {moved(ours)} best {moved(best)}, kernels {len(ours)} best {len(best)}")
        assert moved(ours) <= 1.5 * moved(best)
        assert len(ours) <= len(best) + 1
