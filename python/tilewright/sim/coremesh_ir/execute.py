# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`coremesh.program` in the reference interpreter: it runs as the simulator's values, without a clock.

Importing this module registers it: the interpreter itself stands below simulators and knows none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh_ir.read import input_names, output_names, read_program


@handles("coremesh.program", whole=True)
def program(_frame: Any, node: Node, *inputs: np.ndarray) -> Any:
    """The outputs of a program; what breaks a rule of the machine is an error."""
    values = node.once("program", lambda: read_program(node.op))
    names = [place.name for place in values.inputs]
    given = {name: array for name, array in zip(input_names(node.op), inputs, strict=True) if name in names}
    try:
        made = run(values, given)
    except UserError as error:
        raise InterpreterError(f"coremesh.program {values.name}: {error}") from None
    out = [made[name] for name in output_names(node.op)]
    return out[0] if len(out) == 1 else out
