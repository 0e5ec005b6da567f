# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `index` dialect: the integer functions of `arith` on 64-bit indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.core.arithmetic import FUNCTIONS, compare_integers
from tilewright.reference import types
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, pure

_SAME = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "shl": "shli",
    "divs": "divsi",
    "divu": "divui",
    "rems": "remsi",
    "remu": "remui",
    "maxs": "maxsi",
    "maxu": "maxui",
    "mins": "minsi",
    "minu": "minui",
    "shrs": "shrsi",
    "shru": "shrui",
    "ceildivs": "ceildivsi",
    "ceildivu": "ceildivui",
    "floordivs": "floordivsi",
}
for _name, _arith in _SAME.items():
    pure(f"index.{_name}", FUNCTIONS[f"arith.{_arith}"])
pure("index.sizeof", lambda: np.int64(64))


@handles("index.constant", "index.bool.constant")
def constant(_frame: Any, node: Node) -> Any:
    """An index, or an i1."""
    return node.once("value", lambda: types.constant(node.op.attributes["value"]))


@handles("index.cmp")
def cmp(_frame: Any, node: Node, a: Any, b: Any) -> Any:
    """Compare as `arith.cmpi` does."""
    return compare_integers(node.once("predicate", lambda: _predicate(node)), a, b)


def _predicate(node: Node) -> str:
    return str(node.op.attributes["pred"]).split()[-1].rstrip(")>")
