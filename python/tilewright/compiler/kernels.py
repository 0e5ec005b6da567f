# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tw.kernel`: a kernel as MLIR text or from a Python function, as a callable."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.compiler.api import compile
from tilewright.core.errors import UserError
from tilewright.core.options import CompileOptions
from tilewright.kernels import Kernel, build, read_kernel
from tilewright.targets.registry import checked
from tilewright.targets.rules import check


def kernel(
    source: str | Path | Callable[..., None],
    *,
    name: str | None = None,
    grid: Sequence[int] | Callable[..., Sequence[int]] | None = None,
    target: str = "cpu",
    threads: int | None = None,
    emulate: bool | Mapping[str, Any] = False,
    checks: bool = True,
) -> Kernel:
    """Make one `tile.kernel` callable.

    A Python function is called once, with its parameters as SSA values, to build the kernel's body with the builders of
    :mod:`tilewright.dialects.tile` and upstream's dialects. A parameter with an annotation is an argument of that type
    (a string as in MLIR); those after them, without one, are the coordinates of the task in the grid::

        @tw.kernel
        def twice(x: "memref<?x64xf32>", y: "memref<?x64xf32>", i):
            a = tile.load(tile_type(1, 64), x, [i, 0])
            tile.store(arith.addf(a, a), y, [i, 0])

        y = twice(x, np.empty_like(x), grid=[len(x)])["y"]

    Args:
        source: MLIR text with a kernel, the path of such a file (.mlir), or a Python function that builds one.
        name: which kernel, where the text has several.
        grid: bounds of the grid for calls that give none, or a function of the arguments that returns them.
        target: ``cpu``, ``cpu:NAME``, ``cuda:ARCH``, or ``reference`` (the interpreter).
        threads: threads per call; default: all CPUs.
        emulate: for a ``cuda`` target, run on the emulator, as in :func:`tilewright.compile`.
        checks: a call where some task would reach out of an argument is an error, before it runs where that is known
            then, else once it ran (with that access left undone). False: the kernel runs as it is.

    Returns:
        A :class:`Kernel`. Sizes that the kernel leaves open (`?`) are fixed by each call; the code for them is cached.

    Raises:
        UserError: no such file, no such kernel, a malformed one, or no such target.
    """
    check(checked(target), CompileOptions(emulate=emulate))
    if isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source):
        path = Path(source)
        if not path.is_file():
            raise UserError(f"there is no kernel file {path}; the text of a kernel has several lines")
        text = path.read_text(encoding="utf-8")
    elif callable(source):
        text = build(source)
    elif isinstance(source, str):
        text = source
    else:
        raise UserError(f"a kernel is MLIR text, a file, or a Python function, not a {type(source).__name__}")
    signature = read_kernel(text, name)
    return Kernel(signature, compile, grid=grid, target=target, threads=threads, emulate=emulate, checks=checks)
