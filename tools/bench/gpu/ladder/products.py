# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products as tile kernels by hand, so that a rung proves what it names and the plan has no choice.

What makes code of them is the compiler's own lowering: descriptors of operands, TMA's boxes, barriers, swizzles.
"""

from __future__ import annotations

from dataclasses import dataclass

_TEXT = """
tile.kernel @product(%a: memref<{a_shape}x{left}>, %b: memref<{b_shape}x{element}>, %c: memref<{m}x{n}x{out}>)
    grid(%i, %j) {cluster}attributes {{tile.warps = {warps} : i64{marks}}} {{
  %c0 = arith.constant 0 : index
  %cm = arith.constant {m} : index
  %cn = arith.constant {n} : index
  %ck = arith.constant {k} : index
  %step = arith.constant {bk} : index
  %rows = arith.constant {bm} : index
  %columns = arith.constant {bn} : index
  %row = arith.muli %i, %rows : index
  %column = arith.muli %j, %columns : index
  %vm = arith.subi %cm, %row : index
  %vn = arith.subi %cn, %column : index
  %zero = arith.constant dense<0.0> : !tile.tile<{bm}x{bn}xf32>
  %sum = scf.for %at = %c0 to %ck step %step iter_args(%s = %zero) -> (!tile.tile<{bm}x{bn}xf32>) {{
    %vk = arith.subi %ck, %at : index
    %l = tile.load %a[{a_at}] {a_dims} valid (%vm, %vk) {a_swizzle}
        : memref<{a_shape}x{left}>, !tile.tile<{bm}x{bk}x{left}>
    %x = tile.convert %l : !tile.tile<{bm}x{bk}x{left}> -> !tile.tile<{bm}x{bk}x{element}>
    %y = tile.load %b[{b_at}] {b_dims} valid (%vk, %vn) {b_swizzle}
        : memref<{b_shape}x{element}>, !tile.tile<{bk}x{bn}x{element}>
    %p = tile.mma %x, %y, %s {unit}: !tile.tile<{bm}x{bk}x{element}>, !tile.tile<{bk}x{bn}x{element}>,
                             !tile.tile<{bm}x{bn}xf32>
    scf.yield %p : !tile.tile<{bm}x{bn}xf32>
  }} {{tile.stages = {stages} : i64}}
  %h = tile.convert %sum : !tile.tile<{bm}x{bn}xf32> -> !tile.tile<{bm}x{bn}x{out}>
  tile.store %h, %c[%row, %column] valid (%vm, %vn) : !tile.tile<{bm}x{bn}x{out}>, memref<{m}x{n}x{out}>
  tile.return
}}
"""
#: Where a kind of left operand needs no conversion, its load is the operand.
_CONVERTED = "    %x = tile.convert"


@dataclass(frozen=True)
class Product:
    """`c` [m, n] = `a` `b` in f32, in tiles of `bm` by `bn`, `bk` of k at a step.

    Attributes:
        warps: that compute.
        stages: slots of the ring.
        element: of both operands, as MLIR names it.
        out: element of the result.
        specialized: whether a warp of its own loads by TMA; else all threads copy by cp.async.
        a_by_columns: `a` lies as [k, m]: its rows run along m (MN-major).
        b_by_rows: `b` lies as [k, n] (MN-major); else as [n, k].
        registers: `a` comes as f32 and is converted: the matrix unit reads it from registers.
        mma_sync: products of warps (mma.sync), not of warpgroups.
        staged: boxes of a warp that TMA stores; 0: threads store.
        persistent: CTAs of a multiprocessor that go on to further tiles; 0: a CTA for each tile.
        raster: see `tile.raster`.
        cluster: CTAs of a cluster along rows and columns.
        swizzles: bytes of the swizzle of `a` and `b`; 0: the widest that a row of a step has.
    """

    m: int
    n: int
    k: int
    bm: int = 64
    bn: int = 64
    bk: int = 64
    warps: int = 4
    stages: int = 2
    element: str = "f16"
    out: str = "f32"
    specialized: bool = False
    a_by_columns: bool = False
    b_by_rows: bool = False
    registers: bool = False
    mma_sync: bool = False
    staged: int = 0
    persistent: int = 0
    raster: int = 0
    cluster: tuple[int, int] | None = None
    swizzles: tuple[int, int] = (0, 0)

    @property
    def grid(self) -> list[int]:
        """Tiles along rows and columns."""
        return [-(-self.m // self.bm), -(-self.n // self.bn)]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Of `a`, `b`, `c`, as they lie in memory."""
        a = (self.k, self.m) if self.a_by_columns else (self.m, self.k)
        b = (self.k, self.n) if self.b_by_rows else (self.n, self.k)
        return [a, b, (self.m, self.n)]

    @property
    def text(self) -> str:
        """The kernel."""
        a, b, _ = ("x".join(map(str, shape)) for shape in self.shapes)
        names = ("m", "n", "k", "bm", "bn", "bk", "warps", "stages", "element", "out")
        text = _TEXT.format(
            **{name: getattr(self, name) for name in names},
            left="f32" if self.registers else self.element,
            marks=self._marks,
            cluster="cluster [{}, {}] ".format(*self.cluster) if self.cluster else "",
            unit='{tile.unit = "mma"} ' if self.mma_sync else "",
            a_swizzle=_swizzle(self.swizzles[0]),
            b_swizzle=_swizzle(self.swizzles[1]),
            a_shape=a,
            a_at="%at, %row" if self.a_by_columns else "%row, %at",
            a_dims="dims [1, 0]" if self.a_by_columns else "",
            b_shape=b,
            b_at="%at, %column" if self.b_by_rows else "%column, %at",
            b_dims="" if self.b_by_rows else "dims [1, 0]",
        )
        if self.registers:
            return text
        kept = [line for line in text.splitlines() if not line.startswith(_CONVERTED)]
        return "\n".join(kept).replace("%l = ", "%x = ")

    @property
    def _marks(self) -> str:
        numbers = {"staged": self.staged, "persistent": self.persistent, "raster": self.raster}
        text = "".join(f", tile.{name} = {number} : i64" for name, number in numbers.items() if number)
        if self.cluster:
            text += ", tile.grid = array<i64: {}, {}>".format(*self.grid)
        return (", tile.specialized" if self.specialized else "") + text


def _swizzle(nbytes: int) -> str:
    return f"{{tile.swizzle = {nbytes} : i64}} " if nbytes else ""
