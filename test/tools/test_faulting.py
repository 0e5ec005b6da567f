# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are broken on purpose: that cases are what they stand for, and that faults in the newest are caught."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tilewright as tw
from faulting import mutate
from faulting.cases import CASES, code_of, inputs_of
from tilewright.sim import ptx as emulate

MARKED = [(name, arch) for name, case in CASES.items() if case.marks for arch in case.archs]


@functools.cache
def compiled(name: str, arch: str):
    """The model of a case."""
    return CASES[name].compile(arch)


@pytest.mark.parametrize(("name", "arch"), MARKED)
def test_a_case_is_a_kernel_of_its_kind(name: str, arch: str) -> None:
    CASES[name].check(code_of(compiled(name, arch)))


def test_another_kind_of_kernel_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no wgmma.mma_async, .* the plan makes another kind"):
        CASES["gemm_persistent"].check(".entry k() { ret; }")


def test_tasks_outnumber_the_blocks_of_a_persistent_grid() -> None:
    trace = emulate.Trace()
    case = CASES["gemm_persistent"]
    model = case.compile("sm_90a", trace=trace)
    model(*inputs_of(model, case))
    (launch,) = trace.launches
    assert launch.grid[0] == case.units


@pytest.mark.parametrize(("name", "blocks"), [("gemm_open_rows", 4 * 2), ("gemm_open_persistent", 2)])
def test_grids_of_open_rows_are_whole_clusters(name: str, blocks: int) -> None:
    """Three tiles of rows are four CTAs, of each of both tiles of lanes; a persistent grid has what the GPU holds."""
    case, trace = CASES[name], emulate.Trace()
    model = case.compile("sm_90a", trace=trace)
    model(*inputs_of(model, case))
    (launch,) = trace.launches
    assert np.prod(launch.grid) == blocks


def test_packed_weights_are_read_as_bytes() -> None:
    """Were they dequantized at compile time, the case would be a product of floats."""
    for arch in CASES["decode_packed"].archs:
        model = compiled("decode_packed", arch)
        assert {weight.dtype for weight in model._manifest.weights if np.prod(weight.shape) >= 1 << 16} == {"i8"}


@pytest.mark.parametrize(
    ("kind", "what", "rule"),
    [
        ("drop", "fence.proxy.async", "race"),
        ("drop", "bar.warp.sync", "race"),
        ("count", "cp.async.bulk.wait_group", "race"),
        ("parity", "mbarrier.try_wait", "dead-lock"),
        ("bytes", "expect_tx", "dead-lock"),
    ],
)
def test_faults_in_blocks_that_run_several_tasks_are_caught(kind: str, what: str, rule: str) -> None:
    model = compiled("gemm_persistent", "sm_90a")
    ((_, text),) = model.ptx().items()
    case = CASES["gemm_persistent"]
    arrays = inputs_of(model, case)
    expected = np.asarray(model(*arrays)[0])
    found = [m for m in mutate.mutants(text) if m.kind == kind and what in m.before]
    assert found

    def run(changed: str, options: emulate.Options) -> None:
        gpu = {**case.gpu, "options": options, "replace": {text.rstrip("\0"): changed}}
        result = np.asarray(tw.load(model.path, emulate=gpu)(*arrays)[0])
        # Equality first: pytest explains an assertion over long operands by their difference, which takes minutes.
        equal = result.tobytes() == expected.tobytes()
        assert equal, "the result differs"

    verdicts = [mutate.judge(run, mutant, orders=0, limit=200_000) for mutant in found]
    assert rule in [verdict.caught for verdict in verdicts], verdicts
