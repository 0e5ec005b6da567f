# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regular expressions of RE2, which ONNX names, as those of Python that match the same; all others are refused.

Source: https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn

from tilewright.core.errors import UnsupportedError

_FLAGS = re.compile(r"\(\?([ims]+)\)")
_TOKEN = re.compile(
    r"""(?P<escape>\\(?:x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]+\}|.))
      | (?P<members>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^]\\])*\])
      | (?P<group>\((?:\?(?:P?<[A-Za-z_]\w*>|[is]*:))?)
      | (?P<close>\))
      | (?P<count>(?:[*+?]|\{\d+(?:,\d*)?\})[*+?]*)
      | (?P<plain>.)""",
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"\\x[0-9A-Fa-f]{2}|\\.|\[:\^?\w+:\]|--|.", re.DOTALL)
_COUNT = re.compile(r"(?:[*+?]|\{(?P<least>\d+)(?P<more>,(?P<most>\d*))?\})\??")
_MOST = 1000  # that RE2 counts to

# Classes of RE2 are ASCII's; those of Python's strings are Unicode's.
_ESCAPES = {c: rf"(?a:\{c})" for c in "dDwWb"} | {c: rf"\{c}" for c in "Atnrfva"}
_ESCAPES |= {"s": r"[\t\n\f\r ]", "S": r"[^\t\n\f\r ]", "z": r"\Z", "B": r"(?!(?a:\b))"}  # Python's \B is none of ""
_INSIDE = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "} | {c: rf"\{c}" for c in "tnrfva"}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of RE2, to be used with Python.

    Raises:
        UnsupportedError: it is none, or means something else in Python.
    """
    text = _Translation(pattern).text
    try:
        return re.compile(text)
    except re.error as error:
        raise UnsupportedError(f"the pattern {pattern!r} has no meaning here: {error.msg}; {_REMEDY}") from None


@lru_cache(maxsize=256)
def nested(pattern: str) -> bool:
    """Whether something repeated without end is itself so repeated: Python may try all ways to share a string."""
    return _Translation(pattern).nested


_REMEDY = "write it with characters, [...], (...), |, * + ? {n,m} and the classes \\d \\w \\s"


class _Translation:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.nested = False
        self.last = False  # whether the last element repeats something without end
        self.open = [False]  # whether each open group does
        self.opened = False  # whether a group has just begun
        given = _FLAGS.match(pattern)
        self.flags = given.group(1) if given else ""
        self.text = f"(?{self.flags})" if given else ""
        at = given.end() if given else 0
        while at < len(pattern):
            found = _TOKEN.match(pattern, at)
            assert found is not None and found.lastgroup is not None
            self.text += getattr(self, f"_{found.lastgroup}")(found.group())
            self.opened = found.group() == "("
            at = found.end()

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(f"the pattern {self.pattern!r}: {what} does not mean the same here; {_REMEDY}")

    def _escape(self, token: str) -> str:
        self.last, name = False, token[1:]
        if name[0] == "x" and len(name) > 1:
            code = int(name[1:].strip("{}"), 16)
            return re.escape(chr(code)) if code <= 0x10FFFF else self._refuse(token)
        if name.isascii() and not name.isalnum():
            return re.escape(name)
        return _ESCAPES.get(name) or self._refuse(token)

    def _members(self, token: str) -> str:
        self.last = False
        start = re.match(r"\[\^?\]?", token)
        assert start is not None
        if re.search(r".-(?:\\[dws]|\[:)", token[start.end() :]):
            self._refuse(token)
        head = start.group().replace("]", r"\]")
        return head + "".join(map(self._member, _MEMBER.findall(token[start.end() : -1]))) + "]"

    def _member(self, token: str) -> str:
        if token.startswith("[:"):
            return _POSIX.get(token[2:-2]) or self._refuse(token)
        if token == "--" or (token.startswith("\\x") and len(token) == 2):
            self._refuse(token)
        if token in "[&|~":
            return "\\" + token
        if token[0] != "\\" or len(token) > 2 or not token[1].isalnum():
            return token
        return _INSIDE.get(token[1]) or self._refuse(f"{token} between brackets")

    def _group(self, token: str) -> str:
        self.open.append(False)
        return token.replace("(?<", "(?P<")

    def _close(self, token: str) -> str:
        self.last = self.open.pop() if len(self.open) > 1 else False
        self.open[-1] |= self.last
        return token

    def _count(self, token: str) -> str:
        found = _COUNT.fullmatch(token)
        if found is None or self.opened:
            self._refuse(token)
        sizes = [int(n) for n in found.group("least", "most") if n]
        if max(sizes, default=0) > _MOST:
            self._refuse(f"{token}, above {_MOST},")
        endless = token[0] in "*+" or (found["more"] is not None and not found["most"])
        self.nested |= endless and self.last
        self.open[-1] |= endless
        return token

    def _plain(self, token: str) -> str:
        self.last = False
        if token == "$" and "m" not in self.flags:
            return r"\Z"
        return r"\{" if token == "{" else token
