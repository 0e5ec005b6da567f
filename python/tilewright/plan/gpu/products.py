# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of matrix products and convolutions: which loops are rows, lanes and depth, and their sizes.

A convolution is a product as it stands (implicit GEMM): its rows are places of the image, loops over the window stand
around the loop over channels, and a tile of the image is loaded for each place of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.ir import decisions
from tilewright.ir.generics import constant_of, maker
from tilewright.ir.structure import Access, Kind, LinalgOp, index_terms, is_element, sizes_of
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.plan.cost.gemm import Packed, Problem, has_unit, split_rows
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.cost.gemm_time import Choice, choose, raster
from tilewright.plan.cost.kernel import FREE, INSTRUCTIONS
from tilewright.plan.cost.tiling import GpuTiling
from tilewright.plan.gpu.allow_tf32 import ATTRIBUTE
from tilewright.plan.gpu.tiles import ROW, Given, make_tiling
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, lane_of, power_of_two, read_only_by
from tilewright.plan.model.traffic import element, element_bytes, tensor_bytes

_PRODUCTS = ("arith.mulf", "arith.muli")
#: Fewer rows or columns than this leave a product to vectors: a tile of them would be nearly empty.
_LEAST = 2
#: Elements of a product among others that four warps hold.
_MANY = 4096
#: Channels of a head that tiles of a loop over keys hold at once.
_WHOLE = 256


@dataclass(frozen=True)
class Roles:
    """The loops of a product of tiles.

    Attributes:
        rows: parallel loops of the one operand only, the one to tile first first.
        lane: a parallel loop of the other operand only.
        depth: a reduced loop of both.
        row_operand: which input has the rows.
    """

    rows: tuple[int, ...]
    lane: int
    depth: int
    row_operand: int


def find_roles(nest: Nest) -> Roles | None:
    """The roles of the loops of a contraction; None where it is no product of tiles."""
    op = nest.root
    if op.kind is not Kind.CONTRACTION or op.tables or nest.gathers or not _has_unit(op):
        return None
    own = [_own_loops(op, number) for number in (0, 1)]
    if any(prod(op.extents[d] for d in loops) < _LEAST for loops in own):
        return None
    lane = lane_of(op, op.output)
    lane_operand = 0 if lane in own[0] else 1
    if lane not in own[lane_operand] or op.extents[lane] < _LEAST:
        lane_operand = 0 if len(own[0]) == 1 else 1
        lane = max(own[lane_operand], key=lambda d: (min(op.extents[d], 64), d))
    rows = _rows(op, own[1 - lane_operand])
    depth = _depth(nest, [rows[0], lane])
    return None if depth is None else Roles(rows, lane, depth, 1 - lane_operand)


def _own_loops(op: LinalgOp, number: int) -> list[int]:
    """Parallel loops with several points that one operand alone depends on."""
    own, other = op.inputs[number].loops, op.inputs[1 - number].loops
    return [d for d in op.parallel if d in own and d not in other and op.extents[d] > 1]


def _rows(op: LinalgOp, loops: list[int]) -> tuple[int, ...]:
    """The loops that rows are taken from: neighbours in the result first."""
    order = [d for d in reversed(op.output.dims) if d in loops]
    return tuple(order)  # type: ignore[arg-type]


def _depth(nest: Nest, tiled: list[int]) -> int | None:
    """The reduced loop with the most points, up to a tile's; of equal ones that which is contiguous."""
    op = nest.root
    both = op.inputs[0].loops & op.inputs[1].loops
    loops = [d for d in op.reductions if d in both and op.extents[d] > 1 and nest.fits(tiled, d)]
    ends = [access.dims[-1] for access in op.inputs[:2] if access.dims]
    return max(loops, key=lambda d: (min(op.extents[d], 32), ends.count(d), d), default=None)


def _has_unit(op: LinalgOp) -> bool:
    """Whether the body multiplies elements as they are or widened, of types that tiles are multiplied in."""
    result = element(op.output)
    if result in ("index", "i1") or result not in ("f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64"):
        return False
    if op.unpacks:
        return True
    block = op.op.regions[0].blocks[0]
    total = block.operations[len(block.operations) - 1].operands[0].owner
    terms = [v.owner for v in total.operands if not isinstance(v, ir.BlockArgument)]
    product = next((t for t in terms if t.name in _PRODUCTS), None)
    return product is not None and all(is_element(v) for v in product.operands)


