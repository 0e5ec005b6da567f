# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suite of sparse cases: models have the zeros that they say, rivals and peers compute the same, gains count."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import models
import tilewright as tw
from bench import arrays, cover, pruned
from bench.case import Case, Form, suites
from bench.main import QUICK, exit_code
from bench.measure import OWN, Row, judge, measure, prepare
from bench.peers.scipy_bsr import ScipyBsr
from bench.peers.scipy_csr import ScipyCsr
from bench.sparse_product import constant_operand
from bench.suites import padding
from bench.suites.sparse import SUITE
from bench.table import table
from models import sparse
from models.compare import onnxruntime_outputs
from models.pruned import filled, filled_array, prune_channels
from tilewright.dialects.sparse_tile import NM, Encoded, Tesa
from tilewright.mlir import ir
from tilewright.passes import run_pipeline


def weight(model: onnx.ModelProto) -> np.ndarray:
    return numpy_helper.to_array(next(t for t in model.graph.initializer if len(t.dims) == 2))


@pytest.mark.parametrize(("pattern", "unit"), [("2:4", ()), ("8:32", ()), ("3:32/32", (1, 32))])
def test_weights_have_their_pattern(pattern: str, unit: tuple[int, ...]) -> None:
    n, m = map(int, pattern.split("/")[0].split(":"))
    w = weight(models.build("pruned_linear", m=1, n=96, k=64, pattern=pattern))
    assert np.count_nonzero(w) == w.size * n // m
    Encoded.pack(w, Tesa.one(NM(n, m, 0, unit)))  # UserError where it does not fit


@pytest.mark.parametrize("sparsity", [0.7, 0.8, 0.9])
def test_a_mixture_has_whole_blocks_and_single_elements(sparsity: float) -> None:
    w = sparse.pruned_weight(512, 512, f"mixture@{sparsity}")
    parts = (w.reshape(16, 32, 16, 32) != 0).mean(axis=(1, 3))
    assert np.count_nonzero(w) / w.size == pytest.approx(1 - sparsity, abs=0.005)
    assert set(np.unique(parts > 0.99)) == {False, True}
    assert 0.01 < parts[parts < 1].mean() < 0.03 and (parts > 0).all(), "no block is empty"


def test_zeros_of_inputs_come_in_units() -> None:
    x = sparse.granular_inputs(64, 128, (32, 1), 0.75)["x"].reshape(2, 32, 128)
    assert ((x == 0).all(axis=1) == (x == 0).any(axis=1)).all() and 0.6 < (x == 0).mean() < 0.9
    rows = sparse.granular_inputs(64, 128, (1, 0), 0.5)["x"]
    assert ((rows == 0).all(axis=1) == (rows == 0).any(axis=1)).all() and rows.min() == 0


def test_both_forms_of_the_experts_are_the_same_function() -> None:
    sizes = dict(tokens=19, experts=5, chosen=2, hidden=12, wide=20)
    results = [
        onnxruntime_outputs(
            models.build(name, **sizes).SerializeToString(), sparse.moe_inputs(**sizes, padded=name == "moe_padded")
        )[0]
        for name in ("moe_dense", "moe_padded")
    ]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)
    counts = np.bincount(sparse.routed(1024, 64, 2).reshape(-1), minlength=64)
    assert counts.sum() == 2048 and counts[:4].min() > counts[32:].max(), "the first experts are the popular ones"
    assert sparse.padding_ratio(1024, 64, 2) == 64 * counts.max() / 2048


def test_a_dense_twin_computes_the_same_without_zeros() -> None:
    model = prune_channels(models.build("mobilenet_tiny"), 0.5)
    twin, inputs = filled(model), models.random_inputs(model)
    a, b = (onnxruntime_outputs(m.SerializeToString(), inputs)[0] for m in (model, twin))
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    held = [numpy_helper.to_array(t) for t in twin.graph.initializer if t.data_type == 1 and t.dims]
    assert len(held) > 20 and all((array != 0).all() for array in held)
    assert any((numpy_helper.to_array(t) == 0).any() for t in model.graph.initializer if t.dims)
    np.testing.assert_array_equal(filled_array(np.array([0, 2])), [0, 2])


@pytest.mark.parametrize("peer", [ScipyCsr, ScipyBsr])
def test_peers_of_scipy_multiply(peer: type[ScipyCsr], tmp_path: Path) -> None:
    file = models.path("pruned_linear", m=7, n=64, k=96, pattern="block:32x32@0.5")
    inputs = models.random_inputs(onnx.load(file))
    one = peer()
    one.load(file, inputs, 1)
    one.run()
    expected = onnxruntime_outputs(file, inputs)[0]
    np.testing.assert_allclose(one.outputs()[0], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="more than one product"):
        constant_operand(models.build("mlp_tiny"))


def test_a_gain_below_its_target_is_slow() -> None:
    row = Row("c", 1, None, error=0.0, gain_targets={OWN + "dense": 2.0})
    bursts = {"ours": [1.0, 1.0], OWN + "dense": [1.5, 2.0], "peer": [4.0, 4.0]}
    judge(row, bursts, "ours", 1e-4)
    assert row.status == "slow" and row.gains == {OWN + "dense": 1.75} and row.peer == "peer"
    assert exit_code([row], strict=True) == 1 and exit_code([row], strict=False) == 0
    lines = table([row]).splitlines()
    assert "gain over  gain  target" in lines[0] and "dense  1.75    2.00" in lines[1]
    row.status, row.gain_targets = "ok", {OWN + "dense": 1.7}
    judge(row, bursts, "ours", 1e-4)
    assert row.status == "ok"


