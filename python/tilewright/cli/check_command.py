# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check: what of a model can be compiled."""

from __future__ import annotations

import argparse
from typing import Any

from tilewright.cli import arguments
from tilewright.core.errors import UserError


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check",
        help="say which nodes of a model can be compiled",
        description="List each node with its lowering and results, or the reason why it has none; then the totals.",
        epilog="Exit code 0 where the model can be compiled, 3 where it cannot. Open dimensions count as 1.",
    )
    arguments.add_source(parser, "an ONNX file")
    parser.add_argument("--failing", action="store_true", help="list only the nodes that cannot be compiled")
    parser.add_argument("--summary", action="store_true", help="print the totals only")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    import tilewright as tw

    if arguments.is_compiled(options.model):
        raise UserError(f"{options.model} is compiled already: check takes the ONNX file it was made from")
    verdict = tw.check(options.model, options.target, shapes=arguments.parse_shapes(options.shape))
    table = "" if options.summary else verdict.table(failing=options.failing)
    if table:
        print(table, end="\n\n")
    print(verdict.summary())
    return 0 if verdict.complete else 3
