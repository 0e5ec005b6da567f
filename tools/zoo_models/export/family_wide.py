# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wide transformers, by the exporter of PyTorch that traces, or by the other one where it refuses."""

from __future__ import annotations

from pathlib import Path

from .family_transformers import CAPTURED_ONLY
from .hf_wide import MODELS
from .torch_export import Variant, by_exporters


def variants(_out: Path) -> dict[str, Variant]:
    """Each model once."""
    found: dict[str, Variant] = {}
    for name, make in MODELS.items():
        found |= by_exporters({name: make}, ("dynamo" if name in CAPTURED_ONLY else "script",))
    return found
