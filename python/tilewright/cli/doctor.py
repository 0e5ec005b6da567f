# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``tilewright doctor``: everything that Tilewright needs, whether it is there, and what to do where it is not."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
from collections.abc import Callable

from tilewright import __version__
from tilewright.core import cache, config
from tilewright.core.errors import TilewrightError
from tilewright.targets import registry
from tilewright.targets.base import Finding


def run() -> int:
    """Print all findings; 1 where something that is needed is missing."""
    problems = 0
    print(f"tilewright {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for title, check in CHECKS:
        state, text = _guarded(check)
        problems += state == "missing"
        print(f"  {'!' if state == 'missing' else ' '} {title:<12} {text}")
    print("settings (environment variables):")
    for setting in config.all_settings():
        mark = "*" if setting.name in os.environ else " "
        print(f"  {mark} {setting.name:<28} {setting.get()!s:<32} {setting.help}")
    print(f"{problems} problem(s)" if problems else "all good")
    return 1 if problems else 0


def _guarded(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except TilewrightError as error:
        return "missing", error.message
    except ImportError as error:
        return "missing", f"{error}; build it with tools/setup, or install tilewright again"


def _cpu() -> Finding:
    from tilewright.core.cpuinfo import cpuinfo
    from tilewright.runtime.cpu.cpu_features import host_features
    from tilewright.runtime.cpu.library import default_threads

    widest = next((f for f in ("avx512f", "avx2", "avx", "sse2") if f in host_features()), "no known vectors")
    return "ok", f"{cpuinfo().get('model name', platform.machine())}, {widest}, {default_threads()} thread(s) usable"


def _features() -> Finding:
    from tilewright.runtime.cpu.cpu_features import host_features

    return "ok", " ".join(sorted(host_features()))


def _runtime() -> Finding:
    from tilewright.runtime.cpu import library

    return "ok", f"{library.libtwrt_path()} (ABI {library.libtwrt().twrt_abi_version()})"


def _huge_pages() -> Finding:
    from tilewright.runtime.cpu import memory

    state = memory.huge_pages()
    asked = config.huge_weights.get()
    if state in ("always", "madvise"):
        return "ok", f"{state}: arenas use them, weights {'too' if asked else 'with TILEWRIGHT_HUGE_WEIGHTS=1'}"
    why = f"{state}: write madvise to /sys/kernel/mm/transparent_hugepage/enabled" if state else "this system has none"
    return "note", f"{why}; weights stay mapped{' in spite of TILEWRIGHT_HUGE_WEIGHTS' if asked else ''}"


def _mlir() -> Finding:
    extension = importlib.import_module("tilewright.mlir._mlir_libs._tilewright")
    return "ok", f"MLIR bindings and extension; LLVM calls this CPU {extension.host_cpu_name()}"


def _package(name: str, use: str, needed: bool) -> Callable[[], Finding]:
    def check() -> Finding:
        try:
            return "ok", importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return ("missing" if needed else "note"), f"not installed; {use}: pip install {name}"

    return check


def _cache() -> Finding:
    folder = cache.root()
    if not config.cache.get():
        return "note", "switched off (TILEWRIGHT_CACHE=0)"
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(parent, os.W_OK):
        return "missing", f"{folder} cannot be written; set TILEWRIGHT_CACHE_DIR"
    size = sum(entry.size for entry in cache.entries())
    return "ok", f"{folder}: {size / 1e6:.1f} MB of {config.cache_size.get() / 1e6:.0f} MB"


def _of_targets() -> list[tuple[str, Callable[[], Finding]]]:
    """What each target needs beyond the compiler."""
    return [row for cls in registry.known() for row in cls.findings()]


CHECKS: list[tuple[str, Callable[[], Finding]]] = [
    ("cpu", _cpu),
    ("features", _features),
    ("run-time", _runtime),
    ("huge pages", _huge_pages),
    ("compiler", _mlir),
    *_of_targets(),
    ("cache", _cache),
    ("numpy", _package("numpy", "the run-time needs it", True)),
    ("onnx", _package("onnx", "compiling ONNX models needs it", True)),
    ("onnxruntime", _package("onnxruntime", "for --compare and --against", False)),
    ("torch", _package("torch", "for torch tensors as inputs", False)),
]
