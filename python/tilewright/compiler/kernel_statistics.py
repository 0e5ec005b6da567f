# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the report tells of the IR: groups after `plan`, kernels and their cost after `tile`, scratch after `lower`.

Work is counted in the loop nests of layer 2: the float operations of the body (an exponential is one), times all loops.
For kernels without a group it is estimated from their text, where loops with bounds that are not constant count once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tilewright.compiler.kernel_traffic import element_bytes, kernel_traffic
from tilewright.ir import decisions
from tilewright.ir.constants import integer_constant, trip_count
from tilewright.ir.generics import nested
from tilewright.ir.units import symbol_of
from tilewright.mlir import ir
from tilewright.plan.cost.decide import prediction_of
from tilewright.plan.gpu.count_meetings import ATTRIBUTE as MEETINGS

if TYPE_CHECKING:
    from tilewright.devices import Device

_FLOATS = ("f32", "f64", "f16", "bf16")
_TEXT_LIMIT = 20_000
_COUNTED = ("arith.", "math.", "tile.reduce", "tile.scan")


def observe(found: dict[str, Any], phase: str, module: Any, device: Device | None = None) -> None:
    """Add to `found` what the module shows after a phase. Never fails a compilation: what is unknown is left out."""
    look = {"plan": _groups, "tile": _kernels, "schedule": _variants, "lower": _lowered}.get(phase)
    if look is not None:
        look(found, module)
    if phase == "tile" and device is not None:
        _traffic(found, module, device)


def _name(op: Any) -> str:
    return op.operation.name


def _function(module: Any, name: str) -> Any:
    return next((op for op in module.body.operations if symbol_of(op) == name), None)


def _walk(op: Any):
    """Yield all ops below `op`, outer ones first."""
    for region in op.operation.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child
                yield from _walk(child)


def location_of(op: Any) -> str:
    """The name of a model's node, or file and line of a program."""
    text = str(op.operation.location)
    if text.count('"') < 2:
        return ""
    name, place = text.split('"')[1:3]
    line = re.match(r":([1-9]\d*):\d+", place)
    return f"{name}:{line[1]}" if line else name


# Groups -------------------------------------------------------------------------------------------------------------


def _groups(found: dict[str, Any], module: Any) -> None:
    main = _function(module, "main")
    if main is None:
        return
    outermost = list(_outermost(main))
    found["groups"] = [_group(op) for op in outermost]
    makers = {result: i for i, op in enumerate(outermost) for result in op.operation.results}
    for group, op in zip(found["groups"], outermost, strict=True):
        group["from"] = sorted(set().union(*(_makers(value, makers, set()) for value in op.operation.operands)))


def _makers(value: Any, makers: dict[Any, int], seen: set[Any]) -> set[int]:
    """Return the groups whose results a value is made of, through what lies between groups (views, constants)."""
    if value in makers:
        return {makers[value]}
    if value in seen or not hasattr(value.owner, "name"):  # a block's argument
        return set()
    seen.add(value)
    owner = value.owner.operation
    behind = list(owner.operands)
    if owner.name.startswith("scf."):  # what a loop or a branch gives is made in it
        behind += [v for region in owner.regions for block in region.blocks for v in _last(block).operands]
    return set().union(*(_makers(operand, makers, seen) for operand in behind))


