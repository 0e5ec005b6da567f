# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole kernels run to the right numbers, in the fixed order and in random ones, and asynchronous work at any time."""

import pytest
import tensor_kernels

from tilewright import emulate

CASES = tensor_kernels.cases()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("completion", ["late", "early"])
def test_in_order(name, completion):
    case = CASES[name]
    case.check(emulate.load(case.ptx()), emulate.Options(completion=completion, checks=emulate.CHECKS - case.without))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order(name, seed):
    case = CASES[name]
    case.check(emulate.load(case.ptx()), emulate.Options(seed=seed, checks=emulate.CHECKS - case.without))
