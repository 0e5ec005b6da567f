# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches, steps and bytes of one call, against programs that are counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
import tilewright.fractal as ft
from tilewright import devices
from tilewright.compiler.loop_predictions import held_plans
from tilewright.compiler.run_counts import Counts, Piece, counts
from tilewright.dialects import fractal, tile  # noqa: F401 (registers the dialects)
from tilewright.mlir import ir
from tilewright.sim import ptx as emulate

ADD = "affine_map<(d0) -> (d0)>"


def counted(text: str) -> dict[str, Any]:
    with ir.Context():
        found = counts(ir.Module.parse(text))
    assert found is not None
    return found


def told(found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found[name] for name in ("launches", "steps", "read", "written", "open"))


def sum_of(x: str, y: str, size: int = 7) -> str:
    kind = f"tensor<{size}xf32>"
    return f"""linalg.generic {{indexing_maps = [{ADD}, {ADD}, {ADD}], iterator_types = ["parallel"]}}
        ins({x}, {y} : {kind}, {kind}) outs(%e : {kind}) {{
      ^bb0(%l: f32, %r: f32, %o: f32):
        %z = arith.addf %l, %r : f32
        linalg.yield %z : f32
      }} -> {kind}"""


def test_operations_and_loops() -> None:
    """Five times x + y, then x + x: x is read once; a slice is a view."""
    found = counted(f"""func.func @main(%x: tensor<7xf32>, %y: tensor<9xf32>) -> tensor<7xf32> {{
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c9 = arith.constant 9 : index
      %e = tensor.empty() : tensor<7xf32>
      %s = tensor.extract_slice %y[1] [7] [1] : tensor<9xf32> to tensor<7xf32>
      %h = scf.for %i = %c0 to %c9 step %c2 iter_args(%a = %x) -> tensor<7xf32> {{
        %n = {sum_of("%a", "%s")}
        scf.yield %n : tensor<7xf32>
      }}
      %d = {sum_of("%h", "%h")}
      return %d : tensor<7xf32>
    }}""")
    assert told(found) == (6, 0, 5 * 2 * 28 + 28, 6 * 28, False)


def test_unknown_trips_count_once() -> None:
    found = counted(f"""func.func @main(%x: tensor<7xf32>, %n: index) -> tensor<7xf32> {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %e = tensor.empty() : tensor<7xf32>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<7xf32> {{
        %n1 = {sum_of("%a", "%x")}
        scf.yield %n1 : tensor<7xf32>
      }}
      return %r : tensor<7xf32>
    }}""")
    assert told(found) == (1, 0, 56, 28, True)


def test_a_branch_counts_as_its_larger_side() -> None:
    found = counted(f"""func.func @main(%x: tensor<7xf32>, %y: tensor<7xf32>, %p: i1) -> tensor<7xf32> {{
      %e = tensor.empty() : tensor<7xf32>
      %r = scf.if %p -> tensor<7xf32> {{
        %a = {sum_of("%x", "%x")}
        scf.yield %a : tensor<7xf32>
      }} else {{
        %a = {sum_of("%x", "%y")}
        %b = {sum_of("%a", "%y")}
        scf.yield %b : tensor<7xf32>
      }}
      return %r : tensor<7xf32>
    }}""")
    assert told(found) == (2, 0, 4 * 28, 2 * 28, False)


def test_sums_begin_without_a_read_and_gathers_read_what_they_take() -> None:
    """A row sum of 3 x 5 writes 3; 4 rows of a table of 1000 x 2 are 8 elements and 4 indices of 8 bytes."""
    found = counted("""func.func @main(%x: tensor<3x5xf32>, %t: tensor<1000x2xf32>, %k: tensor<4xi64>)
        -> (tensor<3xf32>, tensor<4x2xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x5xf32>) outs(%f : tensor<3xf32>) {
      ^bb0(%l: f32, %o: f32):
        %z = arith.addf %l, %o : f32
        linalg.yield %z : f32
      } -> tensor<3xf32>
      %g = tensor.empty() : tensor<4x2xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%k : tensor<4xi64>) outs(%g : tensor<4x2xf32>) {
      ^bb0(%n: i64, %o: f32):
        %row = arith.index_cast %n : i64 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %t[%row, %column] : tensor<1000x2xf32>
        linalg.yield %v : f32
      } -> tensor<4x2xf32>
      return %s, %r : tensor<3xf32>, tensor<4x2xf32>
    }""")
    assert told(found) == (2, 0, 60 + (32 + 32), 12 + 32, False)


KERNELS = """
tile.kernel @copy(%x: memref<6x8xf32>, %y: memref<6x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<6x8xf32>, !tile.tile<1x8xf32>
  tile.store %t, %y[%i, %c0] : !tile.tile<1x8xf32>, memref<6x8xf32>
  tile.return
}
"""


def test_kernels_move_what_their_tasks_touch() -> None:
    """Two of six rows, in each of three launches."""
    found = counted(
        KERNELS
        + """func.func @main(%x: memref<6x8xf32>, %y: memref<6x8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      scf.for %i = %c0 to %c3 step %c1 {
        tile.launch @copy grid(%c2) ins(%x : memref<6x8xf32>) outs(%y : memref<6x8xf32>)
      }
      return
    }"""
    )
    assert told(found) == (3, 0, 3 * 64, 3 * 64, False)
    assert found["largest"] == [["copy", 3, 192, 192]]