def _last(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _outermost(op: Any):
    """Yield the groups that lie in no other group; they may lie in loops."""
    for region in op.operation.regions:
        for block in region.blocks:
            for child in block.operations:
                if _name(child) == "tile.group":
                    yield child
                elif child.operation.regions:
                    yield from _outermost(child)


def _group(group: Any) -> dict[str, Any]:
    members = [op for op in _walk(group) if _name(op) not in ("tile.yield", "linalg.yield")]
    inner = [op for op in members if _name(op).startswith(("linalg.", "tile.group"))]
    return {
        "name": _text(group, decisions.KERNEL) or location_of(group),
        "level": _text(group, "level"),
        "results": [str(result.type) for result in group.operation.results],
        "ops": [_member(op, group) for op in inner],
        "gathers": any(_name(op) == "tensor.extract" for op in members),
        "flops": sum(generic_operations(op) for op in inner if _name(op) == "linalg.generic"),
    }


def generic_operations(op: Any) -> int:
    """Return the float operations of a loop nest: those of the body, times the sizes of all loops."""
    body = [child for child in _walk(op) if _name(child).startswith(("arith.", "math."))]
    floats = [child for child in body if child.operation.operands and _is_float(child.operation.operands[0].type)]
    total = len(floats)
    for size in _loop_sizes(op).values():
        total *= size
    return total


def _loop_sizes(op: Any) -> dict[int, int]:
    """Return the sizes of the loops, read from operands that are indexed by a loop alone."""
    sizes: dict[int, int] = {}
    for operand, attribute in zip(op.operation.operands, op.operation.attributes["indexing_maps"], strict=False):
        shape, _ = _shape(str(operand.type))
        for size, index in zip(shape, str(attribute).rpartition("->")[2].strip(" ()>").split(","), strict=False):
            loop = index.strip().removeprefix("d")
            if loop.isdigit():
                sizes[int(loop)] = size
    return sizes


def _is_float(kind: Any) -> bool:
    return _shape(str(kind))[1] in _FLOATS


def _text(op: Any, name: str) -> str:
    attributes = op.operation.attributes
    return str(attributes[name]).strip('"') if name in attributes else ""


def _depth(op: Any, group: Any) -> int:
    """How many groups lie between an op and the outermost one around it."""
    depth, parent = 0, op.operation.parent
    while parent is not None and parent.operation != group.operation:
        depth += _name(parent) == "tile.group"
        parent = parent.operation.parent
    return depth


def _member(op: Any, group: Any) -> dict[str, Any]:
    named = [entry for entry in op.operation.attributes if entry.startswith("tile.")]
    decided = {name: str(op.operation.attributes[name]) for name in named}
    if _name(op) == "tile.group":
        decided["level"] = _text(op, "level")
    body = [_name(inner) for inner in _walk(op) if _name(inner).startswith(("arith.", "math."))]
    results = ", ".join(str(result.type) for result in op.operation.results)
    return {
        "op": _name(op),
        "depth": _depth(op, group),
        "location": location_of(op),
        "results": results,
        "body": " ".join(body[:12]),
        "decisions": "; ".join(f"{name} = {value}" for name, value in decided.items()),
    }


# Kernels ------------------------------------------------------------------------------------------------------------


def _kernels(found: dict[str, Any], module: Any) -> None:
    found_kernels = [op for op in module.body.operations if _name(op) == "tile.kernel"]
    bodies = {symbol_of(op): op for op in found_kernels}
    ranks = {symbol_of(op): op.operation.attributes["grid_rank"].value for op in found_kernels}
    plans = {symbol_of(op): prediction_of(op) for op in found_kernels}
    kernels: dict[str, dict[str, Any]] = {}
    main = _function(module, "main")
    groups = found.get("groups", [])
    launches = list(_launches(main, 1)) if main is not None else []
    matched = groups if len(groups) == len(launches) else [None] * len(launches)
    for (op, trips), group in zip(launches, matched, strict=True):
        entry = _add_launch(kernels, op, trips, bodies, ranks)
        plan = plans.get(_callee(op), {})
        if "roofline_ns" in plan:  # planned for a GPU: the kernel as a whole
            entry["plan"] = plan
        if group is not None:
            group["kernel"] = _text(op, "kernel").lstrip("@")
            entry["predicted"] = _predicted(group)
            entry["flops"] = group["flops"]  # exact, where the kernel's text is an estimate
            if group["gathers"]:  # of a table, only the rows that are looked up move: about as many as come out
                sizes = [_bytes(shape) for shape in entry["shapes"]]
                entry["bytes"] = sum(sizes) - max(sizes) + sizes[-1]
    found["kernels"] = kernels
    found["kernel_text"] = {symbol_of(op): _cut(op.operation.get_asm(use_local_scope=True)) for op in found_kernels}


def _variants(found: dict[str, Any], module: Any) -> None:
    """Kernels that were made of others for other strides are described as these."""
    kernels, main = found.get("kernels", {}), _function(module, "main")
    for op in module.body.operations:
        origin = kernels.get(_text(op, decisions.VARIANT_OF))
        if origin is None or main is None:
            continue
        named = [trips for launch, trips in _launches(main, 1) if _callee(launch) == symbol_of(op)]
        kernels[symbol_of(op)] = {**origin, "launches": sum(named)}
        origin["launches"] -= sum(named)


def _callee(launch: Any) -> str:
    return _text(launch, "kernel").lstrip("@").strip('"')


def _traffic(found: dict[str, Any], module: Any, device: Device) -> None:
    caches = [(level.name, level.bytes) for level in device.levels if level.kind != "register"]
    for op in module.body.operations:
        entry = found.get("kernels", {}).get(symbol_of(op)) if _name(op) == "tile.kernel" else None
        if entry is not None:
            entry["moved"] = kernel_traffic(op, entry["grid"], caches)


def _predicted(group: dict[str, Any]) -> dict[str, int]:
    """What planning predicts for the nests of a group, added up: nanoseconds on one core and on all, by name."""
    total: dict[str, int] = {}
    for member in group["ops"]:
        text = member["decisions"].partition("tile.prediction = ")[2].partition("; tile.")[0]
        for name, value in re.findall(r"\b(ns|all_cores_ns) = (\d+)", text):
            total[name] = total.get(name, 0) + int(value)
    return total


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT].rpartition("\n")[0] + "\n..."


