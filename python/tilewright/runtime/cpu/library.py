# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading libtwrt and the code of models through ctypes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from tilewright.core import config
from tilewright.core.errors import InternalError, UserError

ABI_VERSION = 4
#: What the functions of the address sanitizer begin with.
SANITIZER = "__asan_"


class Record(ctypes.Structure):
    """One launch as profile mode records it (twrt_record)."""

    _fields_ = [("kernel", ctypes.c_void_p), ("tasks", ctypes.c_int64), ("nanoseconds", ctypes.c_int64)]


def libtwrt_path() -> Path:
    """Return where libtwrt.so is expected."""
    override = config.libtwrt.get()
    return Path(override) if override else Path(__file__).parents[1] / "lib" / "libtwrt.so"


@functools.lru_cache(maxsize=1)
def libtwrt() -> ctypes.CDLL:
    """Load libtwrt once per process, with its symbols visible to the code of models.

    Raises:
        InternalError: the library is missing, cannot be loaded, or is of another version.
    """
    path = libtwrt_path()
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise InternalError(
            f"cannot load the run-time library {path} ({error}); install tilewright again, "
            "or build it in a source tree with tools/setup"
        ) from None
    version = library.twrt_abi_version()
    if version != ABI_VERSION:
        raise InternalError(f"{path} has ABI version {version}, expected {ABI_VERSION}; install tilewright again")
    pointers = ctypes.POINTER(ctypes.c_void_p)
    library.twrt_call.argtypes = [ctypes.c_void_p, pointers, ctypes.c_int32]
    library.twrt_call.restype = ctypes.c_int32
    library.twrt_call_profiled.argtypes = [
        ctypes.c_void_p,
        pointers,
        ctypes.c_int32,
        ctypes.POINTER(Record),
        ctypes.c_int64,
    ]
    library.twrt_call_profiled.restype = ctypes.c_int64
    library.twrt_error.restype = ctypes.c_char_p
    library.twrt_release.argtypes = [ctypes.c_void_p]
    library.twrt_release.restype = None
    return library


def last_error() -> str:
    """Return why the last failed call of this thread failed."""
    return (libtwrt().twrt_error() or b"").decode(errors="replace")


def default_threads() -> int:
    """Return the threads of a call where nothing is said: TILEWRIGHT_THREADS, else all CPUs that we may use."""
    return config.threads.get() or libtwrt().twrt_default_threads()


def load_code(path: Path) -> ctypes.CDLL:
    """Load a model's shared object; its reference to twrt_launch resolves to libtwrt.

    Raises:
        UserError: the file cannot be loaded here.
    """
    libtwrt()
    try:
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        if SANITIZER in str(error):
            raise UserError(
                f"the model's code {path} checks its accesses (it was compiled with TILEWRIGHT_SANITIZE=address): run "
                "it in a process that preloads the run-time of clang's AddressSanitizer, libclang_rt.asan-x86_64.so"
            ) from None
        raise UserError(f"cannot load the model's code {path}: {error}; compile it again on this machine") from None


def address(library: ctypes.CDLL, symbol: str) -> int | None:
    """Return the address of a function, or None where the library has none of that name."""
    try:
        function = getattr(library, symbol)
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value
