# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile kernels as PTX that NVIDIA's assembler accepts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lib.Conversion.native import emit
from tilewright import devices
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.pipeline import Phase
from tilewright.passes.registry import load_builtin_passes
from tilewright.pipelines.cuda_lower import LOWER

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def ptx(text: str) -> str:
    """PTX of a module of kernels."""
    with ir.Context() as context:
        load_builtin_passes()
        module = ir.Module.parse(f"module {{\n{text}\n}}", context)
        annotate(module, devices.get("cuda:sm_80"))
        run_pipeline(module.operation, str(Phase("lower", LOWER)))
        return emit("ptx", str(module), "sm_90a", "+ptx80").decode()


def test_gemm_fixture_has_a_kernel_entry() -> None:
    """The Hopper GEMM: one entry, shared memory, products on the matrix unit, no call."""
    text = ptx((FIXTURES / "gemm_sm90a.mlir").read_text())
    assert ".visible .entry gemm(" in text
    assert ".maxntid 128" in text
    assert "bar.sync" in text
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text
    assert "call" not in text


@pytest.mark.skipif(not shutil.which("ptxas"), reason="ptxas is not installed")
def test_ptxas_accepts_the_gemm_fixture(tmp_path: Path) -> None:
    """Assembled for sm_90a."""
    (tmp_path / "gemm.ptx").write_text(ptx((FIXTURES / "gemm_sm90a.mlir").read_text()))
    command = ["ptxas", "-arch=sm_90a", "-v", "gemm.ptx", "-o", "gemm.cubin"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "gemm.cubin").stat().st_size > 0