def problem_of(nest: Nest, roles: Roles) -> Problem:
    """The product that a nest is."""
    op = nest.root
    extents = op.extents
    rows = row_loops(nest, roles)
    own = {*rows, roles.lane, roles.depth}
    image = op.inputs[roles.row_operand]
    matrices = _matrices(nest, rows, roles.lane)
    outer = prod(extents[d] for d in op.reductions if d not in own)
    read = prod(extents[d] for d in image.loops)
    return Problem(
        rows=prod(extents[d] for d in rows),
        lanes=extents[roles.lane],
        depth=extents[roles.depth],
        outer=outer,
        batch=prod(extents[d] for d in op.parallel if d not in own),
        kind="tf32" if ATTRIBUTE in op.op.attributes else element(op.inputs[0]),
        out_bytes=element_bytes(nest.members[-1].result),
        streams=all(streams(access) for access in op.inputs[:2]),
        deep=all(access.dims and access.dims[-1] == roles.depth for access in op.inputs[:2]),
        functions=any(_has_functions(member) for member in nest.members if member != op),
        stores=_stores_boxes(nest),
        adds=sum(element_bytes(access.value) for access in matrices),
        fetches=all(streams(access) for access in matrices),
        places=tuple(extents[d] for d in rows),
        overlap=1.0 if image.pure else min(max(read / prod(sizes_of(image.value)), 1.0), float(outer)),
        neighbours=nest.fits([roles.lane, roles.depth], rows[0]),
        strided=_is_strided(image, rows),
        open_rows=tuple(d in op.dynamic for d in rows),
        open_lanes=roles.lane in op.dynamic,
        packed=_packed(op, roles) if op.unpacks else None,
        promotion=decisions.PROMOTION.get(op.op) or 0,
        behind=tuple(name for member in nest.members if member != op for name in _computed(member)),
        # CTAs that wait for the sums of others are none of a kernel that runs a loop or a branch.
        may_stream_k=not (op.dynamic or op.unpacks or op.is_controlled) and _begins_with_zeros(op),
    )


def _computed(op: LinalgOp) -> list[str]:
    """Names of the operations that a body computes an element with; what converts goes with loads and stores."""
    names = [inner.operation.name for inner in op.op.regions[0].blocks[0].operations]
    return [name for name in names if name not in FREE and name not in ("arith.truncf", "arith.extf")]


def _begins_with_zeros(op: LinalgOp) -> bool:
    """Whether sums may be taken in parts, each of which begins as the whole does."""
    start = maker(op.output.value)
    return start is not None and start.name == "linalg.fill" and constant_of(start.operands[0]) == 0


def _packed(op: LinalgOp, roles: Roles) -> Packed:
    """How the operand lies in memory that the body makes of the second operand and those behind it."""
    small, *others = op.inputs[1:]
    held = sum(tensor_bytes(access.value) for access in (small, *others))
    block = op.op.regions[0].blocks[0]
    made, instructions, conversions = {block.arguments[1]}, 0.0, 0.0
    for step in block.operations:
        if any(value in made for value in step.operands) and step.results:
            made.add(step.operation.results[0])
            instructions += _instructions(step.operation)
            conversions += _conversions(step.operation)
    own = 3 if element_bytes(op.inputs[0].value) == 2 else 2  # steps of any product: units widen, multiply and add
    return Packed(
        lanes=roles.row_operand == 0,
        bytes=held / prod(sizes_of(small.value)),
        instructions=max(instructions - own, 0.0),
        conversions=conversions,
        blocks=any(access.loops & op.reductions for access in others),
    )


def _is_of_bytes(op: ir.Operation) -> bool:
    return op.name in ("arith.sitofp", "arith.uitofp") and str(op.operands[0].type) == "i8"


def _instructions(op: ir.Operation) -> float:
    """Instructions of vector units for an element: bytes become floats by a permutation (at half rate) and a sum."""
    if _is_of_bytes(op):
        return 1.5 if isinstance(op.results[0].type, ir.F16Type) else 3.0
    return 0.0 if _conversions(op) else 1.0


def _conversions(op: ir.Operation) -> float:
    """Instructions that convert, two numbers at a time where these become narrower."""
    if op.name == "arith.truncf":
        return 0.5
    return 1.0 if op.name in ("arith.sitofp", "arith.uitofp") and not _is_of_bytes(op) else 0.0