def test_steps_of_a_program_are_no_launches() -> None:
    """Two steps, each on two units."""
    places = "\n".join(
        f"tile.place @copy tasks [{first}, {first + 3}] of [6] on {unit} (%x, %y : memref<6x8xf32>, memref<6x8xf32>)"
        for first, unit in ((0, 0), (3, 1), (0, 1), (3, 0))
    )
    found = counted(
        KERNELS
        + f"""tile.program @twice(%x: memref<6x8xf32>, %y: memref<6x8xf32>) units 2 {{
      {places}
    }}
    func.func @main(%x: memref<6x8xf32>, %y: memref<6x8xf32>) {{
      tile.launch @twice outs(%x, %y : memref<6x8xf32>, memref<6x8xf32>)
      return
    }}"""
    )
    assert told(found) == (1, 2, 2 * 192, 2 * 192, False)


def cells(steps: int) -> Any:
    """A recurrence over lists: one product and one hyperbolic tangent for each element."""

    @ft.function
    def recurrence(xs: ft.Array[1, (1, 5)], w: ft.Tensor[5, 5]) -> ft.Array[1, (1, 5)]:
        return ft.scanl(lambda h, x: ft.tanh(x + h @ w), ft.zeros(1, 5), xs)

    return recurrence, {"xs": (steps,)}


def test_a_list_program() -> None:
    """Before anything: a product, a sum and a function for each of 7 elements; at last one launch of a GPU."""
    program, lengths = cells(7)
    trace = emulate.Trace()
    model = tw.compile(program, "cuda:sm_80", shapes=lengths, emulate={"multiprocessors": 3, "trace": trace})
    phases = {phase["name"]: phase["counts"] for phase in model.report_data()["phases"] if "counts" in phase}
    product, total, function = (5 + 25) * 4 + 20, 40 + 20, 20 + 20
    first, last = phases["import"], phases["lower"]
    assert first["launches"] == 3 * 7 and first["read"] + first["written"] == 7 * (product + total + function)
    moved = [phases[name]["read"] + phases[name]["written"] for name in ("import", "plan", "schedule")]
    assert moved[0] > moved[1] >= moved[2]
    assert phases["tile"]["launches"] == 8
    # What comes before the loop, and the loop, all of whose iterations its one task runs.
    assert (last["launches"], last["steps"]) == (1, 2)

    rng = np.random.default_rng(0)
    model(rng.random((7, 1, 5), np.float32), rng.random((5, 5), np.float32))
    (launch,) = trace.launches
    arrivals = sum(line.threads for line in launch.lines.values() if "atom.release.gpu" in line.text)
    assert last["meetings"] == arrivals / launch.grid[0]


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_each_pass_is_told_where_ir_is_dumped(target: str, tmp_path: Any) -> None:
    """The same code as without, and what changed the counts, the last of which are the phase's."""
    program, lengths = cells(4)
    plain = tw.compile(program, target, shapes=lengths, stop_after="schedule")
    assert tw.compile(program, target, shapes=lengths, stop_after="schedule", dump_ir=tmp_path / "text") == plain
    model = tw.compile(program, target, shapes=lengths, dump_ir=tmp_path, emulate=target != "cpu")
    phases = {phase["name"]: phase for phase in model.report_data()["phases"]}
    changes = {name.partition("{")[0]: found for name, found in phases["plan"]["changes"]}
    assert told(changes["tile-form-groups"]) == told(phases["plan"]["counts"])
    assert "changes" not in phases["import"]


def test_a_kernel_of_steps_is_predicted_as_their_sum() -> None:
    """Each step without its launch, one launch, and a barrier for each meeting; never where trips are not known."""
    device = devices.get("nvidia-h200")
    steps = [Piece("first", 3, "loop", 10, 10), Piece("second", 6, "loop", 5, 5)]
    found = Counts([Piece("loop", 1, "", 0, 0, holds=True), *steps])
    plans = {
        "first": {"ns": 4000, "launch_ns": 2500, "roofline_ns": 7, "memory_bytes": 11},
        "second": {"ns": 3000, "launch_ns": 2500, "roofline_ns": 1, "memory_bytes": 2},
    }
    (plan,) = held_plans(found, plans, {"loop": 4}, device).values()
    barriers = round(4 * device.rate("grid.barrier") * 1e9)
    assert plan["ns"] == 3 * 1500 + 6 * 500 + barriers + round(device.rate("launch") * 1e9)
    assert plan["memory_bytes"] == 3 * 11 + 6 * 2 and plan["roofline_ns"] == 3 * 7 + 6
    assert plan["bound"] == "steps" and plan["barriers_ns"] == barriers
    assert held_plans(Counts(found.pieces, open=True), plans, {}, device) == {}
    (other,) = held_plans(found, {"first": plans["first"]}, {"loop": 4}, device).values()
    moving = round(10 / device.memory.bandwidth * 1e9)  # ten bytes: the second one is taken for a copy
    assert other["ns"] == plan["ns"] - 6 * 500 + 6 * moving and other["memory_bytes"] == 3 * 11 + 6 * 10
