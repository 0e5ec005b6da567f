# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public functions: compile and load."""

from __future__ import annotations

from pathlib import Path

from tilewright.runtime import Model, load_model


def load(path: str | Path, threads: int | None = None) -> Model:
    """Load a compiled model.

    Args:
        path: a folder or archive that :meth:`Model.save` (or ``tilewright compile``) made.
        threads: threads per call; default: TILEWRIGHT_THREADS, else all CPUs that this process may use.

    Raises:
        UserError: no such model, a damaged one, one of another version, or one that this CPU cannot run.
    """
    return load_model(path, threads=threads)
