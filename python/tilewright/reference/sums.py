# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the inner dimension of a product, as one product.

A kernel sums a product in steps: `scf.for` loads a few columns of one operand and as many rows of the other, and adds
their `tile.mma` to what it carries, several times in one round. One step is little work, so a whole model would take
minutes. Where a loop does nothing else (prefetches aside), all its columns and rows are loaded at once, and multiplied
at once; sums are in another order then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.program import Node
from tilewright.reference.registry import HANDLERS
from tilewright.reference.tile_access import Pattern, access_by

_INVARIANT = ("arith.constant", "affine.apply")
_WITHOUT_RESULT = ("memref.prefetch", "memref.collapse_shape")


@dataclass(frozen=True)
class Panel:
    """A load in the loop, which dimension of its tile the loop's counter runs along, and how far behind the counter."""

    node: Node
    along: int
    shape: tuple[int, ...]
    pattern: Pattern
    shift: int

    @property
    def width(self) -> int:
        """How many of the loop's values one load takes."""
        return self.shape[self.along]

    def follows(self, first: Panel, number: int, made: dict[int, Node]) -> bool:
        """Whether it is the load of `first`, `number` steps later."""
        mine, others = (panel.node.groups(panel.node.operands) for panel in (self, first))
        position = self.pattern.dims[self.along]
        same = mine[0] == others[0] and self.pattern == first.pattern and self.shape == first.shape
        offsets = zip(mine[1], others[1], strict=True)
        return (
            same
            and self.shift == number * first.width
            and all(_is_same(a, b, made) for d, (a, b) in enumerate(offsets) if d != position)
        )


@dataclass(frozen=True)
class Product:
    """`tile.mma` in the loop, with the loads of its two operands."""

    node: Node
    left: Panel
    right: Panel


@dataclass(frozen=True)
class SumLoop:
    """A loop that sums products: the step that it must have, what it computes, and what each product is added to."""

    step: int
    invariant: tuple[Node, ...]
    products: tuple[Product, ...]


def sum_loop(loop: Node) -> SumLoop | None:
    """Return what an `scf.for` sums, or None where it does anything else."""
    return loop.once("sum", lambda: _sum_loop(loop))


def _sum_loop(loop: Node) -> SumLoop | None:
    *nodes, ending = loop.body.nodes
    counter, *carried = loop.body.arguments
    made = {number: node for node in nodes for number in node.results}
    kinds = {node.name for node in nodes}
    if "tile.mma" not in kinds or not kinds <= {*_INVARIANT, *_WITHOUT_RESULT, "tile.load", "tile.mma"}:
        return None
    products, steps = [], set()
    for number, accumulator in zip(ending.operands, carried, strict=True):
        chain = _chain(made.get(number), accumulator, counter, made)
        if not chain:
            return None
        products.append(chain[0])
        steps |= {len(chain) * panel.width for panel in (chain[0].left, chain[0].right)}
    varies = {counter, *carried}.union(*(node.results for node in nodes if node.name not in _INVARIANT))
    invariant = []
    for node in nodes:
        if node.name in _INVARIANT and not varies.intersection(node.operands):
            invariant.append(node)
        elif node.name in _INVARIANT:
            varies.update(node.results)
    used = {n for p in products for panel in (p.left, p.right) for n in _fixed_operands(panel)}
    return SumLoop(steps.pop(), tuple(invariant), tuple(products)) if len(steps) == 1 and not used & varies else None


def _fixed_operands(panel: Panel) -> list[int]:
    (memory,), offsets, *_ = panel.node.groups(panel.node.operands)
    position = panel.pattern.dims[panel.along]
    return [memory, *(offset for d, offset in enumerate(offsets) if d != position)]


def _chain(last: Node | None, accumulator: int, counter: int, made: dict[int, Node]) -> list[Product]:
    """Return the products that one round adds to ``accumulator``, in order; none where it does anything else."""
    chain: list[Product] = []
    while True:
        product = _product(last, counter, made)
        if product is None:
            return []
        chain.insert(0, product)
        if product.node.operands[2] == accumulator:
            break
        last = made.get(product.node.operands[2])
    first = chain[0]
    fits = all(
        p.left.follows(first.left, u, made) and p.right.follows(first.right, u, made) for u, p in enumerate(chain)
    )
    return chain if fits else []