def _launches(op: Any, trips: int):
    for region in op.operation.regions:
        for block in region.blocks:
            for child in block.operations:
                if _name(child) == "tile.launch":
                    yield child, trips
                elif child.operation.regions:
                    yield from _launches(child, trips * _trips(child))


def _add_launch(
    kernels: dict[str, dict[str, Any]], op: Any, trips: int, bodies: dict[str, Any], ranks: dict[str, int]
) -> dict[str, Any]:
    callee = _callee(op)
    operands = list(op.operation.operands)
    bounds, others = operands[: ranks.get(callee, 0)], operands[ranks.get(callee, 0) :]
    grid = [integer_constant(operand) for operand in bounds]
    shapes = [str(operand.type) for operand in others]
    tasks: int | None = 1
    for bound in grid:
        tasks = tasks * bound if tasks is not None and bound is not None else None
    body = bodies.get(callee)
    work = 0 if body is None else _flops(body, [_shape(shape)[0] for shape in shapes])
    entry = kernels.setdefault(
        callee,
        {
            "launches": 0,
            "tasks": tasks,
            "grid": grid,
            "shapes": shapes,
            "flops": work * (tasks or 1),
            "element": "f32" if body is None else _multiplied(body),
            "bytes": sum(_bytes(shape) for shape in shapes),
            "locations": [],
        },
    )
    entry["launches"] += trips
    name = location_of(op)
    if name and name not in entry["locations"] and len(entry["locations"]) < 20:
        entry["locations"].append(name)
    return entry


def _trips(op: Any) -> int:
    trips = trip_count(op.operation) if _name(op) == "scf.for" else None
    return 1 if trips is None else trips


def _flops(op: Any, shapes: Sequence[Sequence[int]]) -> int:
    """Return the floating-point operations of one task of a kernel whose arguments have these sizes."""
    regions = [
        sum(
            _op_flops(child) + _kernel_trips(child, shapes) * _flops(child, shapes)
            for block in region.blocks
            for child in block.operations
        )
        for region in op.operation.regions
    ]
    return max(regions, default=0)  # of the branches of an `scf.if`, the costlier one


def _kernel_trips(op: Any, shapes: Sequence[Sequence[int]]) -> int:
    """Iterations of a loop, whose bounds may be sizes of the kernel's arguments."""
    if _name(op) != "scf.for":
        return 1
    first, end, step = (_known(op.operation.operands[i], shapes) for i in range(3))
    return 1 if first is None or end is None or not step else len(range(first, end, step))


def _known(value: Any, shapes: Sequence[Sequence[int]]) -> int | None:
    constant = integer_constant(value)
    if constant is not None or isinstance(value, ir.BlockArgument) or value.owner.name != "memref.dim":
        return constant
    source, dim = value.owner.operands[0], integer_constant(value.owner.operands[1])
    if dim is None or not isinstance(source, ir.BlockArgument) or _name(source.owner.owner) != "tile.kernel":
        return None
    return shapes[ir.BlockArgument(source).arg_number][dim]


def _multiplied(kernel: Any) -> str:
    """The element type that a kernel's products are of, whose rate is its peak; f32 where it has none."""
    products = (op for op in _walk(kernel) if _name(op) == "tile.mma")
    return next((_shape(str(op.operation.operands[0].type))[1] for op in products), "f32")


def _op_flops(op: Any) -> int:
    name = _name(op)
    operands = op.operation.operands
    if name == "tile.mma":
        (m, k), n = _shape(str(operands[0].type))[0], _shape(str(operands[1].type))[0][-1]
        return 2 * m * k * n
    if not name.startswith(_COUNTED) or name == "arith.constant" or not len(operands):
        return 0
    sizes, element = _shape(str(operands[0].type))
    return prod(sizes) if element in _FLOATS else 0


@functools.lru_cache(4096)
def _shape(kind: str) -> tuple[tuple[int, ...], str]:
    """Return the sizes (1 for dynamic ones) and the element type in the text of a shaped or scalar type."""
    inner = kind.partition("<")[2].partition(",")[0].rstrip(">") if "<" in kind else kind
    *sizes, element = inner.split("x") if inner not in ("index",) else ["index"]
    return tuple(int(size) if size.isdigit() else 1 for size in sizes), element


def _bytes(kind: str) -> int:
    sizes, element = _shape(kind)
    return element_bytes(element) * prod(sizes)


def _lowered(found: dict[str, Any], module: Any) -> None:
    _scratch(found, module)
    device = next((op for op in nested(module.operation) if op.name == "gpu.module"), None)
    if device is not None:
        kernels = nested(device)
        found["meetings"] = {
            symbol_of(op): op.attributes[MEETINGS].value for op in kernels if MEETINGS in op.attributes
        }


def _scratch(found: dict[str, Any], module: Any) -> None:
    found["scratch"] = {
        symbol_of(op): op.attributes[decisions.SCRATCH_BYTES].value
        for op in nested(module.operation)
        if decisions.SCRATCH_BYTES.on(op)
    }
