# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All families of kernels, the preferred ones first."""

from __future__ import annotations

from tilewright.plan.sparse.dynamic.condensed import CondensedForm
from tilewright.plan.sparse.dynamic.gpu_condensed import GpuCondensedForm
from tilewright.plan.sparse.forms.cpu.blocks import BlocksForm
from tilewright.plan.sparse.forms.cpu.gemv import Gemv
from tilewright.plan.sparse.forms.cpu.panels import PanelsForm
from tilewright.plan.sparse.forms.cpu.rows_in_lanes import RowsInLanes
from tilewright.plan.sparse.forms.dense import DenseForm
from tilewright.plan.sparse.forms.form import Form
from tilewright.plan.sparse.forms.gpu.blocks import GpuBlocks
from tilewright.plan.sparse.forms.gpu.mma_sp import GpuMmaSp
from tilewright.plan.sparse.forms.gpu.nm import GpuNM

FORMS: tuple[Form, ...] = (
    CondensedForm(),
    Gemv(),
    RowsInLanes(),
    PanelsForm(),
    BlocksForm(),
    GpuMmaSp(),
    GpuBlocks(),
    GpuNM(),
    GpuCondensedForm(),
    DenseForm(),
)
