# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that leave most of a GPU idle are cut into parts that run at once, and a second, small kernel adds them.

Split-K (the simple form of stream-K; Osama et al., PPoPP 2023, section 2.2) as a rewrite of tensor operations: the
reduced loop becomes two, of which the outer one is parallel. No atomic operations, so results do not depend on the
order in which CTAs finish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import body, constant_of, create, iterator_types, kinds, maker, set_maps
from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.ir.target_info import device_of
from tilewright.ir.views import create_split, expansion
from tilewright.mlir import ir
from tilewright.passes import Pass, register, remark
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_time import choose, peak
from tilewright.plan.cost.gemv import gemv_seconds
from tilewright.plan.cost.roofline import launched, pays, transfer
from tilewright.plan.gpu.gemv import find_gemv
from tilewright.plan.gpu.products import Roles, find_roles, problem_of
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.implicit_padding import expand_inside, is_implicitly_padded
from tilewright.plan.model.nest import Nest
from tilewright.plan.model.traffic import tensor_bytes

#: Parts that a sum may be cut into.
_PARTS = (2, 4, 8, 16)
#: Points of the depth that a part of a product has, at least.
_LEAST_DEPTH = 64
#: Points of a part of another sum, at least, and parts for each multiprocessor, at most.
_LEAST_PART = 256
_MOST_PARTS = 4
#: Elements that start at a multiple of a transaction, whatever their type.
_ALIGNED = 32
#: Rows from which on fusion lets a sum, and what reads the tensor again with it (a softmax, a norm), share a task.
_ROWS = 16
#: How much longer than the best number of parts a smaller one may take.
_ALIKE = 1.02
#: What a combiner starts from, where the parts may start from it, too.
_NEUTRAL = {"arith.addf": 0.0, "arith.addi": 0, "arith.mulf": 1.0, "arith.muli": 1}
_IDEMPOTENT = frozenset(
    f"arith.{n}" for n in "maximumf minimumf maxnumf minnumf maxsi minsi maxui minui andi ori".split()
)
#: Generics that a product's operands are followed through.
_STEPS = 4


@dataclass(frozen=True)
class Cut:
    """A reduced loop, the parts that are tasks of their own, and points of each; a rest is summed besides."""

    loop: int
    parts: int
    size: int