def _is_strided(image: Access, rows: Sequence[int]) -> bool:
    """Whether neighbouring rows are no neighbours in the operand that has them."""
    terms = [index_terms(expr) for expr in image.map.results]
    return any(found is None or any(found.get(d, 0) not in (0, 1) for d in rows) for found in terms)


def row_loops(nest: Nest, roles: Roles) -> tuple[int, ...]:
    """The loops of rows that one tile may extend along: no two of them move along one dimension of an operand."""
    tiled = {roles.lane, roles.depth}
    found = []
    for loop in roles.rows:
        if nest.fits(tiled, loop):
            found.append(loop)
            tiled.add(loop)
    return tuple(found) or roles.rows[:1]


def _stores_boxes(nest: Nest) -> bool:
    """Whether TMA can store the results: one tensor of elements of 1 to 4 bytes, its rows at multiples of 16."""
    results = [op for op in nest.members if not read_only_by(op, nest.members)]
    return len(results) == 1 and element_bytes(results[0].result) <= 4 and streams(results[0].output)


def _matrices(nest: Nest, rows: Sequence[int], lane: int) -> list[Access]:
    """The tensors with rows and lanes of the product that what follows it reads, each once."""
    made = {member.result for member in nest.members}
    found: dict[ir.Value, Access] = {}
    for op, loops in nest.bindings.items():
        for access in op.inputs:
            own = {loops[d] for d in access.loops if d in loops}
            if op != nest.root and access.value not in made and lane in own and own & set(rows):
                found[access.value] = access
    return list(found.values())


def _has_functions(op: LinalgOp) -> bool:
    names = [step.operation.name for step in op.op.regions[0].blocks[0].operations]
    return any(name.startswith("math.") and name not in INSTRUCTIONS for name in names)


def streams(access: Access) -> bool:
    """Whether rows of an operand start at multiples of 16 bytes, and its elements lie side by side."""
    if not access.dims or access.dims[-1] is None or is_slice(access.value):
        return False
    size = ir.RankedTensorType(access.value.type).shape[-1]
    return size > 0 and size * element_bytes(access.value) % 16 == 0


def is_slice(value: ir.Value) -> bool:
    """Whether a tensor may be part of another one, with its strides."""
    while not isinstance(value, ir.BlockArgument):
        owner = value.owner
        if owner.name == "tensor.extract_slice":
            return True
        if owner.name not in (*RESHAPES, "tensor.pad"):
            return False
        value = owner.operands[0]
    return False


def default_shape(op: LinalgOp) -> Shape:
    """A shape that any GPU from compute capability 8.0 on has registers and shared memory for."""
    kind = element(op.inputs[0])
    if kind in ("f32", "f64", "i64", "i32"):
        return Shape(64, 64, 16, 4)
    return Shape(64, 64, 64 if kind.startswith(("i8", "f8")) else 32, 4)


