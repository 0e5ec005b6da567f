# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilewright bisect` finds passes that were broken on purpose, in every phase, and makes small cases of them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.bisection import search, session
from tilewright.cli import main

PASSES = Path(__file__).with_name("broken_passes.py")
SWAP = "test-swap-operands"
MODEL = """
ml_program.global private @w(#ml_program.extern<tensor<24x32xf32>>) : tensor<24x32xf32>
func.func @main(%x: tensor<16x24xf32>, %n: tensor<1xi64>) -> (tensor<16x32xf32>, tensor<?xf32>) {
  %w = ml_program.global_load_const @w : tensor<24x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<16x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<16x24xf32>, tensor<24x32xf32>) outs(%f : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%m : tensor<16x32xf32>) outs(%e : tensor<16x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %three = arith.constant 3.0 : f32
    %t = math.tanh %a : f32
    %d = arith.subf %t, %three : f32
    linalg.yield %d : f32 } -> tensor<16x32xf32>
  %r = tensor.extract %n[%c0] : tensor<1xi64>
  %k = arith.index_cast %r : i64 to index
  %s = tensor.extract_slice %x[0, 0] [1, %k] [1, 1] : tensor<16x24xf32> to tensor<?xf32>
  return %g, %s : tensor<16x32xf32>, tensor<?xf32>
}
"""


@pytest.fixture(name="weights")
def weights_fixture(rng):
    """The weights of MODEL."""
    return {"w": rng.standard_normal((24, 32)).astype(np.float32)}


@pytest.fixture(name="rng")
def rng_fixture():
    """A seeded generator."""
    return np.random.default_rng(3)


def test_nothing_moved(weights):
    result = tw.bisect(MODEL, weights=weights)
    assert not result.moved
    assert result.total > 40
    assert str(result).startswith("no pass moved a result")


@pytest.mark.parametrize("suspected", [True, False])
@pytest.mark.parametrize(
    "after", ["tile-generalize", "tile-hoist-init", "plan", "tile", "one-shot-bufferize", "schedule"]
)
def test_found_in_each_phase(monkeypatch, weights, after, suspected):
    if not suspected:  # as if the broken pass were one of ours
        search_ = session.Search
        monkeypatch.setattr(session, "Search", lambda case, run, _: search_(case, run, ()))
    result = tw.bisect(MODEL, weights=weights, load_python=[PASSES], insert=[(SWAP, after)])
    assert [step.name for step in result.passes] == [SWAP]
    moved = [d for d in result.differences if d.moved]
    assert [d.name for d in moved] == ["output0"]
    assert 0 < moved[0].count <= 16 * 32
    np.testing.assert_allclose(moved[0].absolute, 2 * abs(float(moved[0].expected)), rtol=1e-5)
    np.testing.assert_allclose([moved[0].relative, moved[0].got], [2, -moved[0].expected], rtol=1e-5)
    assert result.runs <= (3 if suspected else 9)
    if after in ("tile-generalize", "plan", "tile"):
        assert 0 < result.reduced_operations <= 4
        assert "tensor.extract_slice" not in result.reduced


@pytest.mark.parametrize("after", ["plan", "tile-plan-gpu-tiles", "tile", "schedule"])
def test_found_among_the_passes_of_a_gpu(weights, after):
    """Kernels of tiles are interpreted; no GPU and no emulator takes part."""
    result = tw.bisect(MODEL, target="cuda:sm_80", weights=weights, load_python=[PASSES], insert=[(SWAP, after)])
    assert [step.name for step in result.passes] == [SWAP]


@pytest.mark.parametrize("after", ["plan", "tile-distribute", "tile-expand-collectives", "tile-fit-mesh"])
def test_found_among_programs_of_cores(weights, after):
    """The functional simulator of a mesh runs every state."""
    result = tw.bisect(MODEL, target="mesh:toy8x8", weights=weights, load_python=[PASSES], insert=[(SWAP, after)])
    assert [step.name for step in result.passes] == [SWAP]
    assert [one.name for one in result.differences if one.moved] == ["output0"]


def test_nothing_moves_among_programs_of_cores(weights):
    result = tw.bisect(MODEL, target="mesh:toy8x8", weights=weights)
    assert not result.moved and not result.failure and result.runs > 0


def test_nothing_moves_among_the_passes_of_a_gpu(weights):
    result = tw.bisect(MODEL, target="cuda:sm_90a", weights=weights)
    assert not result.moved and not result.failure and result.runs > 0


@pytest.mark.parametrize("after", ["convert-tile-to-vector", "tile-expand-math"])
def test_found_behind_what_can_be_interpreted(weights, after):
    result = tw.bisect(MODEL, weights=weights, load_python=[PASSES], insert=[(SWAP, after)])
    assert [step.name for step in result.passes] == [SWAP]
    assert "llvm.func" not in result.before