@register
@dataclass(frozen=True)
class SplitK(Pass):
    """Cut sums with few tasks into parts that run at once, where the predicted time says that it pays.

    Before:
    ```mlir
    #i = affine_map<(i) -> (i)>
    #s = affine_map<(i) -> ()>
    func.func @main(%x: tensor<1048576xf32>) -> tensor<f32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<f32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
      %y = linalg.generic {indexing_maps = [#i, #s], iterator_types = ["reduction"]}
          ins(%x : tensor<1048576xf32>) outs(%f : tensor<f32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.addf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<f32>
      return %y : tensor<f32>
    }
    ```
    After:
    ```mlir
    %r = tensor.expand_shape %x [[0, 1]] output_shape [128, 8192] : tensor<1048576xf32> into tensor<128x8192xf32>
    ...
    %p = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "parallel"]}
        ins(%r : tensor<128x8192xf32>) outs(%g : tensor<128xf32>) attrs = {tile.apart} {
    ...
    %y = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["reduction"]}
        ins(%p : tensor<128xf32>) outs(%f : tensor<f32>) {
    ```
    """

    name: ClassVar[str] = "tile-split-k"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the reductions of each block."""
        gpu, weights = Gpu.of(device_of(op, self.name)), Weights()
        for block in blocks(op):
            cut = False
            for member in linalg_ops(block, weights):
                if not member.reductions or member.dynamic:
                    continue
                # What it reads may be the result of a sum that was cut, and is another value now.
                cut |= _visit(describe(member.op, member.position) if cut else member, gpu)


def _visit(op: LinalgOp, gpu: Gpu) -> bool:
    """Cut one sum, or say why one that had better be cut is not; whether it was cut."""
    if len(op.op.results) != 1:
        return False
    obstacle, found = _obstacle(op), _parts_of(op, gpu)
    if found is not None and obstacle is None:
        _split(op, found)
        return True
    if found is not None:
        remark(op.op, f"a sum of {op.extents[found.loop]} terms runs in few tasks, as {obstacle}")
    elif obstacle is None and (lost := _lost(op, gpu)) is not None:
        terms, whole, seconds, parts = lost
        times = f"predicted {whole * 1e6:.3g} us; in {parts} equal parts it would take {seconds * 1e6:.3g} us"
        remark(op.op, f"a sum of {terms} terms runs in few tasks, as no number of parts divides it ({times})")
    return False


def _obstacle(op: LinalgOp) -> str | None:
    """Why parts of the reduction cannot start from what the whole starts from; None where they can."""
    start = maker(op.output.value)
    if start is None or start.name != "linalg.fill":
        return "it goes on from another tensor"
    if op.tables:
        return "it reads elements at computed places"
    if any(inner.operation.name == "linalg.index" for inner in body(op.op).operations):
        return "it counts its own position"
    name, first = _combiner(op.op), constant_of(start.operands[0])
    if first is not None and (name in _IDEMPOTENT or _NEUTRAL.get(name) == first):
        return None
    return "its parts cannot begin with what it begins with"


def _combiner(op: ir.Operation) -> str:
    """The name of what adds a term."""
    operations = body(op).operations
    last = maker(operations[len(operations) - 1].operands[0])
    return last.name if last is not None and len(last.operands) == 2 else ""


def _parts_of(op: LinalgOp, gpu: Gpu) -> Cut | None:
    """How a sum is cut; None where it had better stay whole."""
    nest = Nest(op, [op], op.gathers)
    if op.kind is Kind.CONTRACTION:
        if _follows_maximum(op):
            return None
        roles = find_roles(nest)
        if roles is not None:
            return _parts_of_product(nest, roles, gpu)
    return _parts_of_gemv(nest, gpu)


def _parts_of_gemv(nest: Nest, gpu: Gpu) -> Cut | None:
    """The parts of a sum that reads a tensor once; None where a product makes that: attention has it in its loop.

    What is computed for the sum is then a tensor in memory, written and read.
    """
    op, gemv = nest.root, find_gemv(nest)
    if gemv is None:
        return None
    large = max(op.inputs, key=lambda a: prod(op.extents[d] for d in a.loops))
    loops = [d for d in op.reductions if _is_plain(op, d) and d in gemv.large.loops]
    points = prod(op.extents[d] for d in op.parallel)
    if not loops or (_is_generic(large) and _follows_product(op)) or (points >= _ROWS and _is_met_again(op, large)):
        return None
    loop = max(loops, key=lambda d: op.extents[d])
    whole = gemv_seconds(gemv, gpu)
    if whole is None:
        return None
    stored = _storing(large, gpu) if _is_generic(large) else 0.0
    row = gemv.large.width if loop == gemv.lane else 0
    extent = op.extents[loop]
    even = [(parts, extent // parts) for parts in _numbers_of_parts(extent, row, gpu)]
    # Parts of equal size, and a rest that is what the sum of these starts from: a kernel more.
    ragged = [] if is_implicitly_padded(large.value) or stored else _ragged_parts(extent, gpu)
    for sizes, more in ((even, stored), (ragged, _adding(points, 1, gpu))):
        times = []
        for parts, size in sizes:
            seconds = gemv_seconds(gemv.cut(loop, parts), gpu)
            if seconds is not None:
                times.append((seconds + more + _adding(points, parts, gpu), parts, size))
        least = min(times, default=(whole, 1, extent))[0]
        if pays(gpu.device, least, whole):
            return Cut(loop, *next(found[1:] for found in times if found[0] <= least * _ALIKE))
    return None


def _ragged_parts(extent: int, gpu: Gpu) -> list[tuple[int, int]]:
    """Numbers and sizes of parts that leave a rest, parts of whole transactions whatever their elements are."""
    numbers = (1 << bit for bit in range(1, (_MOST_PARTS * gpu.units).bit_length()))
    found = [(parts, extent // parts // _ALIGNED * _ALIGNED) for parts in numbers]
    return [(parts, size) for parts, size in found if size >= _LEAST_PART and parts * size < extent]


def _numbers_of_parts(extent: int, width: int, gpu: Gpu) -> list[int]:
    """Divisors of a loop's extent, each about twice the one before.

    Where neighbours along the loop lie side by side (`width`: bytes of an element), parts that start at multiples of 16
    bytes come first.
    """
    most = min(extent // _LEAST_PART, _MOST_PARTS * gpu.units)
    divisors = [parts for parts in range(2, most + 1) if extent % parts == 0]
    aligned = [parts for parts in divisors if extent // parts * width % 16 == 0] or divisors
    found: list[int] = []
    for parts in aligned:
        if not found or parts >= 2 * found[-1]:
            found.append(parts)
    return found


def _parts_of_product(nest: Nest, roles: Roles, gpu: Gpu) -> Cut | None:
    problem = problem_of(nest, roles)
    loop = roles.depth
    if in_blocks(problem):
        loop = next(d for d in nest.root.reductions if d != roles.depth and nest.root.extents[d] > 1)
    if not _is_plain(nest.root, loop):
        return None
    best, _ = best_parts(problem, gpu)
    return None if best is None else Cut(loop, best, nest.root.extents[loop] // best)


def in_blocks(problem: Problem) -> bool:
    """Whether a sum is one over blocks whose weights share scales: parts are some of these."""
    return problem.packed is not None and problem.packed.blocks and problem.outer > 1


def _part_of(problem: Problem, parts: int) -> Problem | None:
    """One of so many equal parts of a product, all of them in one grid; None where they are too small, or not equal."""
    cut = "outer" if in_blocks(problem) else "depth"
    extent = getattr(problem, cut)
    if extent % parts or extent // parts * (problem.depth if cut == "outer" else 1) < _LEAST_DEPTH:
        return None
    return replace(problem, batch=problem.batch * parts, out_bytes=4, **{cut: extent // parts})


def best_parts(problem: Problem, gpu: Gpu) -> tuple[int | None, float]:
    """Parts that a product's depth is cut into, None where it stays whole, and predicted seconds; 0: none are known."""
    whole = choose(problem, gpu)
    if whole is None:
        return None, 0.0
    pieces = [(parts, part) for parts in _PARTS if (part := _part_of(problem, parts)) is not None]
    now = whole.prediction.seconds
    least, parts = _fastest(problem, pieces, now, gpu)
    return (parts, least) if pays(gpu.device, least, now) else (None, now)


