# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole kernels run to the right numbers, in the fixed order and in random ones, and asynchronous work at any time."""

import pytest
import tensor_kernels

from tilewright.sim import ptx as emulate

CASES = tensor_kernels.cases()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("completion", ["late", "early"])
def test_in_order(name, completion):
    case = CASES[name]
    case.check(emulate.load(case.ptx()), emulate.Options(completion=completion))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order(name, seed):
    case = CASES[name]
    case.check(emulate.load(case.ptx()), emulate.Options(seed=seed))


def test_trace_counts_products_and_tensor_copies():
    """One tile of 128 x 64 x 640: what the operands and the result have, each moved once."""
    trace = emulate.Trace()
    CASES["hopper_gemm"].check(emulate.load(CASES["hopper_gemm"].ptx()), emulate.Options(trace=trace))
    (launch,) = trace.launches
    assert launch.total("flops") == 2 * 128 * 64 * 640
    copies = [line for line in launch.lines.values() if line.text.startswith("cp.async.bulk.tensor")]
    nbytes = 2 * (128 * 640 + 64 * 640 + 128 * 64)
    assert sum(line.bytes for line in copies) == nbytes and sum(line.sectors for line in copies) == nbytes // 32
    assert "matrix units: 10485760 operations" in launch.summary()
    ampere = emulate.Trace()
    CASES["ampere_gemm"].check(emulate.load(CASES["ampere_gemm"].ptx()), emulate.Options(trace=ampere))
    assert ampere.launches[0].total("flops") == 2 * 128 * 128 * 192