def test_a_pass_that_none_can_do_without_gives_a_range(monkeypatch, weights):
    """Without the right to leave a pass out, what is left is all of phase `lower`."""
    monkeypatch.setattr(search.Search, "_right_without", lambda *_: False)
    result = tw.bisect(MODEL, weights=weights, load_python=[PASSES], insert=[(SWAP, "convert-tile-to-vector")])
    assert SWAP in [step.name for step in result.passes]
    assert len(result.passes) > 10
    assert "none of them can be left out" in str(result)


def test_a_harmless_pass_is_not_blamed(weights):
    inserted = [("test-nothing", "normalize"), (SWAP, "tile-plan-tiles"), ("test-nothing", "plan")]
    result = tw.bisect(MODEL, weights=weights, load_python=[PASSES], insert=inserted)
    assert [step.name for step in result.passes] == [SWAP]


def test_a_pipeline_of_ones_own(weights):
    text = f"builtin.module(canonicalize, func.func(cse), {SWAP}{{op=arith.subf nth=0}}, canonicalize)"
    result = tw.bisect(MODEL, weights=weights, load_python=[PASSES], pipeline=text)
    assert (result.positions, result.total) == ((3,), 4)
    assert [str(step) for step in result.passes] == [f"{SWAP}{{op=arith.subf nth=0}}"]


def test_tolerance_and_inputs(weights):
    x = np.zeros((16, 24), np.float32)  # tanh is 0: the swap makes -3 of 3 all the same
    result = tw.bisect(MODEL, {"input0": x}, weights=weights, load_python=[PASSES], insert=[(SWAP, "normalize")])
    assert {float(d.expected) for d in result.differences if d.moved} == {-3.0}
    loose = tw.bisect(MODEL, [x], weights=weights, load_python=[PASSES], insert=[(SWAP, "normalize")], tolerance=5)
    assert not loose.moved


def test_wrong_requests():
    with pytest.raises(tw.UserError, match="cannot insert x after 'nowhere'"):
        tw.bisect(MODEL, insert=[("x", "nowhere")])
    with pytest.raises(tw.UserError, match="has the form builtin.module"):
        tw.bisect(MODEL, pipeline="cse")
    with pytest.raises(tw.UserError, match="has no passes to look at"):
        tw.bisect(MODEL, target="reference")


def test_inputs_that_the_model_refuses():
    text = """
func.func @main(%n: tensor<1xi1>) -> tensor<1xi1> {
  %c0 = arith.constant 0 : index
  %b = tensor.extract %n[%c0] : tensor<1xi1>
  cf.assert %b, "it is false"
  return %n : tensor<1xi1>
}
"""
    with pytest.raises(tw.UserError, match="refuses these inputs: it is false; give others"):
        tw.bisect(text, [np.array([False])])


def test_a_pass_that_fails_is_reported(weights):
    with pytest.raises(tw.UserError, match="no-such-pass"):
        tw.bisect(MODEL, weights=weights, insert=[("no-such-pass", "plan")])


def test_command_line(tmp_path, capsys):
    model = tmp_path / "m.mlir"
    model.write_text(
        MODEL.replace("ml_program.global private", "//").replace(
            "%w = ml_program.global_load_const @w : tensor<24x32xf32>",
            "%w = arith.constant dense<0.125> : tensor<24x32xf32>",
        )
    )
    words = [
        "bisect",
        str(model),
        "--load-python",
        str(PASSES),
        "--insert",
        SWAP,
        "normalize",
        "-o",
        str(tmp_path / "d"),
    ]
    assert main(words) == 1
    printed = capsys.readouterr().out
    assert f"moved the result: {SWAP} (phase normalize)" in printed
    report = json.loads((tmp_path / "d" / "report.json").read_text())
    assert report["passes"] == [SWAP]
    assert {path.name for path in (tmp_path / "d").iterdir()} >= {
        "before.mlir",
        "after.mlir",
        "reduced.mlir",
        "report.txt",
    }
    tool, *again = shlex.split(report["command"])
    assert tool == "tilewright"
    assert main(again) == 1
    assert "pass 1 of 1 moved the result" in capsys.readouterr().out
    assert main(["bisect", str(model)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("after", ["tile-fold-transposes", "tile-groups-to-kernels"])
def test_minilm(after):
    """22 million parameters, 128 tokens: few states are run, each of which takes seconds."""
    minilm = pytest.importorskip("tilewright.demo.minilm")
    try:
        model = minilm.minilm_model()
    except tw.UserError as error:
        pytest.skip(str(error))
    result = tw.bisect(model, load_python=[PASSES], insert=[(SWAP, after)])
    assert [step.name for step in result.passes] == [SWAP]
    assert 0 < result.reduced_operations <= 6
    assert result.runs <= 40
