# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call returns, as it shows itself."""

from __future__ import annotations

import numpy as np

from tilewright.runtime.result import Outputs


def test_each_kind_of_result_is_described() -> None:
    values = (np.zeros((2, 3), np.float32), np.array(["yes", "no"], object), [{"yes": 0.9, "no": 0.1}])
    shown = "Outputs(y=float32[2, 3], label=string[2], probabilities=list[1])"
    assert repr(Outputs(values, ("y", "label", "probabilities"))) == shown
