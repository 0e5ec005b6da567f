# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-emit-ptx`: what phase `lower` of a GPU left, as PTX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.devices.llvm_target import llvm_target
from tilewright.ir.target_info import device_of, options_of
from tilewright.ir.units import split_kernels
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.targets.emission import unit_codes, write_codes


@register
@dataclass(frozen=True)
class EmitPtx(Pass):
    """Make PTX of the kernels of a `gpu.module`: each becomes a `gpu.binary` that holds its PTX.

    Kernels that differ by name alone share one, as in what compiling a model writes: these are its bytes.

    Before:
    ```mlir
    module attributes {tile.device = #tile.device<name = "small", kind = "gpu", cpu = "sm_80", levels = [],
        units = {count = 1 : i64, frequency = 1.0e9 : f64, registers = 16 : i64, vector_bits = 32 : i64}>} {
      gpu.module @kernels {
        llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
          %c = llvm.mlir.constant(1 : i32) : i32
          llvm.store %c, %x : i32, !llvm.ptr<1>
          llvm.return
        }
      }
    }
    ```
    After:
    ```mlir
    gpu.binary @k [#gpu.object<#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">, assembly = "//\\0A// Generated
    ...
    .visible .entry k(
    ...
    st.global.b32
    ```
    """

    name: ClassVar[str] = "tile-emit-ptx"
    dialects: ClassVar[tuple[str, ...]] = ("gpu", "nvvm")

    output: str = option("", "folder that receives KERNEL.ptx of each kernel; the module then stays as it is")

    def run(self, op: ir.Operation) -> None:
        """Compile the kernels of each `gpu.module`."""
        chip, features = llvm_target(device_of(op, self.name))
        level = options_of(op).opt_level
        inner = [one.operation for one in op.regions[0].blocks[0].operations]
        modules = [one for one in inner if one.name == "gpu.module"]
        if not modules:
            raise UserError(f"{self.name} makes PTX of a gpu.module, and there is none: run --tile-cuda-lower first")
        for module in modules:
            units, _ = split_kernels(module)
            codes = unit_codes(units, (chip, features), level, "ptx")
            if self.output:
                write_codes(self.output, codes, "ptx")
                continue
            target = f'#nvvm.target<O = {level}, chip = "{chip}", features = "{features}">'
            for symbol, code in codes.items():
                text = ir.StringAttr.get(code, op.context)  # prints it quoted
                binary = f"gpu.binary @{symbol} [#gpu.object<{target}, assembly = {text}>]"
                ir.InsertionPoint(module).insert(ir.Operation.parse(binary, context=op.context))
            module.erase()
