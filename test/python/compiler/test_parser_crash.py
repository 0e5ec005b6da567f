# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text on which MLIR's own parser crashes: the user's process goes on."""

from __future__ import annotations

import pytest

import tilewright as tw

CRASH = """
func.func @main(%a: tensor<4x8xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce { arith.addf } ins(%a : tensor<4x8xf32>) outs(%out : tensor<4xf32>) dimensions = [14
  return %r : tensor<4xf32>
}
"""


def test_a_crash_of_the_parser_is_an_error() -> None:
    for _ in range(2):
        with pytest.raises(tw.TilewrightError, match="crashed on module .*signal|not a valid MLIR module"):
            tw.compile(CRASH)


def test_what_is_merely_wrong_is_said_by_the_parser() -> None:
    with pytest.raises(tw.UserError, match="not a valid MLIR module"):
        tw.compile("func.func @main() {\n  what\n}\n")
