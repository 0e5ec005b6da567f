"""Hand-written kernels, launched by a hand-written @main, compiled from their text alone and run on this CPU."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

FIXTURES = Path(__file__).parents[2] / "fixtures"

MAIN = """
  ml_program.global private @w_b(#ml_program.extern<tensor<2x70x32xf32>>) : tensor<2x70x32xf32>
  func.func @main(%a: tensor<37x70xf32> {tile.name = "a"}) -> (tensor<37x50xf32> {tile.name = "c"}) {
    %b = ml_program.global_load_const @w_b : tensor<2x70x32xf32>
    %c = tensor.empty() : tensor<37x50xf32>
    %panels = arith.constant 2 : index
    %blocks = arith.constant 5 : index
    %r = tile.launch @gemm grid(%panels, %blocks) ins(%a, %b : tensor<37x70xf32>, tensor<2x70x32xf32>)
        outs(%c : tensor<37x50xf32>) -> (tensor<37x50xf32>)
    return %r : tensor<37x50xf32>
  }
"""


def gemm():
    kernel = (FIXTURES / "gemm_cpu.mlir").read_text()
    return "module {\n" + kernel[kernel.index("tile.kernel") :] + MAIN + "}\n"


@pytest.fixture
def operands():
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((37, 70)), generator.standard_normal((70, 50))
    panels = np.zeros((2, 70, 32))
    panels[0], panels[1, :, :18] = b[:, :32], b[:, 32:]
    return a.astype(np.float32), panels.astype(np.float32), a @ b


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "reference"])
def test_gemm(target, operands):
    a, panels, expected = operands
    model = tw.compile(gemm(), target, weights={"w_b": panels})
    np.testing.assert_allclose(model(a)["c"], expected, rtol=1e-4, atol=1e-4)


def test_the_same_bits_for_any_number_of_threads(operands):
    a, panels, _ = operands
    model = tw.compile(gemm(), weights={"w_b": panels})
    results = []
    for model.threads in (1, 2, 3):
        results.append(model(a)["c"].tobytes())
    assert len(set(results)) == 1


def test_the_report_knows_the_kernel(operands, tmp_path):
    model = tw.compile(gemm(), weights={"w_b": operands[1]})
    (kernel,) = model.kernels
    assert kernel.name == "gemm" and kernel.tasks == 10 and kernel.details["flops"] == 10 * 70 * 2 * 8 * 32
    page = model.explain(tmp_path / "report.html")
    assert page == (tmp_path / "report.html").read_text()
    assert "tile.kernel" in re.sub("<[^>]*>", "", page)
    assert "358 kFLOP" in page