def _add_rows(nest: Nest, roles: Roles, shape: Shape, tile: dict[int, int], given: Given | None) -> None:
    """Extend a tile by rows: as fits them best; or to those of its task, the first loop first."""
    extents = nest.root.extents
    if given is None:
        loops = row_loops(nest, roles)
        sizes = split_rows(tuple(extents[d] for d in loops), shape.rows)
        tile.update((loop, size) for loop, size in zip(loops, sizes, strict=True) if size > 1)
        return
    rows = prod(tile[d] for d in roles.rows if d in tile)
    for loop in roles.rows:
        if rows < shape.rows and loop not in given.rows and nest.fits({*tile, roles.depth}, loop):
            tile[loop] = min(power_of_two(extents[loop]), shape.rows // rows)
            rows *= tile[loop]


def tile_product(nest: Nest, roles: Roles, shape: Shape, given: Given | None = None) -> GpuTiling:
    """The tiling of a product of tiles of a given shape; loops with fewer points have smaller tiles."""
    op = nest.root
    tile: dict[int, int] = {}
    if given is not None:
        for loop, size in [*given.rows.items(), *given.steps.items()]:
            if size > 1 and loop in (*roles.rows, roles.lane, roles.depth):
                tile[loop] = power_of_two(size)
        held = prod(tile[d] for d in roles.rows if d in tile)
        if given.steps:  # what the loop over blocks carries, and what it meets, is whole
            shape = replace(shape, lanes=_WHOLE, depth=_WHOLE)
        else:  # rows that fit into registers stay there
            shape = replace(shape, lanes=max(shape.lanes, min(ROW // max(held, 1), _WHOLE)))
    if roles.lane not in tile:
        tile[roles.lane] = min(power_of_two(op.extents[roles.lane]), shape.lanes)
    _add_rows(nest, roles, shape, tile, given)
    if roles.depth not in tile:
        tile[roles.depth] = min(power_of_two(op.extents[roles.depth]), shape.depth)
    tiling = make_tiling(op, tile, given)
    tiling.depth, tiling.warps = roles.depth, shape.warps
    if given is not None and not given.steps and prod(tiling.register[d] for d in (*roles.rows, roles.lane)) > _MANY:
        tiling.warps = 2 * shape.warps  # sums of one product beside those of another, and what follows them
    window = [d for d in sorted(op.reductions) if d != roles.depth]
    others = [d for d in op.parallel if d not in roles.rows and d != roles.lane]
    tiling.order = [*others, *reversed(roles.rows), roles.lane, *window, roles.depth]
    return tiling


def _cluster(nest: Nest, roles: Roles, problem: Problem, shape: Shape) -> str:
    """CTAs of a cluster along each loop, as `tile.cluster`."""
    row = row_loops(nest, roles)[problem.paired(shape.rows) or 0]
    sizes = dict(zip((row, roles.lane), shape.cluster, strict=True))
    return f"array<i64: {', '.join(str(sizes.get(d, 1)) for d in range(nest.root.rank))}>"


def _marks(shape: Shape, problem: Problem, occupancy: int) -> dict[str, str]:
    """What a shape says of its kernel, as attributes."""
    marks = {
        decisions.STAGES: f"{shape.stages} : i64" if shape.stages > 1 else "",
        decisions.SPECIALIZED: "unit" if shape.wgmma else "",
        decisions.OCCUPANCY: f"{occupancy} : i64" if shape.wgmma or shape.stream_k else "",
        decisions.STAGED: f"{shape.boxes(problem)} : i64" if shape.boxes(problem) else "",
        decisions.FETCHED: "unit" if shape.fetched else "",
        decisions.PERSISTENT: f"{occupancy} : i64" if shape.persistent else "",
        decisions.STREAM_K: f"{shape.stream_k} : i64" if shape.stream_k else "",
    }
    return {name: value for name, value in marks.items() if value}


def _choose(problem: Problem, gpu: Gpu, number: int, controlled: bool) -> Choice | None:
    """The shape with the least predicted time, or a later one.

    In a loop or a branch the launch counts, too: CTAs of clusters are none of a kernel that runs loops itself, so they
    must save more than a launch takes beside a meeting of all CTAs.
    """
    choice = choose(problem, gpu, number)
    if choice is None or not (controlled and choice.shape.clustered):
        return choice
    alone = choose(replace(problem, may_cluster=False), gpu, number)
    launch = gpu.device.rate("launch") - gpu.device.rate("grid.barrier")
    if alone is None or alone.prediction.seconds - choice.prediction.seconds > launch:
        return choice
    return alone


def choose_product(nest: Nest, roles: Roles, gpu: Gpu, number: int = 0) -> GpuTiling:
    """The tiling of a product that is alone in its task: the shape with the least predicted time, or a later one."""
    problem = problem_of(nest, roles)
    choice = _choose(problem, gpu, number, nest.root.is_controlled)
    if choice is None:
        return tile_product(nest, roles, default_shape(nest.root))
    tiling = tile_product(nest, roles, choice.shape)
    tiling.marks[decisions.PREDICTION] = choice.attribute()
    tiling.marks |= _marks(choice.shape, problem, choice.prediction.occupancy)
    if gpu.hopper and not choice.shape.wgmma and has_unit(problem, gpu):
        # wgmma could take some of these, with another number of registers
        tiling.marks[decisions.UNIT] = '"mma"'
    if choice.shape.clustered:
        tiling.marks[decisions.CLUSTER] = _cluster(nest, roles, problem, choice.shape)
    band = raster(problem, choice.shape, choice.prediction.occupancy * gpu.units)
    cut = [d for d in roles.rows if tiling.task[d] < nest.root.extents[d]]
    if band > 1 and len(cut) == 1 and cut[0] == roles.rows[0]:
        tiling.marks[decisions.RASTER] = f"{band} : i64"
    return tiling
