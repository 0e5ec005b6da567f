# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tables name a kernel: its color, its symbol, where in the model it comes from, its operands."""

from __future__ import annotations

import re
from typing import Any

from tilewright.report.html import Raw, join, tag


def dot(color: str) -> Raw:
    """Return a spot of a kernel's color."""
    return Raw(f'<span class="dot" style="background:{color}"></span>')


def title(kernel: Any, color: str) -> Raw:
    """Return the cell that names a kernel."""
    info = kernel.details
    shapes = " · ".join(re.sub(r"^\w+<([^,>]*).*$", r"\1", shape) for shape in info.get("shapes", []))
    places = info.get("locations", [])
    where = ", ".join(places[:2]) + (f", … ({len(places)} places)" if len(places) > 2 else "")
    return join([dot(color), tag("code", kernel.name), tag("small", where), tag("small", shapes)])
