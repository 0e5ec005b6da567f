# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with colors and addresses: what has to keep its place."""

from __future__ import annotations

import pytest

from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes
from tilewright.sim.coremesh.machine import machine


@pytest.mark.parametrize("keep", [(), ("W1",)])
def test_no_other_buffer_lies_where_one_keeps_its_place(keep: tuple[str, ...]) -> None:
    """The second product's sums would lie where the first one's matrix was."""
    fitted, _ = fit_program(matrix_vector(MatrixVector((40, 30, 900), 4, 4)), machine("toy8x8"), keep)
    spans = {one.name: range(one.address or 0, (one.address or 0) + buffer_bytes(one)) for one in fitted.buffers}
    meets = {
        (name, other)
        for name, span in spans.items()
        for other, there in spans.items()
        if name < other and span.start < there.stop and there.start < span.stop
    }
    assert meets and not any({*pair} & {*keep} for pair in meets)
