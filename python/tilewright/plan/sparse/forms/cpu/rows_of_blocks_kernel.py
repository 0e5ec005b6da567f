# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of the kernel of the family `rows_in_lanes` that sums blocks, as text."""

from __future__ import annotations

from tilewright.plan.sparse.forms.cpu.rows_of_blocks import Panels

_UNROLLED = 4


def sums_of_blocks(panels: Panels, row: str, xb: str, element: str) -> str:
    """`%block#j`: what blocks bring to each row of the panel that begins at row %r of the sparse matrix.

    Args:
        panels: what is known of them.
        row: the type of a row of sums.
        xb: the type of %xb, the dense operand in the nearest caches.
        element: the type of values.
    """
    step = next(s for s in range(_UNROLLED, 0, -1) if panels.run % s == 0)
    kinds = ", ".join([row] * panels.rows)
    names = [[f"%b{u}_{j}" for j in range(panels.rows)] for u in range(step + 1)]
    begin = ", ".join(f"%o{j} = %zero" for j in range(panels.rows))
    inner = ", ".join(f"{name} = %o{j}" for j, name in enumerate(names[0]))
    body = "".join(_slice(panels, u, names, row, xb, element) for u in range(step))
    starts = f"memref<{panels.lists + 1}xi32>"
    return f"""
      %panel = arith.divui %r, %ctogether : index
      %blist = arith.divui %panel, %cshared : index
      %part_of = arith.remui %panel, %cshared : index
      %blist_1 = arith.addi %blist, %c1 : index
      %bfrom_i = memref.load %bstarts[%blist] : {starts}
      %bto_i = memref.load %bstarts[%blist_1] : {starts}
      %bfrom = arith.index_cast %bfrom_i : i32 to index
      %bto = arith.index_cast %bto_i : i32 to index
      %brun_step = arith.constant {step} : index
      %block:{panels.rows} = scf.for %e = %bfrom to %bto step %c1 iter_args({begin}) -> ({kinds}) {{
        %at_i = memref.load %bat[%e] : memref<{panels.entries}xi32>
        %at_k = arith.index_cast %at_i : i32 to index
        %at_v = arith.muli %e, %crun : index
        %run:{panels.rows} = scf.for %i = %c0 to %crun step %brun_step iter_args({inner}) -> ({kinds}) {{
          %k_i = arith.addi %at_k, %i : index
          %v_i = arith.addi %at_v, %i : index
{body}
          scf.yield {", ".join(names[step])} : {kinds}
        }}
        scf.yield {", ".join(f"%run#{j}" for j in range(panels.rows))} : {kinds}
      }}"""


def _slice(panels: Panels, u: int, names: list[list[str]], row: str, xb: str, element: str) -> str:
    """One row of the dense operand times an element of each row of the panel."""
    lines = [
        f"%bu{u} = arith.constant {u} : index",
        f"%bk{u} = arith.addi %k_i, %bu{u} : index",
        f"%bp{u} = arith.addi %v_i, %bu{u} : index",
        f"%bx{u} = tile.load %xb[%bk{u}, %c0] : {xb}, {row}",
    ]
    for j in range(panels.rows):
        lines += [
            f"%bj{u}_{j} = arith.constant {j} : index",
            f"%bv{u}_{j} = memref.load %bvalues[%part_of, %bp{u}, %bj{u}_{j}] : {panels.values(element)}",
            f"%bw{u}_{j} = tile.splat %bv{u}_{j} : {element} -> {row}",
            f"{names[u + 1][j]} = math.fma %bw{u}_{j}, %bx{u}, {names[u][j]} : {row}",
        ]
    return "".join(f"          {line}\n" for line in lines)
