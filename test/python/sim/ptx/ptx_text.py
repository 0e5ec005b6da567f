# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small PTX kernels for tests: the frame around a body, a run of it, and ptxas as a second opinion on the syntax."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from tilewright.sim import ptx as emulate

PTXAS = shutil.which("ptxas")


def kernel(body: str, params: int = 2, threads: int = 32, shared: int = 0, maps: int = 0, cluster: int = 1) -> str:
    """PTX of a kernel `k` with 64-bit parameters p0, p1, ... and tensor maps m0, m1, ...

    The body finds the parameters in %rd0, %rd1, ..., the generic addresses of the maps in %rm0, ..., %tid.x in %t,
    and its shared memory under the name `sh`. %r, %rd, %rs, %f, %fd, %p are registers of every kind.
    """
    declared = [f".param .u64 p{i}" for i in range(params)]
    declared += [f".param .align 64 .b8 m{i}[128]" for i in range(maps)]
    loads = "".join(f"  ld.param.u64 %rd{i}, [p{i}];\n" for i in range(params))
    loads += "".join(f"  mov.b64 %rm{i}, m{i};\n  cvta.param.u64 %rm{i}, %rm{i};\n" for i in range(maps))
    clusters = f".explicitcluster .reqnctapercluster {cluster}, 1, 1\n" if cluster > 1 else ""
    return f"""
.version 9.0
.target sm_90a
.address_size 64
{f".shared .align 1024 .b8 sh[{shared}];" if shared else ""}
.visible .entry k({", ".join(declared)})
.reqntid {threads}, 1, 1
{clusters}{{
  .reg .pred %p<16>;
  .reg .b16 %rs<64>;
  .reg .b32 %r<320>;
  .reg .b64 %rd<64>;
  .reg .b64 %rm<8>;
  .reg .f32 %f<320>;
  .reg .f64 %fd<64>;
  .reg .b32 %t;
  mov.u32 %t, %tid.x;
{loads}{body}
  ret;
}}
"""


def run(
    ptx: str,
    arrays: list[np.ndarray],
    grid: int = 1,
    maps: tuple = (),
    options: emulate.Options | None = None,
) -> list[np.ndarray]:
    """Run kernel `k` with the addresses of arrays as parameters; returns what is in them afterwards.

    maps: functions of the arrays' addresses to a tensor map each.
    """
    memory = emulate.GlobalMemory()
    addresses = []
    for array in arrays:
        addresses.append(memory.alloc(array.nbytes))
        memory.write(addresses[-1], np.ascontiguousarray(array).view(np.uint8))
    params = [address.to_bytes(8, "little") for address in addresses]
    params += [make(*addresses).encode() for make in maps]
    emulate.launch(emulate.load(ptx).kernel("k"), grid, params, memory=memory, options=options)
    return [
        memory.read(address, array.nbytes).view(array.dtype).reshape(array.shape)
        for address, array in zip(addresses, arrays, strict=True)
    ]


def assembles(ptx: str, tmp_path) -> None:
    """Skip without ptxas; else fail where ptxas refuses the text."""
    if PTXAS is None:
        pytest.skip("ptxas is not installed: the syntax of the test's PTX has no second opinion")
    (tmp_path / "k.ptx").write_text(ptx)
    done = subprocess.run(
        [PTXAS, "-arch=sm_90a", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def rule(excinfo: pytest.ExceptionInfo) -> str:
    """The rule that an EmulationError names."""
    return excinfo.value.rule
