# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer 2 and the host side of layer 3: `tile.group`, `tile.launch`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference.program import Node
from tilewright.reference.registry import handles, terminators
from tilewright.reference.tile.program import start
from tilewright.reference.upstream.scf_ops import results

terminators("tile.yield", "tile.return")


@handles("tile.group")
def group(frame: Any, node: Node, *operands: Any) -> Any:
    """A group means what its body means; levels and tile sizes are decisions, not semantics."""
    return results(node, frame.run(node.body, operands))


@handles("tile.launch")
def launch(frame: Any, node: Node, *operands: Any) -> Any:
    """Run a kernel over a grid. Tensor outputs are copied first, and are the results."""
    name = node.op.attributes["kernel"].value
    grid, inputs, outputs = node.groups(operands)
    targets = [np.array(output) for output in outputs] if node.results else list(outputs)
    start(frame.machine, name, [*inputs, *targets], [int(n) for n in grid])
    return results(node, targets) if node.results else None
