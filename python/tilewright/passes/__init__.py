# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes in Python, as full citizens beside those in C++.

A pass is a frozen dataclass; its fields are its options::

    @register
    @dataclass(frozen=True)
    class DropEmpty(Pass):
        '''Erase functions without a body.'''

        name: ClassVar[str] = "my-drop-empty"
        max_ops: int = option(0, "largest number of ops that counts as empty")

        def run(self, op: ir.Operation) -> None: ...

From then on ``tile-opt``, textual pipelines and :func:`run_pipeline` know ``my-drop-empty{max-ops=2}`` like any
other pass. Nothing here imports the MLIR bindings before a pass runs, so that ``tile-opt`` starts fast.
"""

from tilewright.ir.diagnostics import located, remark
from tilewright.passes.base import Pass, device_option, option
from tilewright.passes.patterns import apply_patterns, rewrite_pattern
from tilewright.passes.registry import load_builtin_passes, load_file, register, registered_passes
from tilewright.passes.run import Diagnostic, PipelineRun, run_pipeline

__all__ = [
    "Diagnostic",
    "Pass",
    "PipelineRun",
    "apply_patterns",
    "device_option",
    "load_builtin_passes",
    "load_file",
    "located",
    "option",
    "register",
    "registered_passes",
    "remark",
    "rewrite_pattern",
    "run_pipeline",
]
