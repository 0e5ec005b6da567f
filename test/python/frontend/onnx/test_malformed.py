# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes that ONNX's shape inference accepts, and that are wrong all the same: errors of the user, at the node."""

from __future__ import annotations

import numpy as np
import pytest
from support import node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

CASES = {
    "AffineGrid": ("AffineGrid", [(3,), np.array([1, 1, 2, 2])], {}, "theta needs the shape"),
    "Compress (known)": ("Compress", [(2,), np.ones(3, bool)], {}, "the condition has 3 entries"),
    "Compress by a scalar": ("Compress", [(2,), np.array(True)], {}, "a vector and some dimensions"),
    "CumSum of several axes": ("CumSum", [(4, 2), np.int32([[1, 0]])], {}, "the axis is one number"),
    "GatherElements (known)": (
        "GatherElements",
        [(2, 3), np.zeros((1, 5), int)],
        {},
        "indices have size 5 along axis",
    ),
    "GatherElements of a scalar": ("GatherElements", [(), np.array(0)], {}, "at least one"),
    "GroupNormalization": ("GroupNormalization", [(4,), (1,), (1,)], {"num_groups": 1}, "needs channels"),
    "GroupNormalization of 0": ("GroupNormalization", [(1, 4), (4,), (4,)], {"num_groups": 0}, "into 0 groups"),
    "InstanceNormalization": ("InstanceNormalization", [(1, 2, 3), (), ()], {}, "a vector for each parameter"),
    "LRN": ("LRN", [(1, 4, 2, 2)], {"size": -1}, "-1 neighbouring channels"),
    "RotaryEmbedding of no columns": ("RotaryEmbedding", [(1, 2, 8), (1, 2, 0), (1, 2, 0)], {}, "no coordinates"),
    "RotaryEmbedding by scalars": ("RotaryEmbedding", [(1, 2, 8), (), ()], {}, "need 3 dimensions"),
    "Unsqueeze of one axis twice": ("Unsqueeze", [(2,), np.array([1, 1])], {}, "name a dimension twice"),
}


@pytest.mark.parametrize("name", CASES)
def test_malformed_nodes(name: str) -> None:
    op, inputs, attributes, message = CASES[name]
    arrays = [np.ones(x, np.float32) if isinstance(x, tuple) else x for x in inputs]
    known = range(len(arrays)) if "known" in name else [i for i, x in enumerate(inputs) if not isinstance(x, tuple)]
    model = node_model(op, arrays, known=known, opset=23, **attributes)
    with pytest.raises(UserError, match=message) as caught:
        import_onnx(model)
    assert caught.value.location == f"the_{op}" and caught.value.message.startswith(op)