def _product(mma: Node | None, counter: int, made: dict[int, Node]) -> Product | None:
    """Return a product with its loads; only of wide floats: others are rounded at each step."""
    if mma is None or mma.name != "tile.mma" or len(mma.operands) != 3:
        return None
    dtype = types.dtype_of(mma.result_type())
    if types.is_float(dtype) and dtype.itemsize < 4:
        return None
    left = _panel(made.get(mma.operands[0]), counter, made, -1)
    right = _panel(made.get(mma.operands[1]), counter, made, -2)
    return None if left is None or right is None else Product(mma, left, right)


def _is_same(a: int, b: int, made: dict[int, Node]) -> bool:
    """Whether two values of the loop are the same one, computed twice or not."""
    if a == b:
        return True
    one, other = made.get(a), made.get(b)
    if one is None or other is None or one.name not in _INVARIANT:
        return False
    operands = zip(one.operands, other.operands, strict=False)
    return (
        one.name == other.name
        and dict(one.op.attributes) == dict(other.op.attributes)
        and len(one.operands) == len(other.operands)
        and all(_is_same(c, d, made) for c, d in operands)
    )


def _shift(number: int, counter: int, made: dict[int, Node]) -> int | None:
    """How much is added to the counter in a value; None where it is anything else."""
    if number == counter:
        return 0
    node = made.get(number)
    if node is None or node.name != "affine.apply":
        return None
    total, shift = node.op.attributes["map"].value.results[0], 0
    if isinstance(total, ir.AffineAddExpr) and isinstance(total.rhs, ir.AffineConstantExpr):
        total, shift = total.lhs, total.rhs.value
    plain = isinstance(total, ir.AffineDimExpr) and node.operands[total.position] == counter
    return shift if plain else None


def _panel(load: Node | None, counter: int, made: dict[int, Node], along: int) -> Panel | None:
    if load is None or load.name != "tile.load":
        return None
    (memory,), offsets, indices, valid, pad = load.groups(load.operands)
    shape = types.shape_of(load.result_type())
    rank = len(types.shape_of(load.operand_type(0)))
    pattern = Pattern.read(load, rank, len(shape))
    along %= len(shape)
    plain = not indices and not valid and not pad and set(pattern.steps) == {1} and memory not in made
    plain = plain and load.attribute("bounded") is None  # which reads zeros outside of memory
    shifts = [_shift(offset, counter, made) for offset in offsets]
    runs = [d for d, shift in enumerate(shifts) if shift is not None]
    if not plain or len(runs) != 1:
        return None
    if shape[along] == 1 and runs[0] not in pattern.dims:  # one row of each of many matrices
        dims = [runs[0] if t == along else d for t, d in enumerate(pattern.dims)]
        pattern = Pattern.of(dims, pattern.steps, rank)
    return Panel(load, along, shape, pattern, shifts[runs[0]] or 0) if pattern.dims[along] == runs[0] else None


def summed(frame: Any, loop: Node, plan: SumLoop, values: dict[int, Any]) -> list[Any]:
    """Return what the loop leaves; ``values`` holds what it reads, its bounds and initial values included.

    Raises:
        InterpreterError: a load reaches outside of its memory.
    """
    lower, upper, _, *start = (values[number] for number in loop.operands)
    for node in plan.invariant:
        values[node.results[0]] = HANDLERS[node.name](frame, node, *(values[number] for number in node.operands))
    results = []
    for product, initial in zip(plan.products, start, strict=True):
        operands = [_wide(panel, values, int(lower), int(upper)) for panel in (product.left, product.right)]
        results.append(HANDLERS["tile.mma"](frame, product.node, *operands, initial))
    return results


def _wide(panel: Panel, values: dict[int, Any], lower: int, upper: int) -> Any:
    """Load all that the loop loads, one after the other along the counter's dimension."""
    (memory,), offsets, *_ = panel.node.groups(panel.node.operands)
    position = panel.pattern.dims[panel.along]
    start = [lower if d == position else values[number] for d, number in enumerate(offsets)]
    shape = tuple(upper - lower if t == panel.along else n for t, n in enumerate(panel.shape))
    return access_by(panel.pattern, values[memory], shape, start, (), ()).read()
