# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are broken on purpose: that cases are what they stand for, and that faults in the newest are caught."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tilewright as tw
from faulting.cases import CASES, random_inputs
from tilewright import emulate
from tilewright.emulate import mutate
from tilewright.runtime.dtypes import to_numpy

MARKED = [(name, arch) for name, case in CASES.items() if case.marks for arch in case.archs]


@functools.cache
def compiled(name: str, arch: str):
    """The model of a case."""
    case = CASES[name]
    gpu = {"multiprocessors": case.units} if case.units else {}
    return tw.compile(case.build(), target=f"cuda:{arch}", pipeline=case.pipeline(arch), emulate=gpu)


@pytest.mark.parametrize(("name", "arch"), MARKED)
def test_a_case_is_a_kernel_of_its_kind(name: str, arch: str) -> None:
    CASES[name].check("".join(compiled(name, arch).ptx().values()))


def test_another_kind_of_kernel_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no wgmma.mma_async, .* the plan makes another kind"):
        CASES["gemm_persistent"].check(".entry k() { ret; }")


def test_tasks_outnumber_the_blocks_of_a_persistent_grid() -> None:
    trace = emulate.Trace()
    case = CASES["gemm_persistent"]
    gpu = {"multiprocessors": case.units, "trace": trace}
    model = tw.compile(case.build(), target="cuda:sm_90a", pipeline=case.pipeline("sm_90a"), emulate=gpu)
    model(*inputs(model))
    (launch,) = trace.launches
    assert launch.grid[0] == case.units


def inputs(model) -> list[np.ndarray]:
    """Random inputs."""
    random = np.random.default_rng(0)
    return [random_inputs(to_numpy(spec.dtype), spec.shape, random) for spec in model.inputs]


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
    arrays = inputs(model)
    expected = np.asarray(model(*arrays)[0])
    found = [m for m in mutate.mutants(text) if m.kind == kind and what in m.before]
    assert found

    def run(changed: str, options: emulate.Options) -> None:
        gpu = {
            "multiprocessors": CASES["gemm_persistent"].units,
            "options": options,
            "replace": {text.rstrip("\0"): changed},
        }
        result = np.asarray(tw.load(model.path, emulate=gpu)(*arrays)[0])
        assert result.tobytes() == expected.tobytes()

    verdicts = [mutate.judge(run, mutant, orders=0, limit=200_000) for mutant in found]
    assert rule in [verdict.caught for verdict in verdicts], verdicts
