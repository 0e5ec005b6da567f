# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What deciding does for many equal layers: each kernel, weight and nest is looked at once. Calls are counted."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from examples.fractal import grid_rnn

import tilewright as tw
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.plan.cost import choose, gemm_time, gemv
from tilewright.plan.graph import device_loops
from tilewright.plan.lowbit import narrow_operands


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of each call of a function from now on."""
    calls: list[tuple[Any, ...]] = []
    function: Callable[..., Any] = getattr(module, name)

    def noted(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(module, name, noted)
    return calls


def loops(count: int) -> str:
    """That many loops one behind the other, each around two launches."""
    loop = """
      scf.for %t = %c0 to %c8 step %c1 {
        tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
        tile.launch @l grid(%c8) ins(%y : memref<64xf32>) outs(%x : memref<64xf32>)
      }"""
    return f"""
    tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {{tile.warps = 8 : i64}} {{
      tile.return
    }}
    tile.kernel @l(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {{tile.warps = 4 : i64}} {{
      tile.return
    }}
    func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      {loop * count}
      return
    }}"""


def run(text: str, name: str, weights: dict[str, np.ndarray] | None = None) -> str:
    """The module behind a pass."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({name})", weights=weights)
        return str(module)


def calls_of_plan(count: int) -> int:
    """Calls of functions while it is decided about loops."""
    with cProfile.Profile() as profile:
        text = run(loops(count), "tile-plan-loops{units=4}")
    assert text.count("tile.blocks = 4") == count
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def test_loops_are_planned_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether launches fit one kernel is asked of each launch, and what a kernel is only once."""
    calls_of_plan(1)  # imports
    few, many = calls_of_plan(16), calls_of_plan(128)
    assert many < 1.05 * 8 * few
    looked_at = counted(monkeypatch, device_loops, "_look_at")
    run(loops(32), "tile-plan-loops{units=4}")
    assert sorted(name for name, _ in looked_at) == ["k", "l"]


def layers(count: int) -> str:
    """Loops one behind the other, each with a product of a layer's part of one weight."""
    steps = "".join(
        f"""
      %r{n} = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %r{n - 1}) -> (tensor<8x32xf32>) {{
        %s = tensor.extract_slice %w[{n}, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<{count}x32x32xf32> to tensor<32x32xf32>
        %p = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}}
            ins(%a, %s : tensor<8x32xf32>, tensor<32x32xf32>) outs(%f : tensor<8x32xf32>) {{
        ^bb0(%q: f32, %v: f32, %o: f32):
          %m = arith.mulf %q, %v : f32
          %z = arith.addf %o, %m : f32
          linalg.yield %z : f32
        }} -> tensor<8x32xf32>
        scf.yield %p : tensor<8x32xf32>
      }}"""
        for n in range(count)
    ).replace("%r-1)", "%x)")
    return f"""
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    #e = #ml_program.extern : tensor<{count}x32x32xf32>
    ml_program.global private @w(#e) : tensor<{count}x32x32xf32>
    func.func @main(%x: tensor<8x32xf32>) -> tensor<8x32xf32> {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
      %w = ml_program.global_load_const @w : tensor<{count}x32x32xf32>
      {steps}
      return %r{count - 1} : tensor<8x32xf32>
    }}"""


@pytest.mark.parametrize("fits", [False, True])
def test_a_weight_is_compared_once(monkeypatch: pytest.MonkeyPatch, fits: bool) -> None:
    """Whether a weight has 16 bits does not depend on how many layers read parts of it."""
    rng = np.random.default_rng(0)
    rounded = rng.standard_normal((7, 32, 32)).astype(np.float16).astype(np.float32)
    rounded[-1, -1, -1] += 0 if fits else 1e-6  # behind the part that is looked at first
    compared = counted(monkeypatch, narrow_operands, "_fits")
    run(layers(7), "tile-narrow-operands", {"w": rounded})
    whole = [element for array, element in compared if array.size == rounded.size]
    assert sorted(whole) == ["bf16", "f16"]


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("counts", [(3, 4), (9, 17)], ids=["in a row", "in a loop"])
def test_equal_nests_are_decided_once(counts: tuple[int, int], target: str) -> None:
    """Schedules are ranked for the nests of one layer, however many there are; a loop hands on states, too."""
    known = (choose.rank, gemm_time.choose_among, gemv.rank_gemv)
    ranked = []
    for count in counts:
        for function in known:
            function.cache_clear()
        shapes = dict(zip(grid_rnn.program(64).parameters, [(2, 5)] * 2 + [(count,)] * 6, strict=True))
        options: dict[str, Any] = {} if target == "cpu" else {"emulate": True}
        tw.compile(grid_rnn.program(64), target=target, shapes=shapes, stop_after="plan", **options)
        ranked.append([function.cache_info().misses for function in known])
    assert ranked[0] == ranked[1]
    assert sum(ranked[0]) > 0
