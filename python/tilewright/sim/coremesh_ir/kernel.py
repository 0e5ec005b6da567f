# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The body of a `coremesh.compute` as a function of arrays of all cores at once.

Each op means what the reference interpreter says. Elementwise ops and structured ones (`linalg`) run once, with cores
as one more parallel loop; a body with another op runs core by core, once for cores that have the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.core.arithmetic import COMPARISONS, CONVERSIONS, FUNCTIONS, TESTS
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.affine import Term
from tilewright.reference.machine import Frame, Machine, execute
from tilewright.reference.program import Node, Reader
from tilewright.reference.registry import HANDLERS
from tilewright.reference.upstream.linalg_ops import Structure, read_structure, structured

_ELEMENTWISE = frozenset({*FUNCTIONS, *TESTS, *CONVERSIONS, *COMPARISONS})

#: Shape and type of elements.
Tile = tuple[tuple[int, ...], np.dtype]


class Kernel:
    """A body, called with tiles ``[cores, *shape]``; returns those that it writes, of the same cores.

    A body that reads nothing gives one tile for all, ``[1, *shape]``.
    """

    def __init__(self, op: ir.Operation) -> None:
        own = op.clone(ip=False)  # lives as long as this object, whatever becomes of the module
        self.node, self._op = Reader().node(own), own
        self._frame = Frame(Machine(own))
        steps = [_batched(node) for node in self.node.body.nodes[:-1]]
        known = [step for step in steps if step is not None]
        self._steps = known if len(known) == len(steps) else None
        if self._steps is not None:  # not before: core by core, structures are as they are written
            for node, step in zip(self.node.body.nodes, self._steps, strict=False):
                if step is _structured:
                    _give_cores(node)

    def signature(self) -> tuple[list[Tile], list[Tile]]:
        """Tiles that it reads and writes."""
        body = self._op.regions[0].blocks[0]
        ending = body.operations[len(body.operations) - 1]
        reads, writes = ([_tile(value.type) for value in values] for values in (body.arguments, ending.operands))
        return reads, writes

    @property
    def is_batched(self) -> bool:
        """Whether all cores run at once."""
        return self._steps is not None

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Run the body.

        Raises:
            InterpreterError: an op is not known, or its operands have no meaning.
        """
        cores = len(tiles[0]) if tiles else 1
        if self._steps is None:
            return self._core_by_core(cores, tiles)
        values = dict(zip(self.node.body.arguments, tiles, strict=True))
        self._frame.values = values  # bodies of structured ops read constants around them
        with np.errstate(all="ignore"):  # padding may be divided by, and is cut off
            for node, step in zip(self.node.body.nodes, self._steps, strict=False):
                results = step(self._frame, node, cores, [values[number] for number in node.operands])
                values.update(zip(node.results, results, strict=True))
        self._frame.values = {}
        return tuple(values[number] for number in self.node.body.nodes[-1].operands)

    def _core_by_core(self, cores: int, tiles: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Cores whose tiles are equal make the same: one of them runs."""
        known: dict[bytes, list[Any]] = {}
        rows = []
        for core in range(cores):
            own = [np.array(tile[core]) for tile in tiles]
            key = b"".join(tile.tobytes() for tile in own)
            if key not in known:
                known[key] = self._frame.run(self.node.body, own)
            rows.append(known[key])
        return tuple(np.stack([np.asarray(value) for value in column]) for column in zip(*rows, strict=True))


def _tile(kind: ir.Type) -> Tile:
    return types.shape_of(kind), types.dtype_of(kind)


Step = Callable[[Any, Node, int, list[Any]], list[Any]]


def _batched(node: Node) -> Step | None:
    """How a node runs for all cores at once; None where it does not."""
    if node.name == "arith.constant":
        return _constant
    if node.name == "tensor.empty":
        return _empty
    if node.name in _SHAPES:
        return _SHAPES[node.name](node)
    if node.name in _ELEMENTWISE and not any(node.regions):
        return _elementwise
    if HANDLERS.get(node.name) is not structured:
        return None
    return None if read_structure(node).branches else _structured


def _constant(frame: Any, node: Node, cores: int, operands: list[Any]) -> list[Any]:
    value = execute(frame, node, operands)
    if types.shaped(node.result_type()) is None:
        return [value]
    return [np.broadcast_to(value, (cores, *np.shape(value)))]


def _empty(frame: Any, node: Node, cores: int, operands: list[Any]) -> list[Any]:
    return [types.uninitialised((cores, *types.shape_of(node.result_type())), types.dtype_of(node.result_type()))]


def _reshape(node: Node) -> Step | None:
    shape = types.shape_of(node.result_type())
    return None if types.DYNAMIC in shape else lambda _f, _n, cores, operands: [operands[0].reshape(cores, *shape)]


def _concat(node: Node) -> Step | None:
    axis = 1 + node.op.attributes["dim"].value
    return lambda _f, _n, _c, operands: [np.concatenate(operands, axis)]


def _extract(node: Node) -> Step | None:
    where, shape = _where(node), types.shape_of(node.result_type())
    return None if where is None else lambda _f, _n, cores, operands: [operands[0][where].reshape(cores, *shape)]


def _insert(node: Node) -> Step | None:
    where = _where(node)
    if where is None:
        return None

    def step(_frame: Any, _node: Node, _cores: int, operands: list[Any]) -> list[Any]:
        out = np.array(operands[1])
        out[where] = operands[0].reshape(out[where].shape)
        return [out]

    return step


def _where(node: Node) -> tuple[slice, ...] | None:
    """The slice of an op on slices, for all cores; None where a number of it is a value."""
    lists = [types.integers(node.op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides")]
    if any(types.DYNAMIC in numbers for numbers in lists):
        return None
    ranges = zip(*lists, strict=True)
    return slice(None), *(slice(start, start + (size - 1) * by + 1, by) for start, size, by in ranges)


#: Ops that move elements within a tile.
_SHAPES = {
    "tensor.cast": _reshape,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.concat": _concat,
    "tensor.extract_slice": _extract,
    "tensor.insert_slice": _insert,
}


def _elementwise(frame: Any, node: Node, cores: int, operands: list[Any]) -> list[Any]:
    result = execute(frame, node, operands)
    return [result] if len(node.results) == 1 else list(result)


def _structured(frame: Any, node: Node, cores: int, operands: list[Any]) -> list[Any]:
    result = structured(frame, node, *operands)
    return [result] if len(node.results) == 1 else list(result)


def _give_cores(node: Node) -> None:
    shape = read_structure(node)
    node.once("structure", lambda: _with_cores(node, shape))


def _with_cores(node: Node, shape: Structure) -> Structure:
    """The structure with cores as its outermost, parallel loop; scalars have no dimension for it, tables have one."""
    maps = []
    for number, map_ in enumerate(shape.maps):
        moved = tuple(_moved(term) for term in map_)
        is_scalar = types.shaped(node.operand_type(number)) is None
        maps.append(moved if is_scalar else (Term("dim", 0), *moved))
    return Structure(
        maps=maps,
        loops=shape.loops + 1,
        inputs=shape.inputs,
        parallel=[0, *(loop + 1 for loop in shape.parallel)],
        reduction=[loop + 1 for loop in shape.reduction],
        defined=shape.defined,
        effects=shape.effects,
        branches=False,
        yields=shape.yields,
        out_arguments=shape.out_arguments,
        ahead=1,
    )


def _moved(term: Term) -> Term:
    if term.kind == "dim":
        return Term("dim", term.value + 1)
    return Term(term.kind, term.value, tuple(_moved(part) for part in term.parts))
