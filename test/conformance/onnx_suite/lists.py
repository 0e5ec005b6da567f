# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""unsupported.toml, the tests that do not pass yet with what is missing, and how results compare with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

FILE = Path(__file__).resolve().parents[1] / "unsupported.toml"
_HEAD = """\
# ONNX's backend tests that do not pass on target cpu, by suite, with the reason: what is missing.
# tools/conformance fails where a test outside this list fails, and where one inside passes.
# Written by `tools/conformance --update-list`, which keeps the reasons that stand here.
"""


def read() -> dict[str, str]:
    """The reason by "suite/name"."""
    if not FILE.is_file():
        return {}
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {f"{suite}/{name}": reason for suite, rows in tables.items() for name, reason in rows.items()}


def write(reasons: Mapping[str, str]) -> None:
    """Write the list, sorted."""
    suites: dict[str, list[str]] = {}
    for key in sorted(reasons):
        suite, name = key.split("/", 1)
        text = reasons[key].replace("\\", "\\\\").replace('"', '\\"')
        suites.setdefault(suite, []).append(f'{name} = "{text}"')
    body = "\n".join(f"\n[{suite}]\n" + "\n".join(rows) for suite, rows in suites.items())
    FILE.write_text(_HEAD + body + "\n", encoding="utf-8")


def updated(results: Sequence[dict[str, Any]], old: Mapping[str, str]) -> dict[str, str]:
    """The list after a run: what passed goes, what failed stays or comes with what the run said."""
    new = dict(old)
    for result in results:
        key = result["key"]
        if result["state"] == "passed":
            new.pop(key, None)
        elif key not in new:
            new[key] = f"{result['state']}: {result['detail']}"[:200]
    return new


def surprises(results: Sequence[dict[str, Any]], listed: Mapping[str, str]) -> list[str]:
    """Lines about results that the list does not foresee; a crash is always one."""
    lines = []
    for result in results:
        key, state = result["key"], result["state"]
        if state == "passed" and key in listed:
            lines.append(f"{key} passes, but unsupported.toml lists it: {listed[key]}")
        elif state in ("crashed", "timeout") or (state != "passed" and key not in listed):
            lines.append(f"{key} {state}: {result['detail']}")
    return lines
