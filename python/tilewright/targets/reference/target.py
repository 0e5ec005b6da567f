# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``reference``: the interpreter, slow and exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.core.errors import UserError
from tilewright.targets.base import Target
from tilewright.targets.rules import Rule

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions


class ReferenceTarget(Target):
    """What phase `import` makes, interpreted: there is nothing to plan for and nothing to save."""

    kind = "reference"
    forms = ("reference",)
    compiles = False
    runs_apart = False
    rules = (
        Rule(
            lambda t, o: o.stop_after not in (None, "import"),
            "target 'reference' interprets what phase import makes: stop_after can only be 'import'",
        ),
    )

    def check_name(self) -> None:
        """Refuse machines: there is one interpreter."""
        if self.name != self.kind:
            from tilewright.targets.registry import forms

            raise UserError(f"unknown target {self.name!r}; this version has {forms()}")

    def interpreted(self, source: Any, options: CompileOptions) -> Any:
        """Return a :class:`~tilewright.targets.reference.model.ReferenceModel`."""
        from tilewright.runtime.structure import structured
        from tilewright.targets.reference.model import ReferenceModel

        return structured(ReferenceModel(source, dict(options.shapes) or None), source.form)
