# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every reader of a program refuses before it looks at a core."""

from dataclasses import replace

import pytest
from small_programs import chain

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.grid import Grid


@pytest.mark.parametrize("read", [Field, Grid])
@pytest.mark.parametrize(("fields", "holds"), [({"shape": (1, 0)}, r"1 slots .* \[1, 0\]"), ({"slots": 0}, "0 slots")])
def test_buffers_of_nothing(read, fields, holds):
    program = chain(3, 1, 4)
    read(program)
    buffers = tuple(replace(buffer, **fields) for buffer in program.buffers)
    with pytest.raises(UserError, match=f"Buffer 'v' of program .* holds nothing: {holds}"):
        read(replace(program, buffers=buffers))


@pytest.mark.parametrize("read", [Field, Grid])
def test_grids_of_nothing(read):
    with pytest.raises(UserError, match="0 x 3 cores, which has none"):
        read(replace(chain(3), height=0))
