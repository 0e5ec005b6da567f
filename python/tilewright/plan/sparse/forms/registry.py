# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All families of kernels, the preferred ones first."""

from __future__ import annotations

from tilewright.plan.sparse.forms.dense import DenseForm
from tilewright.plan.sparse.forms.form import Form
from tilewright.plan.sparse.forms.gemv import Gemv
from tilewright.plan.sparse.forms.rows_in_lanes import RowsInLanes

FORMS: tuple[Form, ...] = (Gemv(), RowsInLanes(), DenseForm())
