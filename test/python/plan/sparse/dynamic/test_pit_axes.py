# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PIT-axes by brute force: the indices of a loop are permuted, and slices zeroed and left out, in the interpreter."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from tilewright import reference
from tilewright.ir.generics import body, maps, walk
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.pit_axes import annihilates, pit_axes, sparse_axes

KINDS = {"p": "parallel", "r": "reduction"}


@dataclass(frozen=True)
class Case:
    """A generic: loops as a word of p and r, its maps and shapes (the last is the output), body lines, and its axes."""

    loops: str
    maps: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    lines: str
    axes: tuple[int, ...]
    zeros: tuple[int, ...] = ()  # operands whose zeros absorb
    kind: str = "i32"

    def text(self) -> str:
        names = ["%a", "%b", "%c"][: len(self.maps) - 1]
        types = [f"tensor<{'x'.join(map(str, shape))}x{self.kind}>" for shape in self.shapes]
        dims = ", ".join(f"d{at}" for at in range(len(self.loops)))
        arguments = ", ".join(f"{n}t: {t}" for n, t in zip([*names, "%o"], types, strict=True))
        kinds = ", ".join(f'"{KINDS[c]}"' for c in self.loops)
        return f"""func.func @main({arguments}) -> {types[-1]} {{
          %y = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<({dims}) -> ({m})>" for m in self.maps)}],
              iterator_types = [{kinds}]}} ins({", ".join(n + "t" for n in names)} : {", ".join(types[:-1])})
              outs(%ot : {types[-1]}) {{
          ^bb0({", ".join(f"{n}: {self.kind}" for n in [*names, "%o"])}):
            {self.lines}
            linalg.yield %r : {self.kind}
          }} -> {types[-1]}
          return %y : {types[-1]}
        }}"""


PRODUCT = "%m = arith.muli %a, %b : i32\n%r = arith.addi %o, %m : i32"
MATMUL = (("d0, d2", "d2, d1", "d0, d1"), ((3, 4), (4, 2), (3, 2)))
VECTOR = (("d0, d1", "d0"), ((3, 4), (3,)))
CASES = {
    "matmul": Case("ppr", *MATMUL, PRODUCT, (0, 1, 2), (0, 1)),
    "matmul_f64": Case("ppr", *MATMUL, PRODUCT.replace("i ", "f ").replace("i32", "f64"), (0, 1, 2), (0, 1), "f64"),
    "fma": Case("ppr", *MATMUL, "%r = math.fma %a, %b, %o : f64", (0, 1, 2), (0, 1), "f64"),
    "batched": Case(
        "pppr",
        ("d0, d1, d3", "d0, d3, d2", "d0, d1, d2"),
        ((2, 3, 4), (2, 4, 2), (2, 3, 2)),
        PRODUCT,
        (0, 1, 2, 3),
        (0, 1),
    ),
    "gated": Case(
        "prr",
        ("d0, d1", "d1, d2", "d0, d2", "d0"),
        ((3, 4), (4, 2), (3, 2), (3,)),
        "%m = arith.muli %a, %b : i32\n%g = arith.muli %m, %c : i32\n%r = arith.addi %g, %o : i32",
        (0, 1, 2),
        (0, 1, 2),
    ),
    "differences": Case("pr", *VECTOR, "%r = arith.subi %o, %a : i32", (0, 1), (0,)),
    "alternating": Case("pr", *VECTOR, "%r = arith.subi %a, %o : i32", (0,)),
    "largest": Case("pr", *VECTOR, "%r = arith.maxsi %o, %a : i32", (0, 1)),
    "sum_of_squares": Case("pr", *VECTOR, "%m = arith.muli %a, %a : i32\n%r = arith.addi %o, %m : i32", (0, 1), (0,)),
    "sum_of_next": Case(
        "pr",
        *VECTOR,
        "%one = arith.constant 1 : i32\n%m = arith.addi %a, %one : i32\n%r = arith.addi %o, %m : i32",
        (0, 1),
    ),
    "steps": Case(
        "pr",
        *VECTOR,
        "%two = arith.constant 2 : i32\n%m = arith.muli %o, %two : i32\n%r = arith.addi %m, %a : i32",
        (0,),
    ),
    "both_kinds": Case("pr", *VECTOR, "%m = arith.addi %o, %a : i32\n%r = arith.muli %m, %a : i32", (0,)),
    "twice": Case("pr", *VECTOR, "%m = arith.addi %o, %a : i32\n%r = arith.addi %m, %o : i32", (0,)),
    "last": Case("pr", *VECTOR, "%r = arith.addi %a, %a : i32", (0,)),
    "index": Case(
        "pr",
        *VECTOR,
        "%i = linalg.index 1 : index\n%n = arith.index_cast %i : index to i32\n"
        "%m = arith.muli %a, %n : i32\n%r = arith.addi %o, %m : i32",
        (0,),
        (0,),
    ),
    "convolution": Case("ppr", ("d0 + d2, d1", "d2, d1", "d0, d1"), ((5, 2), (3, 2), (3, 2)), PRODUCT, (1,), (0, 1)),
    "diagonal": Case("pr", ("d0, d0, d1", "d0"), ((3, 3, 4), (3,)), "%r = arith.addi %o, %a : i32", (0, 1), (0,)),
    "elementwise": Case("pp", ("d0, d1", "d1, d0"), ((3, 4), (4, 3)), "%r = arith.addi %a, %a : i32", (0, 1)),
    "masks": Case("pr", *VECTOR, "%r = arith.ori %o, %a : i32", (0, 1), (0,)),
}


