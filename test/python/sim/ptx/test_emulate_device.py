# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The emulator behind the interface of a GPU."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from emulation import kernel_text

from tilewright.core.errors import UserError
from tilewright.runtime.gpu import gpu_device
from tilewright.runtime.gpu.host_program import FORMAT, VERSION, HostProgram
from tilewright.sim import ptx as emulate

ADD = """
ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
ld.global.u32 %r1, [%d2]; add.u32 %r1, %r1, %r0; st.global.u32 [%d2], %r1;
"""


def test_it_is_a_device() -> None:
    """All calls of the protocol are there; limits are those of the architecture."""
    device = emulate.Device("sm_80")
    assert isinstance(device, gpu_device.Device)
    assert device.limits.capability == 80 and device.limits.cluster == 1


def test_memory_goes_round() -> None:
    """Upload, fill, copy, launch, download; what is undefined stays so through a copy."""
    device = emulate.Device()
    a, b, c = (device.alloc(128) for _ in range(3))
    device.upload(a, memoryview(np.arange(32, dtype=np.int32)))
    device.fill(b, 0, 128)
    device.copy(b, a, 64)
    device.copy(c + 64, a, 64)
    kernel = device.function(device.load(kernel_text(ADD).encode()), "k")
    device.launch(kernel, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, [b.to_bytes(8, "little")])
    out = np.zeros(32, np.int32)
    device.download(b, memoryview(out))
    np.testing.assert_array_equal(out, np.where(np.arange(32) < 16, 2 * np.arange(32), np.arange(32)))
    with pytest.raises(emulate.EmulationError, match="nothing has written"):
        device.launch(kernel, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, [c.to_bytes(8, "little")])
    start = device.record()
    assert device.elapsed(start, device.record()) >= 0


def test_a_temporary_is_undefined_where_it_begins() -> None:
    """Two of a host program share the arena's first bytes; what one wrote is no content of the other."""
    write = kernel_text(ADD.replace("ld.global.u32 %r1, [%d2];", "mov.u32 %r1, 5;"))
    entry = {"entry": "k", "threads": 32, "shared_bytes": 0, "cluster": None, "rank": 0,
             "params": [{"kind": "pointer", "arg": 0, "align": 4}]}  # fmt: skip
    kind = {"dtype": "i32", "shape": [32]}
    begin = [{"op": "view", "source": 0, "shift": 1, "type": kind, "sizes": [], "result": r} for r in (2, 3)]
    work = [{"op": "launch", "kernel": name, "grid": [], "args": [r]} for name, r in (("write", 2), ("add", 2))]
    whole = {
        "format": FORMAT, "version": VERSION, "arena_bytes": 128, "registers": 4, "constants": [[1, 0]],
        "arguments": [{"kind": "arena", "register": 0, "type": {"dtype": "i8", "shape": [128]}}],
        "kernels": {"write": {"module": "w", **entry}, "add": {"module": "a", **entry}},
    }  # fmt: skip
    modules = {"w": write.encode(), "a": kernel_text(ADD).encode()}
    HostProgram({**whole, "body": [begin[0], *work]}, emulate.Device(), modules, {}).run([], [])
    second = [begin[1], {**work[1], "args": [3]}]
    with pytest.raises(emulate.EmulationError, match="nothing has written"):
        HostProgram({**whole, "body": [begin[0], *work, *second]}, emulate.Device(), modules, {}).run([], [])


def test_the_host_reads_what_was_written() -> None:
    """A part of a result that no kernel has written is told, unless that check is off."""
    for checks in (emulate.CHECKS, frozenset()):
        device = emulate.Device(checks=checks)
        memory = device.alloc(64)
        device.upload(memory, memoryview(np.zeros(12, np.float32)))
        out = np.zeros(16, np.float32)
        if checks:
            with pytest.raises(emulate.EmulationError, match="has written 16 of them \\(the first at offset 48\\)"):
                device.download(memory, memoryview(out))
        else:
            device.download(memory, memoryview(out))


def test_what_a_gpu_refuses() -> None:
    """Too many bytes, clusters on sm_80, code for another architecture, a cubin, a kernel that is not there."""
    device = emulate.Device("sm_80")
    module = device.load(kernel_text(ADD).replace("sm_90a", "sm_80").encode())
    kernel = device.function(module, "k")
    ones = (1, 1, 1)
    with pytest.raises(UserError, match="shared memory"):
        device.launch(kernel, ones, (32, 1, 1), ones, 200 << 10, [bytes(8)])
    with pytest.raises(UserError, match="cluster"):
        device.launch(kernel, (2, 1, 1), (32, 1, 1), (2, 1, 1), 0, [bytes(8)])
    with pytest.raises(UserError, match="sm_90a"):
        device.load(kernel_text(ADD).encode())
    with pytest.raises(UserError, match="cubin"):
        device.load(b"\x7fELF....")
    with pytest.raises(UserError, match="has no kernel"):
        device.function(module, "other")
    with pytest.raises(UserError, match="parameters"):
        device.launch(kernel, ones, (32, 1, 1), ones, 0, [])


def test_it_may_have_any_number_of_multiprocessors() -> None:
    """Persistent kernels are launched with as many CTAs as it holds."""
    assert emulate.Device("sm_90a", multiprocessors=2).limits.multiprocessors == 2
    assert emulate.Device("sm_90a").limits.multiprocessors == 132
    with pytest.raises(UserError, match="at least one"):
        emulate.Device(multiprocessors=0)


def test_it_needs_nothing_of_the_compiler() -> None:
    """A machine with NumPy alone can run it: neither MLIR nor planning is imported."""
    code = "import sys, tilewright.sim.ptx; print([n for n in sys.modules if n.startswith('tilewright.')])"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "tilewright.sim.ptx.machine" in names
    for part in ("mlir", "plan", "frontend", "passes", "dialects"):
        assert f"'tilewright.{part}" not in names, part


def test_options_that_there_are_not() -> None:
    """A misspelt option or check is an error: it would switch nothing on, or all of it off."""
    assert emulate.unknown_options({"seed": 1, "checks": ()}) is None
    assert "no option sed; emulate= may hold seed, checks" in str(emulate.unknown_options({"sed": 1}))
    with pytest.raises(UserError, match="there are no checks races; there are arithmetic, asynchronous"):
        emulate.Device(checks=frozenset({"races"}))
    with pytest.raises(UserError, match="completion must be one of"):
        emulate.Options(completion="sometimes")
    emulate.Options(checks=emulate.CHECKS | {"arithmetic"}, completion="early")
