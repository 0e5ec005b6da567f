# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels from a few lines of PTX."""

from __future__ import annotations

import numpy as np

from tilewright.sim import ptx as emulate


def kernel_text(body: str, parameters: int = 1, threads: int = 32, registers: str = "", head: str = "") -> str:
    """A kernel 'k' with 64-bit parameters p0, p1, ... and registers %p, %h, %r, %f, %d, %q (f64)."""
    listed = ",\n".join(f".param .u64 p{k}" for k in range(parameters))
    return f"""
.version 8.0
.target sm_90a
.address_size 64
{head}
.visible .entry k(
{listed}
)
.maxntid {threads}, 1, 1
{{
.reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<16>;
{registers}
{body}
ret;
}}
"""


def run(text: str, *arrays: np.ndarray, grid=1, name: str = "k", **options) -> list[np.ndarray]:
    """Launch a kernel over arrays (pointers in order); returns what they hold afterwards."""
    launch_options = {key: options.pop(key) for key in ("cluster", "shared_bytes", "block") if key in options}
    memory = emulate.GlobalMemory()
    addresses = []
    for array in arrays:
        addresses.append(memory.alloc(array.nbytes))
        memory.write(addresses[-1], np.ascontiguousarray(array).view(np.uint8))
    emulate.launch(
        emulate.load(text).kernel(name),
        grid,
        [address.to_bytes(8, "little") for address in addresses],
        memory=memory,
        options=emulate.Options(**options),
        **launch_options,
    )
    return [
        memory.read(address, array.nbytes).view(array.dtype).reshape(array.shape)
        for address, array in zip(addresses, arrays, strict=True)
    ]
