# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of a model for GPUs inside its artifact: the host program, and a module for each kernel."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.runtime.artifact import CODE, Artifact, write_files
from tilewright.runtime.manifest import Manifest

PROGRAM = f"{CODE}/program.json"


def write(
    folder: Path,
    manifest: Manifest,
    program: Mapping[str, Any],
    modules: Mapping[str, bytes],
    weights: Mapping[str, np.ndarray],
    report: dict[str, Any] | None = None,
) -> None:
    """Write a compiled model to a folder.

    Args:
        folder: is made where missing.
        manifest: without what it says of files.
        program: the host program.
        modules: PTX, and machine code beside it, by file name.
        weights: arrays by name; none where :func:`tilewright.runtime.artifact.write_weights` has written them.
        report: see :func:`tilewright.runtime.artifact.write_artifact`.
    """
    files = {PROGRAM: json.dumps(program).encode(), **{f"{CODE}/{name}": data for name, data in modules.items()}}
    manifest = dataclasses.replace(manifest, code_sha256=_hash(files), code_files=tuple(files))
    write_files(folder, manifest, files, weights, report)


def read(artifact: Artifact) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the host program and the modules by file name.

    Raises:
        UserError: a file is missing or damaged.
    """
    files = {name: artifact.read(name) for name in artifact.manifest.code_files}
    if PROGRAM not in files or _hash(files) != artifact.manifest.code_sha256:
        raise UserError(
            f"{artifact.path}: the code is damaged (its hash differs from the manifest's); compile it again"
        )
    modules = {name.removeprefix(f"{CODE}/"): data for name, data in files.items() if name != PROGRAM}
    return json.loads(files[PROGRAM]), modules


def _hash(files: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, data in sorted(files.items()):
        total.update(f"{name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()
