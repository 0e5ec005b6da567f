# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What wrong numbers mean, for a rung's line: the diagnosis, or that it does not know."""

from __future__ import annotations

from typing import Any

from bench.gpu.far.ladder.diagnosis.cause import Cause

UNKNOWN = "no one field explains it"


def explain(text: str, cause: Cause | None) -> dict[str, Any]:
    """The text of a check that is wrong, with the cause where there is one: arguments of `Check.wrong`."""
    if cause is None:
        return {"text": f"{text}; {UNKNOWN}", "cause": None}
    told = {"field": cause.field, "expected": cause.expected, "found": list(cause.found), "text": cause.text}
    return {"text": f"{text}; {cause.field}: {cause.text}", "cause": told}
