# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sparsify: prune a model's weights."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tilewright.cli import arguments
from tilewright.core.errors import UserError
from tilewright.frontend.pruning.requests import GRAMMAR


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sparsify",
        help="prune the weights of a model",
        description="Write a model with pruned weights, and say what stays and how far the outputs move.",
        epilog=f"patterns:\n{GRAMMAR}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_source(parser, "an ONNX file")
    parser.add_argument("--pattern", required=True, help="what stays or goes, as in 2:4 or block:32x32@0.9 (see below)")
    parser.add_argument("-o", "--output", help="the pruned model (default: MODEL.pruned.onnx)")
    parser.add_argument(
        "--calibration",
        action="append",
        default=[],
        metavar="FILE",
        help="an .npz file with a set of inputs by name: weights are ranked with the norms of what they multiply, and "
        "the change of the outputs is measured on it; repeatable",
    )
    names = "name of a node or weight, with * and ?; repeatable"
    parser.add_argument("--layer", action="append", metavar="NAME", help=f"prune these only: {names}")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help=f"leave these: {names}")
    parser.add_argument("--no-measure", action="store_true", help="do not run the model before and after")
    parser.set_defaults(run=_sparsify)


def _sparsify(options: argparse.Namespace) -> int:
    import tilewright as tw

    if arguments.is_compiled(options.model):
        raise UserError(f"{options.model} is compiled already: sparsify takes the ONNX file it was made from")
    result = tw.sparsify(
        options.model,
        options.pattern,
        [arguments.read_arrays(file) for file in options.calibration] or None,
        layers=options.layer,
        skip=options.skip,
        shapes=arguments.parse_shapes(options.shape),
        measure=not options.no_measure,
        target=options.target,
    )
    path = Path(options.output or Path(options.model).with_suffix(".pruned.onnx").name)
    _save(result.model, path)
    print(result.report)
    print(path)
    return 0


def _save(model: Any, path: Path) -> None:
    """Write the model; weights that a file of protobuf cannot hold go beside it."""
    import onnx

    large = model.ByteSize() >= 1 << 31
    onnx.save(model, str(path), save_as_external_data=large, location=path.name + ".data" if large else None)
