# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code for GPUs on the emulator gives the reference interpreter's numbers: kinds x element types x ragged shapes."""

from __future__ import annotations

import gpu_cases
import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.gpu.gpu_model import GpuModel

#: One case in so many runs with every test run, a different part for each architecture; all of them are slow tests.
_PART = 45


def check(case: gpu_cases.Case, target: str) -> None:
    """Compile, run, compare."""
    compiled = tw.compile(case.model, target=target, emulate=True)
    assert isinstance(compiled, GpuModel)
    ours = np.asarray(compiled(*case.inputs)[0])
    theirs = np.asarray(tw.compile(case.model, target="reference")(*case.inputs)[0])
    wrong = gpu_cases.worst(ours, theirs, case.dtype)
    assert wrong is None, wrong


ALL = gpu_cases.cases()


@pytest.mark.parametrize("case", ALL[::_PART], ids=lambda case: case.name)
def test_hopper(case: gpu_cases.Case) -> None:
    check(case, "cuda:sm_90a")


@pytest.mark.parametrize("case", ALL[1::_PART], ids=lambda case: case.name)
def test_ampere(case: gpu_cases.Case) -> None:
    check(case, "cuda:sm_80")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_whole_slice(case: gpu_cases.Case, target: str) -> None:
    check(case, target)
