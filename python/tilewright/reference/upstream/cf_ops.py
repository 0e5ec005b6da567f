# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program demands (`cf.assert`) and what it leaves open (`ub.poison`). Branches between blocks are not read."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import AssertionFailedError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles


@handles("cf.assert")
def assert_(_frame: Any, node: Node, condition: Any) -> None:
    """Go on only where the condition holds (inside a linalg body: at every point).

    Raises:
        AssertionFailedError: it does not; the message is the op's.
    """
    if not np.all(condition):
        raise AssertionFailedError(node.op.attributes["msg"].value)


@handles("ub.poison")
def poison(_frame: Any, node: Node) -> Any:
    """A value that nobody may read: the one that unwritten memory holds."""
    type_ = node.result_type()
    shape, dtype = types.shape_of(type_), types.dtype_of(type_)
    return types.uninitialised(shape, dtype)[()]
