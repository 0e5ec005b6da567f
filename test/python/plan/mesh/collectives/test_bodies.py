# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every algorithm as IR: it verifies, prints as it parses, and as a program again computes and costs the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.mlir import ir
from tilewright.mlir.dialects import func
from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.attention import attend
from tilewright.plan.mesh.collectives.bodies import body
from tilewright.plan.mesh.kv_cache import Cache, append
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.moves.reshape_grid import Reshape, reshape_grid
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.compute_shift import Plan, compute_shift_product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product, shifted_products
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.program import Compute, Instruction, Loop, Program
from tilewright.sim.coremesh_ir.read import programs, read_program
from tilewright.sim.coremesh_ir.write import element_type, write_program

HALF = {"dtype": np.float16, "accumulator": np.float32}
BRAIN = {"dtype": ml_dtypes.bfloat16, "accumulator": np.float32, "result": np.float32}

PROGRAMS: dict[str, Callable[[], Program]] = {
    "meshgemm": lambda: shifted_product(Product(7, 9, 5, 3, 3, skew_a="run", skew_b="run")),
    "meshgemm-lcm": lambda: shifted_product(Product(7, 9, 5, 2, 3, **HALF, skew_a="run")),
    "meshgemm-one": lambda: shifted_product(Product(7, 9, 5, 1, 1, **BRAIN)),
    "meshgemm-bf16": lambda: shifted_product(Product(7, 9, 5, 4, 4, **BRAIN)),
    "meshgemm-int8": lambda: shifted_product(Product(7, 9, 5, 2, 2, np.int8, np.int32, np.int32)),
    "meshgemm-three": lambda: shifted_products([Product(4, 6, n, 3, 3, **HALF) for n in (3, 4, 5)]),
    "cannon": lambda: shifted_product(Product(7, 9, 5, 4, 3, skew_b="run"), "cannon"),
    "summa": lambda: summa(Product(7, 9, 5, 3, 4, **HALF)),
    "allgather": lambda: all_gather_product(Product(7, 9, 5, 3, 2)),
    "gemm_t": lambda: transposed_product(Product(7, 9, 5, 5, 5, **HALF)),
    "gemm_t-lcm": lambda: transposed_product(Product(7, 9, 5, 4, 2, **HALF)),
    **{
        f"{scheme.kind}{scheme.levels}": lambda scheme=scheme: reduction(
            Reduce(3, 7, 5, np.float32, "max" if scheme.levels == 3 else "add", schemes=(scheme,))
        )
        for scheme in (
            *(Scheme(kind) for kind in ("star", "chain", "tree", "two_phase", "ring")),
            *(Scheme("k_tree", levels) for levels in (1, 2, 3)),
        )
    },
    "meshgemv": lambda: matrix_vector(MatrixVector((9, 7, 5), 3, 4, "x", **HALF)),
    "meshgemv-few": lambda: matrix_vector(MatrixVector((9, 17, 5), 3, 4, "x", **HALF, rows=2)),
    "meshgemv-rows": lambda: matrix_vector(MatrixVector((9, 7), 3, 4, "y", **BRAIN, rows=11)),
    "concat": lambda: append(Cache("concat", 3, 2, 4, 5), 2),
    "shift": lambda: append(Cache("shift", 3, 2, 4, 5), 7, 2),
    "shift-few": lambda: append(Cache("shift", 4, 2, 4, 5), 1),
    "round_robin": lambda: append(Cache("round_robin", 3, 2, 4, 5), 7),
    "attend": lambda: attend(Cache("shift", 3, 2, 4, 5, np.float16), 0.5),
    "compute_shift": lambda: compute_shift_product(5, 9, 7, Plan((4, 2), (2, 4))),
    "reshape_grid": lambda: reshape_grid(Reshape(7, 9, (2, 3), (3, 2))),
}


def module_of(program: Program) -> ir.Module:
    """A function around a program."""
    dtypes = {buffer.name: element_type(buffer.dtype) for buffer in program.buffers}
    kinds = {one.name: ir.RankedTensorType.get(one.shape, dtypes[one.slot.buffer]) for one in program.inputs}
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("f", (list(kinds.values()), []))
        with ir.InsertionPoint(function.add_entry_block()):
            write_program(program, dict(zip(kinds, function.arguments, strict=True)), body)
            func.ReturnOp([])
    return module


def computes(body: tuple[Instruction, ...]) -> Iterator[Compute]:
    for one in body:
        if isinstance(one, Loop):
            yield from computes(one.body)
        elif isinstance(one, Compute):
            yield one


def inputs_of(program: Program) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    return {
        one.name: generator.integers(-4, 5, one.shape).astype(dtypes[one.slot.buffer]) * dtypes[one.slot.buffer].type(1)
        for one in program.inputs
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_ir_and_back(name: str):
    program = PROGRAMS[name]()
    with ir.Context(), ir.Location.unknown():
        module = module_of(program)
        module.operation.verify()
        parsed = ir.Module.parse(str(module))
        assert str(ir.Module.parse(str(parsed))) == str(parsed)  # parsing simplifies some expressions further
        again = read_program(programs(parsed)[0])
        assert [one.cost for one in computes(again.body)] == [one.cost for one in computes(program.body)]
        assert [(one.name, one.axis, one.order) for one in again.routes] == [
            (one.name, one.axis, one.order) for one in program.routes
        ]
        inputs = inputs_of(program)
        expected, found = run(program, inputs), run(again, inputs)
    assert expected.keys() == found.keys()
    # Exponentials may differ in the last bit: NumPy's and the reference interpreter's are two functions.
    tolerance = 1e-6 if any(one.name == "exponentials" for one in computes(program.body)) else 0
    for output, value in expected.items():
        np.testing.assert_allclose(found[output], value, rtol=tolerance, atol=0)
