# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernel says of this machine's processor: /proc/cpuinfo."""

from __future__ import annotations

import functools
from pathlib import Path


def parse_cpuinfo(text: str) -> dict[str, str]:
    """Return the fields of the first processor in the text of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            if fields:
                break
            continue
        fields[key.strip()] = value.strip()
    return fields


@functools.lru_cache(maxsize=1)
def cpuinfo() -> dict[str, str]:
    """Return the fields of this machine's first processor ({} where /proc/cpuinfo is missing)."""
    try:
        return parse_cpuinfo(Path("/proc/cpuinfo").read_text())
    except OSError:
        return {}
