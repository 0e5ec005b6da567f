# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tests `-k` names: parts of names, joined as in pytest but for parentheses."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

_PART = re.compile(r"(?P<no>not +)?(?P<part>[^ ,()]+)")


@dataclass(frozen=True)
class Choice:
    """Alternatives, each of which is (part of a name, whether it must be there) for all that must hold."""

    text: str
    alternatives: tuple[tuple[tuple[str, bool], ...], ...]

    @staticmethod
    def parse(text: str) -> Choice:
        """Read `a,b`, `a or b`, `a and not b`; `and` binds closer. An empty text takes all.

        Raises:
            argparse.ArgumentTypeError: parentheses, or words that are not joined.
        """
        alternatives = [part.strip() for part in re.split(r",| or ", text)]
        return Choice(text, tuple(_terms(part, text) for part in alternatives if part))

    def takes(self, name: str) -> bool:
        """Whether a name is chosen."""
        if not self.alternatives:
            return True
        return any(all((part in name) == wanted for part, wanted in terms) for terms in self.alternatives)


def _terms(text: str, whole: str) -> tuple[tuple[str, bool], ...]:
    terms = []
    for term in re.split(r" and ", text):
        found = _PART.fullmatch(term.strip())
        if found is None or found["part"] in ("and", "or", "not"):
            raise argparse.ArgumentTypeError(
                f"{whole!r}: {term.strip()!r} is no part of a name; join parts by ',', 'or', 'and', 'and not'"
            )
        terms.append((found["part"], found["no"] is None))
    return tuple(terms)