def arrays(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    dtype = np.int32 if case.kind == "i32" else np.float64
    return [rng.integers(1, 9, shape).astype(dtype) for shape in case.shapes]


def sizes(case: Case) -> list[int]:
    """Of the loops, from bare indices; convolution's window has its own operand."""
    found = {}
    for access, shape in zip(case.maps, case.shapes, strict=True):
        found.update(
            {int(e.strip()[1:]): size for e, size in zip(access.split(","), shape, strict=True) if "+" not in e}
        )
    return [found[loop] for loop in range(len(case.loops))]


def permuted(case: Case, values: list[np.ndarray], loop: int, order: tuple[int, ...]) -> list[np.ndarray]:
    """Every operand with the loop's indices in another order, where they are an index of it."""
    result = []
    for access, value in zip(case.maps, values, strict=True):
        for dim, expr in enumerate(access.split(",")):
            if expr.strip() == f"d{loop}":
                value = np.take(value, order, axis=dim)
        result.append(value)
    return result


@pytest.mark.parametrize("name", CASES)
def test_axes(name: str) -> None:
    case, values = CASES[name], arrays(CASES[name])
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(case.text())
        (op,) = walk(module.operation, "linalg.generic")
        axes = pit_axes(op)
        (plain,) = reference.run(module, "main", values)
        assert tuple(axis.loop for axis in axes) == case.axes
        for loop, size in enumerate(sizes(case)):
            holds = True
            for order in itertools.permutations(range(size)):
                *_, expected = permuted(case, [*values[:-1], plain], loop, order)
                (result,) = reference.run(module, "main", permuted(case, values, loop, order))
                holds &= np.array_equal(result, expected)
            assert holds or loop not in case.axes, f"loop {loop} is no PIT-axis"
            assert loop in case.axes or not holds, f"loop {loop} is refused, but is one"


@pytest.mark.parametrize("name", CASES)
def test_zeros_that_absorb(name: str) -> None:
    """Slices of zeros are skipped: the accumulator stays as it was, whatever the other operands hold."""
    case, values = CASES[name], arrays(CASES[name])
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(case.text())
        (op,) = walk(module.operation, "linalg.generic")
        inputs = range(len(values) - 1)
        assert tuple(at for at in inputs if annihilates(op, at)) == case.zeros
        assert not annihilates(op, len(values) - 1)
        for at in case.zeros:
            zeroed = [np.zeros_like(v) if i == at else v for i, v in enumerate(values)]
            (result,) = reference.run(module, "main", zeroed)
            np.testing.assert_array_equal(result, values[-1])


def test_sparse_axes() -> None:
    """Of a product: along which loops zeros of the left operand may be left out, and where the right one goes along."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(CASES["matmul"].text())
        (op,) = walk(module.operation, "linalg.generic")
        rows, terms = sparse_axes(op, 0)
        assert (rows.loop, rows.reduces, rows.dims) == (0, False, ((0,), (), (0,)))
        assert (terms.loop, terms.reduces, terms.dims) == (2, True, ((1,), (0,), ()))
        largest = ir.Module.parse(CASES["largest"].text())
        (op,) = walk(largest.operation, "linalg.generic")
        assert sparse_axes(op, 0) == []
        assert len(maps(op)) == len(body(op).arguments)
