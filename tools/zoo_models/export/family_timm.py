# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""timm, by the exporter that traces."""

from __future__ import annotations

from pathlib import Path

from .timm_models import models
from .torch_export import Variant, by_exporters


def variants(_out: Path) -> dict[str, Variant]:
    """Each model that the seed draws."""
    return by_exporters(models(), ("script",))
