# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on nested lists at one shape of FractalTensor's evaluation each (SOSP 2024), against the machine's limit.

The floor is what the matrix products take at the peak of multiply-adds. The dilated LSTM has 64 steps, not 50, and six
layers; the sentences of BigBird are the shorter ones.
"""

from __future__ import annotations

import dataclasses

from bench.case import Case, Suite
from bench.suites.fractal import list_case

_SHARE = {1: 0.8, 2: 0.8}


def _case(program: str, about: str, **sizes: int) -> Case:
    """Beside PyTorch's library form alone: lists would take minutes."""
    case = list_case(program, about, **sizes)
    return dataclasses.replace(case, peers=("torch",), gains={}, share=_SHARE)


SUITE = Suite(
    "fractal-paper",
    "programs on nested lists at shapes of the paper, against the peak of multiply-adds",
    (
        _case("stacked_lstm", "d32", layers=32, hidden=256, sequence=64, batch=256),
        _case("dilated_lstm", "d6", layers=6, hidden=256, sequence=64, batch=256),
        _case("grid_rnn", "d32", layers=32, hidden=256, rows=10, columns=10, batch=32),
        _case("b2b_gemm", "m8192_n256", m=8192, k=64, n=256, p=64, block=64),
        _case("attention", "s1024", heads=8, sequence=1024, depth=128, block=64, batch=32),
        _case("bigbird", "s4096", sequence=4096, block=64, hidden=512, batch=32),
    ),
)
