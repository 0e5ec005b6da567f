# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One rung in this process: ``python -m bench.gpu.far.ladder.step PACK RUNG RESULTS [--emulate] [--seed N]``.

Exits with 0 where every check is right, with 1 where one is wrong, with `child.LOST` where the CUDA context
is lost; what happened stands in RESULTS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.gpu.far import child
from bench.gpu.far.ladder.device import Pack, opener
from bench.gpu.far.ladder.report import Report
from bench.gpu.far.ladder.rungs import chosen
from tilewright.core.errors import TilewrightError

#: What the run-time says of errors after which no call of the process works (runtime/gpu/cuda_errors.py).
_LOST = "lost its CUDA context"


def main(given: Sequence[str]) -> int:
    """Run a rung; the run-time's and the device's errors are lines of the report and end it."""
    parser = argparse.ArgumentParser(prog="step")
    parser.add_argument("pack", type=Path)
    parser.add_argument("rung")
    parser.add_argument("results", type=Path)
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args(given)
    pack, report = Pack(arguments.pack), Report(arguments.results, arguments.rung)
    (rung,) = chosen(None, arguments.rung)
    try:
        rung.run(pack, opener(pack.entries["arch"], arguments.emulate, arguments.seed), report)
    except TilewrightError as error:
        print(error, file=sys.stderr)
        return child.LOST if _LOST in error.message else 1
    report.done()
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
