# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-emit-cpu`: what phase `lower` of a CPU left, as assembly or object code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.devices.llvm_target import llvm_target
from tilewright.ir.target_info import device_of, options_of
from tilewright.ir.units import split, symbol_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.targets.emission import unit_codes, write_codes

_ENTRY = "tw_main"
_ENDINGS = {"assembly": "s", "object": "o"}


@register
@dataclass(frozen=True)
class EmitCpu(Pass):
    """Make assembly or object code of a module of the llvm dialect, function by function.

    Kernels that differ by name alone share one, as in what compiling a model links: these are its bytes. Without
    `output` the assembly takes the place of the functions, as `llvm.module_asm`.

    Before:
    ```mlir
    module attributes {tile.device = #tile.device<name = "small", kind = "cpu", cpu = "x86-64-v3", levels = [],
        units = {count = 1 : i64, frequency = 1.0e9 : f64, registers = 16 : i64, vector_bits = 256 : i64}>} {
      llvm.func @tw_main(%x: !llvm.ptr) {
        %c = llvm.mlir.constant(1 : i32) : i32
        llvm.store %c, %x : i32, !llvm.ptr
        llvm.return
      }
    }
    ```
    After:
    ```mlir
    module attributes {llvm.module_asm = [
    ...
    tw_main:
    ...
    movl
    ```
    """

    name: ClassVar[str] = "tile-emit-cpu"

    format: str = option("assembly", "assembly, or object: ELF relocatables")
    output: str = option("", "folder that receives SYMBOL.s or SYMBOL.o; the module then stays as it is")

    def run(self, op: ir.Operation) -> None:
        """Compile the functions."""
        if self.format not in _ENDINGS:
            raise UserError(f"{self.name}: there is no format '{self.format}'; use {' or '.join(_ENDINGS)}")
        if self.format == "object" and not self.output:
            raise UserError(f"{self.name}: object code goes to files: give output=FOLDER")
        inner = [one.operation for one in op.regions[0].blocks[0].operations]
        if not any(one.name == "llvm.func" and symbol_of(one) == _ENTRY for one in inner):
            raise UserError(f"{self.name} makes code of @{_ENTRY} in the llvm dialect: run --tile-cpu-lower first")
        units, _ = split(op, _ENTRY)
        codes = unit_codes(units, llvm_target(device_of(op, self.name)), options_of(op).opt_level, self.format)
        if self.output:
            return write_codes(self.output, codes, _ENDINGS[self.format])
        for one in inner:
            one.erase()
        texts = [ir.StringAttr.get(code.decode()) for code in codes.values()]
        op.attributes["llvm.module_asm"] = ir.ArrayAttr.get(texts)
