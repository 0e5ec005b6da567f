# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What constant operands hold, also behind operations that compile time carries out, and whether zeros are among it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright import reference
from tilewright.ir.generics import is_copy, maker, maps, positions
from tilewright.ir.structure import captured
from tilewright.ir.target_info import around
from tilewright.ir.units import symbol_of
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes.weights import known_array, weight_at
from tilewright.plan.sparse.encoded import pack_of

#: Runs of neighbours that a first look takes of an array, and their length: dense models are to pay nothing.
_RUNS, _RUN = 64, 64
#: The part of an array that is zero, at least, for its pattern to be looked at.
LEAST_ZEROS = 0.05
#: What compile time carries out.
_PURE = ("arith.", "linalg.", "tensor.", "sparse_tile.", "ml_program.")
_LOAD = "ml_program.global_load_const"


def leaves(value: ir.Value) -> Iterator[ir.Value]:
    """The constants that a value is computed of."""
    for op in _slice(value):
        if op.name == _LOAD or (op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType)):
            yield op.results[0]


def has_zeros(value: ir.Value) -> bool:
    """Whether a constant of floats that a value is computed of has zeros, as a first look tells."""
    return any(
        isinstance(ir.RankedTensorType(leaf.type).element_type, ir.FloatType)
        and (array := _stored(leaf)) is not None
        and _looks_pruned(array)
        for leaf in leaves(value)
    )


def zero_part(array: np.ndarray) -> float:
    """The part of an array that is zero: 0 to 1."""
    return 1.0 - np.count_nonzero(array) / max(array.size, 1)


def array_of(value: ir.Value) -> np.ndarray | None:
    """The elements of a tensor that constants determine; None where some are not known.

    What is more than a transposed or reshaped constant, the reference interpreter computes.
    """
    found = known_array(value)
    if found is not None:
        return found
    made = maker(value)
    if made is None:
        return None
    if made.name in RESHAPES:
        inner = array_of(made.operands[0])
        return None if inner is None else inner.reshape(tuple(ir.RankedTensorType(value.type).shape))
    if is_copy(made):
        inner = array_of(made.operands[0])
        read, written = (positions(m) for m in maps(made))
        return None if inner is None else inner.transpose([read.index(loop) for loop in written])
    return _computed(value)


def packed_array(encoded: ir.Value) -> np.ndarray | None:
    """The elements of an encoded tensor that is packed from constants; None where they are not known."""
    packed = pack_of(encoded)
    return None if packed is None else array_of(packed.operands[0])


def _stored(leaf: ir.Value) -> np.ndarray | None:
    made = maker(leaf)
    assert made is not None
    if made.name == "arith.constant":
        value = made.attributes["value"]
        if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
            return None  # nothing is pruned where all is one number
    return known_array(leaf)


def _looks_pruned(array: np.ndarray) -> bool:
    """Whether zeros are among some runs of neighbours; small arrays are looked at as a whole."""
    flat = array.reshape(-1)
    if flat.size <= _RUNS * _RUN:
        return flat.size > 0 and zero_part(flat) >= LEAST_ZEROS
    starts = np.random.default_rng(0).integers(0, flat.size - _RUN, _RUNS)
    return zero_part(flat[starts[:, None] + np.arange(_RUN)]) >= LEAST_ZEROS


def _slice(value: ir.Value) -> list[ir.Operation]:
    """The operations that a value is computed by, in order; none where a run has a part in it."""
    found: list[ir.Operation] = []
    seen: set[ir.Value] = set()
    known = True

    def visit(one: ir.Value) -> None:
        nonlocal known
        made = maker(one)
        known = known and made is not None and made.name.startswith(_PURE)
        if not known or made is None or one in seen:
            return
        seen.update(made.results)
        for operand in (*made.operands, *captured(made)):
            visit(operand)
        found.append(made.operation)

    visit(value)
    return found if known else []


def _computed(value: ir.Value) -> np.ndarray | None:
    """What the reference interpreter makes of the constants behind a value."""
    ops = _slice(value)
    if not ops:
        return None
    names = [ir.FlatSymbolRefAttr(op.attributes["global"]).value for op in ops if op.name == _LOAD]
    held = {name: weight_at(ops[0], name) for name in names}
    root = list(around(ops[0]))[-1]
    defined = {symbol_of(op): op.operation for op in root.regions[0].blocks[0].operations}
    if any(
        held[name] is None and not isinstance(defined[name].attributes["value"], ir.DenseElementsAttr) for name in names
    ):
        return None
    with ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for name in dict.fromkeys(names):
                defined[name].clone()
            kind = ir.FunctionType.get([], [value.type])
            function = ir.Operation.create(
                "func.func",
                attributes={"sym_name": ir.StringAttr.get("weight"), "function_type": ir.TypeAttr.get(kind)},
                regions=1,
            )
        block = ir.Block.create_at_start(function.regions[0], [])
        with ir.InsertionPoint(block):
            known = _cloned(ops)
            ir.Operation.create("func.return", operands=[known[value]])
        (result,) = reference.run(
            module, "weight", [], {name: array for name, array in held.items() if array is not None}
        )
    return result


def _cloned(ops: list[ir.Operation]) -> dict[ir.Value, ir.Value]:
    """Copies of operations at the current insertion point: results of the old ones and of the new ones."""
    known: dict[ir.Value, ir.Value] = {}

    def rename(inner: ir.Operation) -> ir.WalkResult:
        for at, operand in enumerate(inner.operands):
            if operand in known:
                inner.operation.operands[at] = known[operand]
        return ir.WalkResult.ADVANCE

    for op in ops:
        copy = op.clone()
        copy.operation.walk(rename)
        known.update(zip(op.results, copy.operation.results, strict=True))
    return known
