# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `coremesh` dialect: values are arrays; where they lie changes nothing but what `local` sees.

Programs (`coremesh.program`) run as the simulator's values: `tilewright.sim.coremesh_ir.execute` registers that.
"""

from tilewright.reference.coremesh import collectives, products
from tilewright.reference.registry import terminators

terminators("coremesh.yield")

__all__ = ["collectives", "products"]
