# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bisect: which pass moved a result."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.cli import arguments
from tilewright.core.errors import UserError

_DESCRIPTION = """\
Run the IR after each pass of a target's pipeline on the same inputs, and name the first pass that moved a result.
The baseline is the imported model in the reference interpreter. With -o the IR before and after that pass is written,
and a small module that it still breaks. Exit code 1 where a result moved, 0 where none did.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("bisect", help="find the pass that moved a result", description=_DESCRIPTION)
    parser.add_argument("model", help="an ONNX file or a layer-1 .mlir file")
    parser.add_argument("--target", default="cpu", help="cpu (default) or cpu:NAME: whose passes")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE", help="size of a dimension")
    arguments.add_inputs(parser)
    parser.add_argument(
        "--pipeline",
        metavar="FILE",
        help="passes instead of the target's: a file with builtin.module(pass,pass,...), or that text itself",
    )
    parser.add_argument("--load-python", action="append", default=[], metavar="FILE", help="passes to know; repeatable")
    parser.add_argument(
        "--insert",
        nargs=2,
        action="append",
        default=[],
        metavar=("PASS", "NAME"),
        help="let a pass stand after the pass or phase called NAME; repeatable",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        help="largest difference of floats, as a share of the output's largest value (default: by type, f32 1e-4)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for IR, the reduced module and its inputs")
    parser.set_defaults(run=_bisect)


def _bisect(options: argparse.Namespace) -> int:
    from tilewright.bisection import bisect

    result = bisect(
        options.model,
        _files(options.input),
        options.target,
        shapes=arguments.parse_shapes(options.shape),
        pipeline=_pipeline(options.pipeline),
        load_python=options.load_python,
        insert=options.insert,
        tolerance=options.tolerance,
        seed=options.seed,
        output=options.output,
        tell=lambda line: print(f"  {line}", file=sys.stderr, flush=True),
    )
    print(result)
    return 1 if result.moved else 0


def _files(items: list[str]) -> dict[str, np.ndarray]:
    return dict(arguments.read_input(item) for item in items)


def _pipeline(text: str | None) -> str | None:
    """Return the text of a pipeline, which may stand in a file.

    Raises:
        UserError: neither a pipeline nor a file.
    """
    if text is None or text.lstrip().startswith("builtin.module("):
        return text
    try:
        return Path(text).read_text()
    except OSError as error:
        raise UserError(f"--pipeline {text}: neither a file nor of the form builtin.module(...): {error}") from None
