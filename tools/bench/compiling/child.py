# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles one model in this process, without the cache, and prints the times of phases and passes as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time


def main(path: str) -> None:
    """Compile the model in a file."""
    start = time.perf_counter()
    import tilewright as tw
    from tilewright.core import config

    imported = time.perf_counter()
    with config.cache.override(False):
        model = tw.compile(path, target="cpu")
    done = time.perf_counter()
    passes: dict[str, float] = {}
    report = model.report_data()
    phases = report["phases"]
    for phase in phases:
        for name, seconds in phase["passes"]:
            passes[f"{phase['name']}: {name}"] = passes.get(f"{phase['name']}: {name}", 0.0) + seconds
    print(
        json.dumps(
            {
                "import": imported - start,
                "compile": done - imported,
                "cpu": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]),
                "phases": {phase["name"]: phase["seconds"] for phase in phases},
                "passes": passes,
                "kernels": len(model.kernels),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
