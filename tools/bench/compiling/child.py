# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles one model in this process, and prints the times of phases and passes as JSON."""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any


def main() -> None:
    """Compile the model in a file, or the program on lists that it stands for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--program", default="")
    options = parser.parse_args()
    start = time.perf_counter()
    import tilewright as tw
    from tilewright.core import workers

    imported = time.perf_counter()
    source: Any = options.path
    asked: dict[str, Any] = {"emulate": True} if options.target.startswith("cuda") else {}
    if options.program:
        from bench.compiling.programs import function_of

        source, asked["shapes"] = function_of(options.path, options.program)
    begun, spent = time.perf_counter(), _cpu(resource.RUSAGE_SELF)
    model = tw.compile(source, target=options.target, **asked)
    done, cpu = time.perf_counter(), _cpu(resource.RUSAGE_SELF) - spent
    workers.shared_pool().close()  # only then is their time known
    passes: dict[str, float] = {}
    phases = model.report_data()["phases"]
    for phase in phases:
        for name, seconds in phase["passes"]:
            passes[f"{phase['name']}: {name}"] = passes.get(f"{phase['name']}: {name}", 0.0) + seconds
    print(
        json.dumps(
            {
                "import": imported - start,
                "compile": done - begun,
                "cpu": cpu,
                "workers_cpu": _cpu(resource.RUSAGE_CHILDREN),
                "phases": {phase["name"]: phase["seconds"] for phase in phases},
                "passes": passes,
                "kernels": len(model.kernels),
            }
        )
    )


def _cpu(who: int) -> float:
    return sum(resource.getrusage(who)[:2])


if __name__ == "__main__":
    main()
