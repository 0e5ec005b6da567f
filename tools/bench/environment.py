# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The virtual environment of the peers that are no dependency of the project (tools/bench/setup-peers makes it)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEPARATE = (
    "openvino",
    "openvino_sparse",
    "torch",
    "torch_bsr",
    "torch_compile",
    "torch_csr",
    "torch_lists",
    "torch_semi",
    "iree",
)

# Memory that a peer frees stays with its process: a library that allocates its results anew in each run does not pay
# for page faults that its users avoid by other means.
_KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 62), "MALLOC_ARENA_MAX": "1"}


def peers_folder() -> Path:
    """The environment's folder: BENCH_PEERS, else build/peers."""
    return Path(os.environ.get("BENCH_PEERS") or ROOT / "build" / "peers")


def interpreter(peer: str) -> Path | None:
    """The Python that runs a peer; None where its environment has not been made."""
    if peer not in SEPARATE:
        return Path(sys.executable)
    python = peers_folder() / "bin" / "python"
    return python if python.exists() else None


def variables(peer: str, threads: int) -> dict[str, str]:
    """Environment variables of a peer's process."""
    found = {**os.environ, "OMP_NUM_THREADS": str(threads), "KMP_BLOCKTIME": "10"}
    found["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("tools", "test", "python"))
    if peer in SEPARATE:
        found.update(_KEEP_MEMORY)
        found["PATH"] = os.pathsep.join([str(peers_folder() / "bin"), found.get("PATH", "")])
    return found
