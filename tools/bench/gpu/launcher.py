# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/bench/run gpu`: packs the suite, and runs it where a GPU (or, asked for, the emulator) is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence

from bench import environment
from bench.gpu.packing import ROOT, pack
from tilewright.runtime.gpu import cuda


def main(given: Sequence[str]) -> int:
    """Pack, then hand the arguments to the pack's own command; returns its exit code, or 2 without a GPU."""
    emulate = "--emulate" in given
    folder = ROOT / "build" / ("gpu-suite-small" if emulate else "gpu-suite")
    reason = None if emulate else cuda.unavailable()
    arch = "sm_90a" if emulate or reason else cuda.arch()
    names = [value.split("=", 1)[1] for value in given if value.startswith("--case=")]
    cases = [name for name in (names[0].split(",") if names else []) if not set(name) & set("*?")]
    pack(folder, arch, emulate, cases, os.cpu_count() or 1, rungs=())
    if reason:
        print(f"no GPU here: {reason}\nThe pack is ready: copy {folder} to a machine with one, and call its `run`.")
        return 2
    python = interpreter()
    if python is None:
        print(f"no PyTorch here: tools/bench/setup-peers installs it. The pack is ready: {folder}")
        return 2
    return subprocess.run([python, str(folder / "run"), *given]).returncode


def interpreter() -> str | None:
    """A Python with PyTorch: this one, else that of the peers' environment (`tools/bench/setup-peers`)."""
    if importlib.util.find_spec("torch"):
        return sys.executable
    found = environment.interpreter("torch")
    return str(found) if found else None
