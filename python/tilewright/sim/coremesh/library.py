# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading libtwmesh (`lib/Sim/CoreMesh`) through ctypes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from tilewright.core.errors import InternalError

ABI_VERSION = 2


def libtwmesh_path() -> Path:
    """Return where libtwmesh.so is expected."""
    return Path(__file__).parents[1] / "lib" / "libtwmesh.so"


@functools.cache
def libtwmesh() -> ctypes.CDLL:
    """Load libtwmesh once per process. Who calls a function of it declares its arguments.

    Raises:
        InternalError: the library is missing, cannot be loaded, or is of another version.
    """
    path = libtwmesh_path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise InternalError(
            f"cannot load the simulator {path} ({error}); install tilewright again, or build it in a source tree with "
            "tools/setup"
        ) from None
    version = library.twmesh_abi_version()
    if version != ABI_VERSION:
        raise InternalError(f"{path} has ABI version {version}, expected {ABI_VERSION}; install tilewright again")
    library.twmesh_error.restype = ctypes.c_char_p
    return library


def last_error() -> str:
    """Return why the last failed call of this thread failed."""
    return (libtwmesh().twmesh_error() or b"").decode(errors="replace")
