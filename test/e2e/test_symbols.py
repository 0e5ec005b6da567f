# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Profilers name kernels: the code of a saved model has a symbol, with a size, for each that the manifest lists."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import models
import tilewright as tw

READER = next((tool for tool in ("nm", "llvm-nm", "llvm-nm-22") if shutil.which(tool)), None)


def functions(library: Path, *options: str) -> dict[str, int]:
    """Name and bytes of each function that a library defines."""
    assert READER is not None
    command = [READER, "--defined-only", "--print-size", *options, str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {row[3]: int(row[1], 16) for row in fields if len(row) == 4 and row[2] in "Tt"}


@pytest.mark.skipif(READER is None, reason="nm is not installed")
@pytest.mark.parametrize("name", ["bert_tiny", "lstm_tiny", pytest.param("minilm", marks=pytest.mark.slow)])
def test_a_symbol_per_kernel(name: str, tmp_path: Path) -> None:
    tw.compile(str(models.path(name)), target="cpu", threads=1).save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model/manifest.json").read_text())
    (library,) = (tmp_path / "model/code").glob("*.so")
    kernels = {kernel["symbol"] for kernel in manifest["kernels"]}
    assert len(kernels) == len(manifest["kernels"]) > 3
    for options in ([], ["--dynamic"]):  # perf reads the former, a stripped file keeps the latter
        found = functions(library, *options)
        assert found.keys() == kernels | {manifest["entry"]}
        assert all(found.values()), "a symbol without a size: perf cannot tell where it ends"
