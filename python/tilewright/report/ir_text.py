# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR as HTML, with operations, symbols and values in colors."""

from __future__ import annotations

import html
import re

from tilewright.report.html import Raw

# `html.escape` leaves these intact; strings appear as &quot;...&quot; and stay plain.
_TOKENS = re.compile(r"(?P<o>\b[a-z_]+\.[a-z_.0-9]+\b)|(?P<s>[@!#][\w$.]+)|(?P<v>%[\w$.#]+)")
#: Longer texts stay plain: coloring triples their size.
_LIMIT = 250_000


def highlight(text: str) -> Raw:
    """Return IR as HTML."""
    safe = html.escape(text, quote=False)
    if len(safe) > _LIMIT:
        return Raw(safe)
    return Raw(_TOKENS.sub(_colored, safe))


def _colored(match: re.Match) -> str:
    return f'<span class="{match.lastgroup}">{match.group(0)}</span>'
