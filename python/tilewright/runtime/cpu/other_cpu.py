# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model compiled for a CPU that this machine is not: it can be saved and looked at, not called."""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright.core.errors import UserError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.compiled import CompiledModel


class OtherCpuModel(CompiledModel):
    """A compiled model whose code needs features that this CPU lacks.

    Args:
        artifact: the compiled model on disk.
        reason: why this machine cannot run it, in words.

    Raises (when called):
        UserError: always, with the reason.
    """

    def __init__(self, artifact: Artifact, reason: str) -> None:
        super().__init__(artifact)
        self._reason = reason

    @property
    def runs_on(self) -> str:
        """What runs a call, in words."""
        return f"another machine: {self._reason}"

    def __call__(self, *_args: Any, **_named: Any) -> NoReturn:
        """Say why it cannot run here."""
        raise UserError(self._reason)

    def profile(self, *_args: Any, **_named: Any) -> NoReturn:
        """Say why it cannot run here."""
        raise UserError(self._reason)
