# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All arithmetic on tensors comes from kernels made by passes: none from the run-time, a library, or assembly."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import models
import tilewright as tw
from tilewright.runtime.cpu import library

NAMES = [
    "bert_tiny",
    "resnet_tiny",
    "vit_tiny",
    "lstm_tiny",
    pytest.param("minilm", marks=pytest.mark.slow),
]
#: What LLVM may call for a loop that it recognizes: bytes are moved, nothing is computed.
MOVERS = {"memset", "memcpy", "memmove"}
#: Hints of a thread that waits, and the mode in which kernels compute.
HARMLESS = ("_mm_pause", 'asm volatile("yield"', "_mm_getcsr", "_mm_setcsr")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_code_calls_nothing_but_the_scheduler(name: str) -> None:
    """No math library, no BLAS, no assembly: neither in the IR nor in the shared object.

    Beside the scheduler, there is what ends a run with a word for which there is no embedding.
    """
    ours = {"twrt_launch", "twrt_fail_at"}
    file = str(models.path(name))
    text = tw.compile(file, target="cpu", stop_after="lower")
    assert set(re.findall(r"llvm\.call (\S+?)\(", text)) <= {f"@{name}" for name in ours}
    assert "asm" not in set(re.findall(r"[a-z]+", text))
    (code,) = (tw.compile(file, target="cpu").path / "code").glob("*.so")
    if shutil.which("nm"):
        command = ["nm", "--dynamic", "--undefined-only", str(code)]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "twrt_launch" in listed
        assert {line.split()[-1].partition("@")[0] for line in listed.splitlines()} <= MOVERS | ours


@pytest.mark.skipif(not shutil.which("objdump"), reason="objdump is not installed")
def test_the_run_time_computes_nothing() -> None:
    """It schedules: no packed and no single-precision arithmetic in its code (a CPU quota is divided in doubles)."""
    command = ["objdump", "-d", "--no-show-raw-insn", library.libtwrt()._name]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    instructions = set(re.findall(r"^\s*[0-9a-f]+:\s+(\S+)", listed, re.MULTILINE))
    assert {"mov", "call"} <= instructions
    arithmetic = re.compile(r"v?(add|sub|mul|div|max|min|sqrt)(ps|ss|pd)|vfn?m(add|sub).*|.*dp(ps|pd|b.*|w.*)")
    assert [name for name in instructions if arithmetic.fullmatch(name)] == []


def test_sources_of_the_run_time_know_no_element_type() -> None:
    folder = Path(__file__).resolve().parents[2] / "lib/Runtime"
    sources = [path for path in folder.rglob("*") if path.suffix in (".cpp", ".h", ".c")]
    assert sources
    for path in sources:
        text = path.read_text()
        for harmless in HARMLESS:
            text = text.replace(harmless, "")
        assert not re.search(r"\bfloat\b|_mm\d*_|\basm\b", text), path.name
