# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every fixture, for whichever machine, survives `tile-opt`: as text, in generic form, as bytecode, and idle passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.mlir"))


def tile_opt(data: bytes, *arguments: str) -> bytes:
    """What tile-opt makes of text or bytecode."""
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", "-", *arguments]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_round_trips(file: Path) -> None:
    printed = tile_opt(file.read_bytes())
    assert b'"tile.' not in printed, "an operation has no form of its own"
    assert tile_opt(printed, "--verify-roundtrip") == printed
    generic = tile_opt(printed, "--mlir-print-op-generic")
    assert b'"tile.kernel"' in generic
    assert tile_opt(generic) == printed
    bytecode = tile_opt(printed, "--emit-bytecode")
    assert bytecode.startswith(b"ML\xefR")
    assert tile_opt(bytecode) == printed


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_simplification_reaches_an_end(file: Path) -> None:
    once = tile_opt(file.read_bytes(), "--canonicalize", "--cse")
    assert tile_opt(once, "--canonicalize", "--cse") == once
    assert b"tile.kernel" in once and b"tile.store" in once


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gemm_mesh", "writes into the buffer of another task, which tasks on a CPU do not have"),
        ("softmax_mesh", "writes into the buffer of another task, which tasks on a CPU do not have"),
        ("attention_mesh", "writes into the buffer of another task, which tasks on a CPU do not have"),
        ("softmax_sm90a", "writes into the buffer of another task, which tasks on a CPU do not have"),
        ("sparse_gemm_nm", "this machine has no unit for N:M sparsity"),
    ],
)
def test_what_a_cpu_cannot_do_is_said(name: str, words: str) -> None:
    file = Path(__file__).parents[1] / f"fixtures/{name}.mlir"
    command = [
        sys.executable,
        "-m",
        "tilewright.tools.tile_opt",
        str(file),
        "--tile-set-target=target=cpu",
        "--tile-cpu-lower",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert words in done.stderr
    assert f"{name}.mlir:" in done.stderr, "the error does not say where"
