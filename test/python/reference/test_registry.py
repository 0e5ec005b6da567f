# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every handler is for an op that exists, and some test names it; every `tile` op has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright import reference
from tilewright.mlir import ir
from tilewright.mlir.dialects import _coremesh_ops_gen as coremesh
from tilewright.mlir.dialects import _fractal_ops_gen as fractal
from tilewright.mlir.dialects import _sparse_tile_ops_gen as sparse_tile
from tilewright.mlir.dialects import _tile_ops_gen as tile
from tilewright.reference.registry import HANDLERS, TERMINATORS, handles

HERE = Path(__file__).parent


def test_handlers_are_for_ops_that_exist():
    with ir.Context() as context:
        context.load_all_available_dialects()
        names = [*reference.HANDLERS, *TERMINATORS]
        assert [name for name in names if not context.is_registered_operation(name)] == []


def test_every_tile_op_is_interpreted():
    ops = {cls.OPERATION_NAME for cls in vars(tile).values() if hasattr(cls, "OPERATION_NAME")}
    started = {"tile.kernel", "tile.program"}  # not executed: launched, through tile.launch or run_kernel
    assert len(ops) > 25
    assert ops - started - set(HANDLERS) - TERMINATORS == set()


def test_every_sparse_tile_op_is_interpreted():
    ops = {cls.OPERATION_NAME for cls in vars(sparse_tile).values() if hasattr(cls, "OPERATION_NAME")}
    assert len(ops) > 8
    assert ops <= set(HANDLERS)


def test_every_fractal_op_is_interpreted():
    ops = {cls.OPERATION_NAME for cls in vars(fractal).values() if hasattr(cls, "OPERATION_NAME")}
    assert len(ops) > 20
    drawn = {"fractal.graph", "fractal.block", "fractal.outputs"}  # not executed: what a program's graph is told by
    assert ops - set(HANDLERS) - drawn == {"fractal.yield"} <= TERMINATORS


def test_every_coremesh_op_is_interpreted():
    ops = {cls.OPERATION_NAME for cls in vars(coremesh).values() if hasattr(cls, "OPERATION_NAME")}
    inside = "buffer route place collect compute send recv relay wait loop".split()
    programs = {"coremesh.program", *(f"coremesh.{name}" for name in inside)}  # run by sim/coremesh_ir
    assert len(ops) > 20
    assert ops - programs - set(HANDLERS) == {"coremesh.yield"} <= TERMINATORS


def test_every_handler_is_tested():
    files = [*HERE.rglob("test_*.py"), *(HERE.parents[1] / "fixtures").glob("*.mlir")]
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in files)))
    assert [name for name in HANDLERS if name.rpartition(".")[2] not in words] == []


def test_an_op_has_one_handler():
    with pytest.raises(ValueError, match="two handlers for arith.addf"):
        handles("arith.addf")(lambda frame, node: None)
