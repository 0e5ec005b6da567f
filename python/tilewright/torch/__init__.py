# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile` with Tilewright; importing this module makes the name ``"tilewright"`` known to PyTorch.

::

    import tilewright.torch
    fast = torch.compile(module.eval(), backend="tilewright", options={"threads": 1})
    with torch.inference_mode():
        y = fast(x)
"""

from __future__ import annotations

from tilewright.torch.dynamo import Settings, backend, register

__all__ = ["Settings", "backend", "register"]

register()
