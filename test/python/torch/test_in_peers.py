# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile in the environment of the benchmarks' peers, which has PyTorch where that of the tests has not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.environment import interpreter, variables

PROGRAM = """
import logging
import torch
import tilewright.torch

class Broken(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        y = self.first(x).relu()
        y = -y if y.sum() > 1e6 else y + 1
        return {"out": self.last(y), "rows": x.shape[0]}

module = Broken().eval()
fast = torch.compile(module, backend="tilewright", options={"threads": 1, "fallback": "error"})
with torch.inference_mode():
    for size in (2, 3, 5):
        x = torch.randn(size, 8)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
print("equal")
"""


@pytest.mark.slow
def test_a_module_with_a_graph_break_in_three_sizes(tmp_path: Path) -> None:
    python = interpreter("torch")
    if python is None or subprocess.run([python, "-c", "import onnxscript"], capture_output=True).returncode:
        pytest.skip("the peers are not installed (tools/bench/setup-peers)")
    variable = {**variables("torch", 1), "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([python, "-c", PROGRAM], env=variable, capture_output=True, text=True)
    assert done.stdout.endswith("equal\n"), done.stderr[-2000:]
