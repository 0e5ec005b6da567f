# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions mean the same as text: MLIR folds what it parses, and names stand for dimensions."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.dialects.coremesh import at_least, at_most, equal, program
from tilewright.mlir import ir
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh_ir.read import programs, read_program

KINDS = ("get_add", "get_mul", "get_mod", "get_floor_div", "get_ceil_div")
AT = np.meshgrid(np.arange(5), np.arange(7), np.arange(3), indexing="ij")


def constant(value: int) -> ir.AffineExpr:
    return ir.AffineExpr.get_constant(value)


def random_expr(rng: random.Random, depth: int) -> ir.AffineExpr:
    """Any expression of three dimensions."""
    if depth == 0 or rng.random() < 0.2:
        return ir.AffineExpr.get_dim(rng.randrange(3)) if rng.random() < 0.6 else constant(rng.randrange(-9, 10))
    left, kind = random_expr(rng, depth - 1), rng.choice(KINDS)
    right = random_expr(rng, depth - 1) if kind == "get_add" else constant(rng.randrange(1, 9))
    return getattr(ir.AffineExpr, kind)(left, right)


def random_module(rng: random.Random) -> ir.Module:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body), program("p", (3, 4), [], []) as p:
        slot = p.buffer("B", ir.RankedTensorType.get((1,), ir.F32Type.get()))[0]
        for number in range(10):
            p.route(f"r{number}", "x", random_expr(rng, 4))
        with p.loop(3):
            for number in range(10):
                where = [kind(random_expr(rng, 3), random_expr(rng, 2)) for kind in (at_least, at_most, equal)]
                p.wait([p.send(slot, f"r{number}", where)])
        p.yield_()
    module.operation.verify()
    return module


def values(read: Program) -> list[np.ndarray]:
    """Sources of routes, and which cores send, at all points."""
    shape = AT[0].shape
    sources = [np.broadcast_to(route.source(AT), shape) for route in read.routes]
    masks = []
    for one in read.body[0].body[::2]:
        least = [np.broadcast_to(expr(AT) >= 0, shape) for expr in one.cores.at_least_zero]
        exact = [np.broadcast_to(expr(AT) == 0, shape) for expr in one.cores.zero]
        masks.append(np.all([*least, *exact], 0))
    return [*sources, *masks]


@pytest.mark.parametrize("seed", range(20))
def test_text_means_the_same(seed):
    with ir.Context(), ir.Location.unknown():
        module = random_module(random.Random(seed))
        again = ir.Module.parse(str(module))
        before, after = (values(read_program(programs(one)[0])) for one in (module, again))
    assert len(before) == len(after) == 20
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
