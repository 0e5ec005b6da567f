# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``python -m tilewright.passes FILE --pass-pipeline=...``: a pipeline in a process of its own.

LLVM ends the process where it finds no instruction; the caller's goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.core.errors import TilewrightError
from tilewright.passes.run import run_pipeline


def main(arguments: Sequence[str] | None = None) -> int:
    """Run passes on a module and print it; returns the exit status, 1 where a pass or the parser refuses it."""
    parser = argparse.ArgumentParser(prog="tilewright.passes", description=__doc__)
    parser.add_argument("file", help="a module as text; - reads standard input")
    parser.add_argument("--pass-pipeline", required=True, help="e.g. builtin.module(canonicalize)")
    options = parser.parse_args(arguments)
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")

    from tilewright.mlir import ir

    with ir.Context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            run_pipeline(module.operation, options.pass_pipeline, replay=False)
        except (TilewrightError, ir.MLIRError) as error:
            print(error, file=sys.stderr)
            return 1
        print(module)
    return 0


if __name__ == "__main__":
    sys.exit(main())
