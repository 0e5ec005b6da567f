# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every environment variable that Tilewright reads, as one typed descriptor each.

``config.cache_dir.get()`` reads the variable at every call (so that tests and tools can set it late);
``with config.threads.override(2): ...`` changes it for a scope (of this thread and the tasks it starts) without
touching the environment. No other module reads ``os.environ`` for a ``TILEWRIGHT_*`` name.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from tilewright.core.errors import UserError

T = TypeVar("T")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Setting(Generic[T]):
    """One environment variable: its name, type, default and meaning.

    Args:
        name: the variable, e.g. ``TILEWRIGHT_CACHE_DIR``.
        parse: turns the text into a value; raises ValueError on bad text.
        default: the value (or a function that makes it) where the variable is not set.
        help: one line for ``tilewright doctor`` and the documentation.
    """

    def __init__(self, name: str, parse: Callable[[str], T], default: T | Callable[[], T], help: str) -> None:
        self.name = name
        self.help = help
        self._parse = parse
        self._default: Any = default
        self._override: contextvars.ContextVar[tuple[T] | None] = contextvars.ContextVar(name, default=None)
        _ALL.append(self)

    def get(self) -> T:
        """Return the value: the innermost override, else the environment's, else the default.

        Raises:
            UserError: the variable's text is not of the expected type.
        """
        override = self._override.get()
        if override is not None:
            return override[0]
        text = os.environ.get(self.name)
        if text is None:
            return cast(T, self._default() if callable(self._default) else self._default)
        try:
            return self._parse(text)
        except ValueError as error:
            raise UserError(f"environment variable {self.name}={text!r}: {error} ({self.help})") from None

    @contextlib.contextmanager
    def override(self, value: T) -> Iterator[None]:
        """Give the setting another value inside a ``with`` block."""
        token = self._override.set((value,))
        try:
            yield
        finally:
            self._override.reset(token)


_ALL: list[Setting] = []


def all_settings() -> tuple[Setting, ...]:
    """Return every setting, in the order of this file."""
    return tuple(_ALL)


def parse_bool(text: str) -> bool:
    """Parse ``1/true/yes/on`` and ``0/false/no/off`` (any case)."""
    low = text.strip().lower()
    if low in _TRUE:
        return True
    if low in _FALSE:
        return False
    raise ValueError("expected 1 or 0")


def parse_size(text: str) -> int:
    """Parse a number of bytes with an optional suffix K, M or G (powers of 1024)."""
    body = text.strip().upper().removesuffix("B")
    suffix = body[-1] if body and body[-1] in _SIZES else ""
    number = body[: len(body) - len(suffix)]
    if not number.isdigit():
        raise ValueError("expected a size such as 512M or 2G")
    return int(number) * _SIZES[suffix]


def _parse_count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("expected a number >= 0")
    return value


def _parse_patterns(text: str) -> tuple[str, ...]:
    """Parse names with ``*``, separated by commas; sorted, each once."""
    return tuple(sorted({part.strip() for part in text.split(",")} - {""}))


def _parse_sanitizer(text: str) -> str:
    """Parse the name of a sanitizer of LLVM."""
    if text not in ("", "address"):
        raise ValueError("the only sanitizer is address")
    return text


def _default_cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tilewright"


def _parse_cache_dir(text: str) -> Path:
    """Parse a folder; an empty text is the default, as in a shell that unsets a variable so, not the current folder."""
    return Path(text) if text else _default_cache_dir()


cache_dir = Setting("TILEWRIGHT_CACHE_DIR", _parse_cache_dir, _default_cache_dir, "folder of the compile cache")
cache = Setting("TILEWRIGHT_CACHE", parse_bool, True, "0 switches the compile cache off")
cache_size = Setting("TILEWRIGHT_CACHE_SIZE", parse_size, 4 << 30, "largest size of the compile cache, e.g. 4G")
threads = Setting("TILEWRIGHT_THREADS", _parse_count, 0, "threads per call by default; 0: all cores available")
compile_workers = Setting(
    "TILEWRIGHT_COMPILE_WORKERS", _parse_count, 0, "processes that run LLVM; 0: one per core available, at most 32"
)
debug = Setting("TILEWRIGHT_DEBUG", parse_bool, False, "1 shows tracebacks in the command line tools")
verify = Setting(
    "TILEWRIGHT_VERIFY",
    parse_bool,
    False,
    "1: the IR is verified after each pass; 0: after each phase, and pass by pass where that fails",
)
dump_ir = Setting("TILEWRIGHT_DUMP_IR", str, "", "folder that receives the IR after every phase")
linker = Setting("TILEWRIGHT_LINKER", str, "", "linker to use instead of the first found of ld.lld-22, ld.lld, ld, cc")
ptxas = Setting(
    "TILEWRIGHT_PTXAS",
    str,
    "ptxas",
    "NVIDIA's assembler, which checks each kernel for a GPU where it is found; 0: no check",
)
hide_features = Setting(
    "TILEWRIGHT_HIDE_FEATURES",
    _parse_patterns,
    (),
    "features of this CPU (LLVM's names) to do without, e.g. avx512*,avxvnni*,amx*: as if on a CPU without AVX-512",
)
huge_weights = Setting(
    "TILEWRIGHT_HUGE_WEIGHTS",
    parse_bool,
    False,
    "1: models for CPUs copy their weights to huge pages, in each process, instead of mapping the file",
)
libtwrt = Setting("TILEWRIGHT_LIBTWRT", str, "", "path of libtwrt.so, instead of the installed one")
libcuda = Setting("TILEWRIGHT_LIBCUDA", str, "", "path of the CUDA driver library, instead of libcuda.so.1")
sanitize = Setting(
    "TILEWRIGHT_SANITIZE",
    _parse_sanitizer,
    "",
    "address: code for CPUs checks each access to memory; processes that run it preload the run-time of clang's ASan",
)
