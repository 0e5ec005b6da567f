# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libtwmesh is found, of the right version, and needs neither MLIR nor LLVM."""

from __future__ import annotations

import subprocess
import sys

from tilewright.sim.coremesh import library


def test_loads_once() -> None:
    assert library.libtwmesh() is library.libtwmesh()


def test_without_mlir() -> None:
    """In a process of its own: nothing of MLIR is mapped."""
    code = (
        "from tilewright.sim.coremesh import library; library.libtwmesh(); assert library.last_error() == '';"
        "print([line for line in open('/proc/self/maps') if 'MLIR' in line or 'LLVM' in line or 'Tilewright' in line])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
