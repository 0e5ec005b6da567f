# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-sanitize`: functions whose accesses to memory LLVM's AddressSanitizer checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.target_info import options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class Sanitize(Pass):
    """Let LLVM check the accesses of all functions, where the module's options ask for it (`sanitize`).

    Each access is preceded by a look at the shadow of its bytes, and calls the sanitizer's run-time where they are
    poisoned; it is there in processes that preload it. `tile-plan-arena` keeps temporaries apart by poisoned gaps.

    Before:
    ```mlir
    module attributes {tile.options = {sanitize = "address"}} {
      llvm.func @tw_main(%x: !llvm.ptr) {
        llvm.return
      }
    }
    ```
    After:
    ```mlir
    llvm.func @tw_main(%x: !llvm.ptr) attributes {passthrough = ["sanitize_address"]} {
    ```
    """

    name: ClassVar[str] = "tile-sanitize"

    def run(self, op: ir.Operation) -> None:
        """Mark the functions."""
        if options_of(op).sanitize != "address":
            return
        for one in op.regions[0].blocks[0].operations:
            inner = one.operation
            if inner.name == "llvm.func" and inner.regions[0].blocks:
                known = list(inner.attributes["passthrough"]) if "passthrough" in inner.attributes else []
                inner.attributes["passthrough"] = ir.ArrayAttr.get([*known, ir.StringAttr.get("sanitize_address")])
