# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tune=: the fastest of the measured candidates is taken, within the budget, and remembered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import tuning
from tilewright.core import config
from tilewright.core.errors import UserError

MODULE = """
#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<512x24xf32> {tile.name = "x"}) -> (tensor<512xf32> {tile.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x24xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
}
"""


class Fake:
    """A compiler whose kernels take as long as a table says."""

    def __init__(self, times: dict[str, list[float]]) -> None:
        self.times = times
        self.built: list[tuple[str, ...]] = []

    def __call__(self, choices: tuple[str, ...]) -> dict[str, float]:
        self.built.append(choices)
        numbers = {name: int(number) for name, _, number in (c.rpartition(":") for c in choices)}
        return {name: times[numbers.get(name, 0)] for name, times in self.times.items()}


@pytest.fixture
def fake_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "kernel_times", lambda model: model)


@pytest.mark.usefixtures("fake_times")
def test_each_kernel_takes_its_fastest_candidate() -> None:
    build = Fake({"a_8": [5.0, 4.0, 6.0], "b_8": [1.0, 0.99], "c_8": [2.0]})
    choices, complete = tuning.measure_choices({"a_8": 3, "b_8": 2, "c_8": 1}, build, 60)
    assert choices == ("a_8:1",) and complete  # b_8 gains too little to be more than noise
    assert len(build.built) == 4


@pytest.mark.usefixtures("fake_times")
def test_the_budget_ends_it() -> None:
    build = Fake({"a_8": [5.0, 4.0]})
    assert tuning.measure_choices({"a_8": 2}, build, 0.0) == ((), False)
    assert build.built == [()]


def test_names_and_candidates() -> None:
    assert tuning.plan_name("product_gelu_8x8x8_12") == "product_gelu_8x8x8"
    assert tuning.plan_name("map_64") == "map_64"
    text = 'tile.kernel = "a_8"} candidates = 5 : i64 tile.kernel = "b_8"} candidates = 1 : i64, candidates = 2 : i64'
    assert tuning.candidates_of(text) == {"a_8": 5, "b_8": 2}


def test_a_tuned_model_is_right_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((512, 24), np.float32)
    with config.cache_dir.override(tmp_path):
        model = tw.compile(MODULE, tune=5, threads=1)
        np.testing.assert_allclose(model(x)[0], x.sum(1), rtol=1e-4, atol=1e-4)
        assert len(list((tmp_path / "tuned").glob("*.json"))) == 1
        monkeypatch.setattr(tuning, "measure_choices", None)  # not called again
        tw.compile(MODULE, tune=1, threads=1)


@pytest.mark.parametrize("arguments", [{"target": "cpu:x86-64-v3"}, {"target": "reference"}])
def test_only_this_machine_can_be_measured(arguments: dict) -> None:
    with pytest.raises(UserError, match="tune= measures on this machine"):
        tw.compile(MODULE, tune=1, **arguments)
