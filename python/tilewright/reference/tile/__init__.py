# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operations of the `tile` dialect mean: graphs, programs, tasks that run side by side."""

from tilewright.reference.tile import (
    compute,
    graph,
    layout,
    memory,
    program,
    task_ops,
    tasks,
)

__all__ = [
    "compute",
    "graph",
    "layout",
    "memory",
    "program",
    "task_ops",
    "tasks",
]