def _fastest(problem: Problem, pieces: Sequence[tuple[int, Problem]], now: float, gpu: Gpu) -> tuple[float, int]:
    """The least predicted seconds of some numbers of parts, sums of the parts included, and that number.

    Numbers that would not pay with units at their peak, beside what the whole takes `now`, are not looked at: each one
    has some hundred shapes to choose from.
    """
    points = problem.batch * problem.rows * problem.lanes
    least = problem.operations / (peak(problem, gpu) * gpu.units) + launched(gpu.device, 0)
    times = [
        (found.prediction.seconds + adding, parts)
        for parts, part in pieces
        if pays(gpu.device, least + (adding := _adding(points, parts, gpu)), now)
        and (found := choose(part, gpu)) is not None
    ]
    return min(times, default=(inf, 1))


def _lost(op: LinalgOp, gpu: Gpu) -> tuple[int, float, float, int] | None:
    """What a product would gain if a number of parts divided it: terms, seconds whole and in parts, and how many."""
    nest = Nest(op, [op], op.gathers)
    roles = find_roles(nest) if op.kind is Kind.CONTRACTION and not _follows_maximum(op) else None
    if roles is None or not _is_plain(op, roles.depth):
        return None
    problem = problem_of(nest, roles)
    whole = choose(problem, gpu)
    if whole is None:
        return None
    uneven = [(parts, problem.depth // parts) for parts in _PARTS if problem.depth % parts]
    pieces = [
        (parts, replace(problem, batch=problem.batch * parts, depth=depth, out_bytes=4))
        for parts, depth in uneven
        if depth >= _LEAST_DEPTH
    ]
    now = whole.prediction.seconds
    least, parts = _fastest(problem, pieces, now, gpu)
    return (problem.depth, now, least, parts) if pays(gpu.device, least, now) else None


def _adding(points: int, parts: int, gpu: Gpu) -> float:
    """Seconds of the kernel that adds the parts."""
    return transfer(gpu.device, "l2", points * 4 * (parts + 1)) + launched(gpu.device, 2)


def _is_met_again(op: LinalgOp, large: Access) -> bool:
    """Whether the sum is that of a chain: what reads it reads its operand, too, or the operand is made for it."""
    readers = [use.owner.operation for use in op.result.uses]
    return _is_generic(large) or any(value == large.value for reader in readers for value in reader.operands)


def _storing(access: Access, gpu: Gpu) -> float:
    """Seconds of the kernel that stores what would else be computed as it is read."""
    return 2 * tensor_bytes(access.value) / gpu.device.level("memory").bandwidth + launched(gpu.device, 0)


def _is_plain(op: LinalgOp, loop: int) -> bool:
    """Whether each operand is indexed by a loop alone, or not by it."""
    accesses = [access for access in op.inputs if loop in access.loops]
    return bool(accesses) and all(loop in access.dims and access.dims.count(loop) == 1 for access in accesses)


def _is_generic(access: Access) -> bool:
    made = maker(access.value)
    return made is not None and made.name == "linalg.generic"


def _follows_product(op: LinalgOp) -> bool:
    """Whether an operand is made of a product's result, as scores are."""
    front = [access.value for access in op.inputs]
    for _ in range(_STEPS):
        made = [m for value in front if (m := maker(value)) is not None and m.name.startswith(("linalg.", "tensor."))]
        if any(m.name == "linalg.generic" and describe(m, 0).kind is Kind.CONTRACTION for m in made):
            return True
        front = [value for m in made for value in m.operands]
    return False


def _follows_maximum(op: LinalgOp) -> bool:
    """Whether an operand is relative to a maximum: such a sum belongs to a loop over blocks of scores."""
    front = [access.value for access in op.inputs]
    for _ in range(_STEPS):
        made = [m for value in front if (m := maker(value)) is not None and m.name == "linalg.generic"]
        if any(_combiner(m) in ("arith.maximumf", "arith.maxnumf") and any(kinds(m)) for m in made):
            return True
        front = [value for m in made for value in list(m.operands)[:-1]]
    return False


def _split(op: LinalgOp, cut: Cut) -> None:
    """Cut a reduced loop into parts, the number of the part being a new, parallel loop."""
    old, loop, parts = op.op, cut.loop, cut.parts
    start = maker(op.output.value)
    assert start is not None
    rank, kind = op.rank, ir.RankedTensorType(old.results[0].type)
    with old.location, ir.InsertionPoint(old):
        front = [_part(access, loop, 0, parts * cut.size) for access in op.inputs]
        inputs = [
            expanded(value, access.dims.index(loop), parts) if loop in access.loops else value
            for value, access in zip(front, op.inputs, strict=True)
        ]
        made = ir.RankedTensorType.get([parts, *kind.shape], kind.element_type)
        empty = create("tensor.empty", [], made)
        place = start.clone(ir.InsertionPoint(old))
    place.operands[1] = empty
    place.results[0].set_type(made)
    partial = old.clone(ir.InsertionPoint(old))
    for number, value in enumerate([*inputs, place.results[0]]):
        partial.operands[number] = value
    partial.results[0].set_type(made)
    number = ir.AffineDimExpr.get(rank)
    new = []
    for access in (*op.inputs, op.output):
        results = []
        for expr, dim in zip(access.map.results, access.dims, strict=True):
            results += [number, expr] if dim == loop and access is not op.output else [expr]
        new.append(ir.AffineMap.get(rank + 1, 0, results))
    new[-1] = ir.AffineMap.get(rank + 1, 0, [number, *op.output.map.results])
    set_maps(partial.operation, new)
    decisions.APART.set(partial, ir.UnitAttr.get(old.context))
    partial.attributes["iterator_types"] = iterator_types([*kinds(old), False])
    total = _add(old, partial.results[0], _rest(op, loop, parts * cut.size))
    for use in list(old.results[0].uses):
        use.owner.operation.operands[use.operand_number] = total
    old.erase()


def _rest(op: LinalgOp, loop: int, first: int) -> ir.Value:
    """What the sum of the parts starts from: the sum of what lies behind them, if there is any."""
    if first == op.extents[loop]:
        return op.output.value
    with op.op.location, ir.InsertionPoint(op.op):
        inputs = [_part(access, loop, first, op.extents[loop] - first) for access in op.inputs]
        rest = op.op.clone(ir.InsertionPoint(op.op))
    for number, value in enumerate(inputs):
        rest.operands[number] = value
    decisions.APART.set(rest, ir.UnitAttr.get(op.op.context))
    return rest.results[0]


def _part(access: Access, loop: int, first: int, size: int) -> ir.Value:
    """What an operand has along some points of a loop: itself, where that is all."""
    if loop not in access.loops:
        return access.value
    kind, at = ir.RankedTensorType(access.value.type), access.dims.index(loop)
    if size == kind.shape[at]:
        return access.value
    sizes = [size if d == at else n for d, n in enumerate(kind.shape)]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([first if d == at else 0 for d in range(kind.rank)]),
        "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * kind.rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    return create("tensor.extract_slice", [access.value], ir.RankedTensorType.get(sizes, kind.element_type), attributes)


def expanded(value: ir.Value, at: int, parts: int) -> ir.Value:
    """An operand with two dimensions in the place of one: the part, and the place in it."""
    kind = ir.RankedTensorType(value.type)
    shape = [*kind.shape[:at], parts, kind.shape[at] // parts, *kind.shape[at + 1 :]]
    groups = [[d] if d < at else [d, d + 1] if d == at else [d + 1] for d in range(kind.rank)]
    if is_implicitly_padded(value):
        return expand_inside(value, ir.RankedTensorType.get(shape, kind.element_type), expansion(groups, shape))
    return create_split(value, groups, shape)


def _add(old: ir.Operation, partial: ir.Value, start: ir.Value) -> ir.Value:
    """The sum of all parts."""
    kind = ir.RankedTensorType(old.results[0].type)
    rank = kind.rank
    loops = [ir.AffineDimExpr.get(d) for d in range(rank + 1)]
    read = ir.AffineMap.get(rank + 1, 0, [loops[rank], *loops[:rank]])
    written = ir.AffineMap.get(rank + 1, 0, loops[:rank])
    with old.location, ir.InsertionPoint(old):
        op = ir.Operation.create(
            "linalg.generic",
            results=[kind],
            operands=[partial, start],
            attributes={
                "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (read, written)]),
                "iterator_types": iterator_types([False] * rank + [True]),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
            },
            regions=1,
        )
        element = kind.element_type
        block = op.regions[0].blocks.append(element, element)
        operations = body(old).operations
        combiner = maker(operations[len(operations) - 1].operands[0])
        assert combiner is not None
        inside = ir.InsertionPoint(block)
        total = combiner.clone(inside)
        total.operands[0], total.operands[1] = block.arguments[1], block.arguments[0]
        with inside:
            ir.Operation.create("linalg.yield", operands=[total.results[0]])
    return op.results[0]
