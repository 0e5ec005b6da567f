# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole kernels run to the right numbers, in the fixed order and in random ones, and asynchronous work at any time."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tilewright import emulate

_SPEC = importlib.util.spec_from_file_location("tensor_kernels", Path(__file__).with_name("tensor_kernels.py"))
tensor_kernels = importlib.util.module_from_spec(_SPEC)
sys.modules["tensor_kernels"] = tensor_kernels
_SPEC.loader.exec_module(tensor_kernels)
CASES = tensor_kernels.cases()


def _checks(name):
    """Attention rescales an accumulator that nothing was written to, and then drops it (scale-d is false)."""
    return emulate.CHECKS - {"uninitialised registers"} if name == "attention" else emulate.CHECKS


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("completion", ["late", "early"])
def test_in_order(name, completion):
    case = CASES[name]
    case.check(emulate.load(case.ptx()), emulate.Options(completion=completion, checks=_checks(name)))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order(name, seed):
    case = CASES[name]
    case.check(emulate.load(case.ptx()), emulate.Options(seed=seed, checks=_checks(name)))
