# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of a GPU, fitted to times that were made with other ones."""

import dataclasses
import functools
import json

import numpy as np
import pytest

from bench.gpu import paper, refit
from bench.gpu.cases import CASES
from bench.gpu.packing import described
from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.devices.rates import tomllib
from tilewright.plan.cost.decide import prediction_of

DEVICE = devices.get("nvidia-h200")
NAMES = ("gemm_bf16_8192 gemm_bf16_4096 gemm_bf16_2048 gemm_ragged softmax softmax_f32 layernorm add rmsnorm "
         "column_sums_f32 minilm_b1 conv_1x1").split()  # fmt: skip
TRUE = {"sustained.memory": 1.25, "sustained.bf16": 1.1, "launch": 0.6, "latency": 1.4}


@functools.cache
def _plans() -> dict[str, list[dict]]:
    """What the plan says of the kernels of some cases of the suite."""
    found = {}
    for case in CASES:
        if case.name in NAMES:
            module = paper.plan(described(case, False).model, DEVICE)
            found[case.name] = [prediction_of(op) for op in paper.kernels(module)]
    return found


def _suite(true: dict[str, float], noise: float = 0.02, outliers: int = 0) -> dict:
    """Results as a pack writes them, of a machine whose times that go with a constant are so many times as long."""
    random, rows = np.random.default_rng(3), []
    for name, plans in _plans().items():
        kernels = []
        for number, plan in enumerate(plans):
            one = refit._sample(name, 1.0, plan, DEVICE)
            seconds = one.predicted(true) * float(np.exp(random.normal(0, noise)))
            kernels.append({"kernel": f"k{number}", "plan": plan, "us": [seconds * 1e6, seconds * 1.5e6]})
        rows.append({"name": name, "status": "ok", "kernels": kernels})
    for row in rows[1::4][:outliers]:
        row["kernels"][0]["us"] = [row["kernels"][0]["us"][0] * 8]
    return {"version": 2, "device": "NVIDIA H200", "driver": "1.2", "date": "2026-11-24", "rows": rows}


@pytest.mark.slow
@pytest.mark.parametrize("outliers", [0, 2])
def test_constants_are_found_again(outliers):
    suite = _suite(TRUE, outliers=outliers)
    found = refit.samples(suite, DEVICE)
    constants = {constant.name: constant for constant in refit.fit(found)}
    for name, factor in TRUE.items():
        assert constants[name].spread is not None, name
        assert constants[name].factor == pytest.approx(factor, rel=0.06), name
    assert refit.median_error(found, constants.values()) < 0.03 < refit.median_error(found)


def test_nothing_moves_where_the_law_is_right():
    constants = refit.fit(refit.samples(_suite({}, noise=0.0), DEVICE))
    fitted = [constant for constant in constants if constant.spread is not None]
    assert fitted and all(constant.factor == pytest.approx(1.0, abs=1e-3) for constant in fitted)


def test_what_few_kernels_depend_on_stays():
    """Two of three kernels that vector units bind say nothing about the exponent's unit."""
    plan = {"ns": 10_000, "functions_ns": 9_000, "waiting_ns": 500, "launch_ns": 500}
    kernels = [{"kernel": "k", "plan": plan, "us": [20.0]}] * 2
    suite = _suite(TRUE)
    suite["rows"].append({"name": "powers", "status": "ok", "kernels": kernels})
    constants = {constant.name: constant for constant in refit.fit(refit.samples(suite, DEVICE))}
    assert constants["functions"].kernels == 2
    assert (constants["functions"].factor, constants["functions"].spread) == (1.0, None)


def test_the_law_with_fitted_rates_predicts_what_was_measured():
    """The fragment is read back as a device, and cases are planned with it."""
    suite = _suite({"sustained.memory": 1.25}, noise=0.0)
    constants = refit.fit(refit.samples(suite, DEVICE))
    rates = tomllib.loads(refit.fragment(suite, DEVICE, constants))["rates"]
    fitted = dataclasses.replace(DEVICE, rates=tuple((dict(DEVICE.rates) | rates).items()))
    case = next(case for case in CASES if case.name == "softmax_f32")
    measured = next(row for row in suite["rows"] if row["name"] == case.name)["kernels"][0]["us"][0]
    assert paper.total(case, fitted).seconds * 1e6 == pytest.approx(measured, rel=0.02)
    assert paper.total(case, DEVICE).seconds * 1e6 < 0.85 * measured


@pytest.mark.parametrize(
    ("change", "message"),
    [({"version": 1}, "version 1"), ({"rows": []}, "no kernel in these results was timed")],
)
def test_results_of_no_use_are_refused(tmp_path, capsys, change, message):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(_suite(TRUE) | change))
    assert refit.main([str(path)]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(UserError, match=message):
        refit.samples(_suite(TRUE) | change, DEVICE)
    assert refit.main([str(tmp_path / "none.json")]) == 2


def test_command(tmp_path, capsys):
    path, fragment = tmp_path / "results.json", tmp_path / "rates.toml"
    path.write_text(json.dumps(_suite(TRUE)))
    assert refit.main([str(path), "--write", str(fragment)]) == 0
    text = capsys.readouterr().out
    assert "sustained.memory" in text and "as it was" in text and "median error of" in text
    assert "NVIDIA H200, 1.2, 2026-11-24" in fragment.read_text()
    assert tomllib.loads(fragment.read_text())["rates"]["sustained.memory"] == pytest.approx(4.3e12 / 1.25, rel=0.06)
