# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""explain(): one self-contained HTML page about a compiled model.

It needs the artifact only, not the compiler: the compiler leaves its IR, times and decisions in report.json.gz.
"""

from __future__ import annotations

from typing import Any

from tilewright.core.errors import UserError
from tilewright.report.measure import Measurement, measure_model
from tilewright.report.page import page


def render(model: Any, *, measure: bool = True) -> str:
    """Return the page as text.

    Args:
        model: a loaded :class:`tilewright.Model`.
        measure: run it a few times on random inputs to time each kernel.
    """
    measured: Measurement | None = None
    report = model.report_data()
    if measure:
        try:
            measured = measure_model(model)
        except UserError as error:  # an index or a shape that random numbers do not make
            remark = {"phase": "run", "severity": "remark", "location": "", "message": f"not measured: {error}"}
            report = {**report, "remarks": [*report.get("remarks", []), remark]}
    return page(model, report, measured)