def test_forms_get_their_own_model_and_inputs(tmp_path: Path) -> None:
    sizes = dict(m=3, n=16, k=64, pattern="1:4", relu=True)
    case = Case("c", "pruned_linear", sizes, inputs=("granular", dict(unit=(1, 8), sparsity=0.5)))
    plain, twin = (prepare(case, Form(n, filled=n == "twin"), tmp_path / n) for n in ("plain", "twin"))
    for name, files in (("plain", plain), ("twin", twin)):
        x, w = arrays.load(Path(files["inputs"]))["x"], weight(onnx.load(files["model"]))
        assert ((x == 0).any(), (w == 0).any()) == ((True, True) if name == "plain" else (False, False))


@pytest.mark.slow
def test_a_row_has_own_rivals_and_a_form_for_the_peers() -> None:
    sizes = dict(tokens=19, experts=5, chosen=2, hidden=12, wide=20)
    padded = Form("padded", "moe_padded", inputs=dict(padded=True), gain=1e-3)
    case = Case("moe", "moe_dense", sizes, inputs=("moe", {}), peers=("onnxruntime",), rivals=(padded,))
    case = replace(case, peers_form=padded, error=1e-3)
    effort = replace(QUICK, seconds=0.005, rounds=3, most_rounds=3)
    row = measure(case, 1, "tilewright", effort, lambda text: None, target="cpu:x86-64-v3")
    assert row.status == "ok", row.message
    assert set(row.all_ms) == {"tilewright", "onnxruntime", OWN + "padded"} and row.error < 1e-3


def test_a_cover_is_decided_before_the_plan() -> None:
    text = tw.compile(
        models.build("pruned_linear", m=4, n=64, k=64),
        pipeline=cover.pipeline("cpu:x86-64-v3", "blocks").upto("normalize"),
        stop_after="normalize",
    )
    assert "tile.sparsity" not in text
    phase = cover.pipeline("cpu:x86-64-v3", "blocks").phase("plan")
    assert str(phase.passes[0]) == "bench-force-cover{cover=blocks}" and len(phase.passes) > 5
    with ir.Context():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, "builtin.module(bench-force-cover{cover=blocks})")
    assert "#tesa = #sparse_tile.tesa<block<[32, 32]>>" in str(module)
    assert str(module).count("tile.sparsity = {cover = #tesa}") == 1


def test_cases_of_the_suite_can_be_built() -> None:
    assert SUITE is suites()["sparse"] or suites()["sparse"].cases == SUITE.cases
    for case in SUITE.cases:
        assert case.inputs is None or case.inputs[0] in sparse.INPUTS
        forms = [*case.rivals, *([case.peers_form] if case.peers_form else [])]
        assert all(form.model is None or form.model in models.MODELS for form in forms)
    targets = {case.name: case.rivals[0].gain for case in SUITE.cases if case.rivals}
    assert (targets["ew_2_4"], targets["vw32_3_32"], targets["unstructured_99"]) == (1.4, 6.0, 12.0)


def test_batches_have_the_padding_that_gains_are_asked_for() -> None:
    assert suites()["padding"].cases == padding.SUITE.cases
    for case in padding.SUITE.cases:
        maker, given = case.inputs or ("", {})
        mask = sparse.INPUTS[maker](**case.sizes, **given)["attention_mask"]
        room = mask.size / mask.sum()
        wanted = 0.9 * room if room > 1 else 1 / 1.03
        assert all(rival.gain == pytest.approx(wanted) for rival in case.rivals)
    assert "whole" in [rival.name for rival in case.rivals]


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in padding.SUITE.cases if case.name.endswith("_30")])
def test_own_form_with_padding_computes_the_same(case: Case) -> None:
    sizes = {**case.sizes, "sequence": 32, "hidden": 32, "intermediate": 64, "heads": 2, "vocabulary": 50}
    given = ("ragged", dict(about=8))
    small = replace(case, sizes=sizes, inputs=given, rivals=case.rivals[:1], peers=("onnxruntime",))
    row = measure(small, 1, "tilewright", replace(QUICK, seconds=0.005, rounds=3, most_rounds=3), lambda text: None)
    assert row.status in ("ok", "slow") and row.error < 1e-4, row.message


@pytest.mark.parametrize(
    ("prune", "part", "zeros"), [(pruned._pointwise, 0.95, 0.95), (pruned._pattern("2:4"), 0, 0.5)]
)
def test_whole_models_and_their_dense_form(prune: pruned.Prune, part: float, zeros: float) -> None:
    small, dense = pruned.Pruned("mobilenet_tiny", prune, part).forms(part)
    held = {t.name: numpy_helper.to_array(t) for t in small.graph.initializer}
    wide = held["features.5.conv_2"]
    assert np.mean(wide == 0) == pytest.approx(zeros, abs=0.01) and (held["features.5.conv_1"] != 0).all()
    a, b = (onnxruntime_outputs(m.SerializeToString(), models.random_inputs(small))[0] for m in (small, dense))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_results_that_are_no_numbers_differ() -> None:
    given = [np.array([1.0, np.nan], np.float32)]
    assert pruned.difference(lambda: given, lambda: given, {}) == math.inf
    assert pruned.difference(lambda: [np.ones(2)], lambda: [np.full(2, 2.0)], {}) == 0.5


def test_models_of_the_zoo_can_be_pruned_by_name() -> None:
    held = models.build("mlp_tiny", pruned="unstructured@0.5").graph.initializer
    assert sum(np.mean(numpy_helper.to_array(t) == 0) > 0.4 for t in held) == 2
