# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that runs cases; what it works on stands in a file, so that its death says which case it was."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from pathlib import Path

from .campaign import Campaign

CAMPAIGNS = {
    "onnx": ("onnx_files", "OnnxFiles"),
    "ir": ("ir_texts", "IrTexts"),
    "programs": ("programs", "Programs"),
    "gpu": ("programs", "OnGpu"),
    "open": ("programs", "OpenSizes"),
    "mesh": ("programs", "OnMesh"),
    "mesh-sparse": ("sparse_products", "OnMesh"),
    "asan": ("sanitized", "Sanitized"),
    "kernels": ("hand_kernels", "Kernels"),
    "sparse": ("sparse_products", "SparseProducts"),
}


def campaign(name: str) -> Campaign:
    """The campaign of a name."""
    module, cls = CAMPAIGNS[name]
    return getattr(importlib.import_module(f"{__package__}.{module}"), cls)()


def main() -> None:
    """worker.py NAME START COUNT PROGRESS: one JSON line per finding; PROGRESS holds the present seed."""
    name, start, count, progress = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not get between the findings
    work = campaign(name)
    work.prepare()
    if work.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (work.memory, work.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    descriptor = os.open(progress, os.O_WRONLY | os.O_CREAT)
    for seed in range(start, start + count):
        os.pwrite(descriptor, b"%20d" % seed, 0)
        found = work.execute(work.make(seed))
        if found is not None:
            print(json.dumps({"seed": seed, "what": found}), file=replies, flush=True)
    os.pwrite(descriptor, b"%20d" % -1, 0)


if __name__ == "__main__":
    main()
