# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Features of this machine's CPU that ``TILEWRIGHT_HIDE_FEATURES`` hides, so that it acts as a smaller one.

What detects features asks here: the description of the host, and the check of an artifact against the CPU. Processes
that are started from this one inherit the variable.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable

from tilewright.core import config
from tilewright.core.errors import UserError


def visible(features: Iterable[str]) -> tuple[str, ...]:
    """Return the features that no pattern hides, in their order."""
    patterns = config.hide_features.get()
    return tuple(name for name in features if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def check_patterns(known: Iterable[str]) -> None:
    """Check that each pattern means some feature, of this CPU or another one.

    Args:
        known: LLVM's names of the features that there are.

    Raises:
        UserError: a pattern matches none; names the nearest one.
    """
    names = sorted(known)
    for pattern in config.hide_features.get():
        if not fnmatch.filter(names, pattern):
            close = difflib.get_close_matches(pattern, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
            raise UserError(f"{config.hide_features.name}: no feature of a CPU is called {pattern!r}; {hint}")
