# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""unsupported.toml, the tests that do not pass yet with what is missing, and how results compare with it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

FOLDER = Path(__file__).resolve().parents[1]
FILE = FOLDER / "unsupported.toml"
#: Width of a line of the lists.
_COLUMNS = 120
_HEAD = """\
# ONNX's backend tests that do not pass on target cpu, by suite, with the reason: what is missing.
# tools/conformance fails where a test outside this list fails, and where one inside passes.
# Written by `tools/conformance --update-list`, which keeps the reasons that stand here.
"""


def own(target: str) -> Path:
    """The list of a target: a kind may have one beside that of the CPU, with what it lacks beyond that."""
    file = FOLDER / f"unsupported_{target.partition(':')[0]}.toml"
    return file if file.is_file() else FILE


def read(target: str = "cpu") -> dict[str, str]:
    """The reason by "suite/name"."""
    return {**_read(FILE), **_read(own(target))}


def _read(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {f"{suite}/{name}": reason for suite, rows in tables.items() for name, reason in rows.items()}


def write(reasons: Mapping[str, str], target: str = "cpu") -> None:
    """Write the list of a target, sorted."""
    file = own(target)
    if file != FILE:
        known = _read(FILE)
        reasons = {key: reason for key, reason in reasons.items() if key not in known}
    suites: dict[str, list[str]] = {}
    for key in sorted(reasons):
        suite, name = key.split("/", 1)
        suites.setdefault(suite, []).append(f"{name} = {_text(reasons[key], len(name) + 3)}")
    body = "\n".join(f"\n[{suite}]\n" + "\n".join(rows) for suite, rows in suites.items())
    kind = target.partition(":")[0]
    head = _HEAD.replace("target cpu", f"target {kind}") if file != FILE else _HEAD
    file.write_text(head + body + "\n", encoding="utf-8")


def _text(reason: str, indent: int) -> str:
    """A reason as TOML's text, over several lines where it does not fit behind `indent` columns."""
    text = reason.replace("\\", "\\\\").replace('"', '\\"')
    if indent + len(text) + 2 <= _COLUMNS:
        return f'"{text}"'
    lines = textwrap.wrap(text, _COLUMNS - 8, break_long_words=False, break_on_hyphens=False)
    return '"""\\\n    ' + " \\\n    ".join(lines) + '"""'


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
