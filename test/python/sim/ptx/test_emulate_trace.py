# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of instructions, sectors and bank conflicts; the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulation import kernel_text, run

from tilewright import cli
from tilewright.sim import ptx as emulate
from tilewright.sim.ptx.trace import wavefronts

COPY = """
ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, STRIDE; add.s64 %d2, %d0, %d1;
ld.global.u32 %r1, [%d2];
add.u32 %r1, %r1, 1;
st.global.u32 [%d2], %r1;
"""


@pytest.mark.parametrize(("stride", "sectors"), [(4, 8), (8, 16), (32, 64), (64, 64)])
def test_sectors_of_strided_accesses(stride: int, sectors: int) -> None:
    """Two warps read and write words at a stride: 32-byte sectors."""
    trace = emulate.Trace()
    run(kernel_text(COPY.replace("STRIDE", str(stride)), threads=64), np.zeros(64 * 16, np.int32), trace=trace)
    (launch,) = trace.launches
    assert launch.total("sectors") == 2 * sectors
    load = next(line for line in launch.lines.values() if line.text.startswith("ld.global"))
    assert (load.warps, load.threads, load.bytes, load.sectors) == (2, 64, 256, sectors)
    assert "ld.global.u32" in launch.table() and "warp instructions" in launch.summary()


@pytest.mark.parametrize(
    ("stride", "nbytes", "passes", "ideal"),
    [
        (4, 4, 1, 1),
        (8, 4, 2, 1),
        (128, 4, 32, 1),
        (0, 4, 1, 1),
        (132, 4, 1, 1),
        (16, 16, 4, 4),
        (8, 8, 2, 2),
        (128, 16, 32, 4),
    ],
)
def test_bank_conflicts(stride: int, nbytes: int, passes: int, ideal: int) -> None:
    """One warp, 32 banks of 4 bytes; wide accesses go by parts of the warp."""
    assert wavefronts(np.arange(32), np.arange(32) * stride, nbytes) == (passes, ideal)


def test_the_command_runs_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Buffers from files, results to files, several orders."""
    (tmp_path / "k.ptx").write_text(kernel_text(COPY.replace("STRIDE", "4"), threads=64))
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.int32))
    path = str(tmp_path / "k.ptx")
    command = ["emulate", path, "--grid", "1", "--args", str(tmp_path / "x.npy"), "--seeds", "2", "--trace"]
    assert cli.main([*command, "--save", f"0={tmp_path / 'y.npy'}"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(64) + 1)
    out = capsys.readouterr().out
    assert "no rule was broken" in out and "ld.global.u32" in out
    assert cli.main(["emulate", path]) == 0
    assert "k(p0 (8 bytes))" in capsys.readouterr().out


def test_the_command_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Too small a buffer is a broken rule (1), a wrong call is 2."""
    (tmp_path / "k.ptx").write_text(kernel_text(COPY.replace("STRIDE", "4"), threads=64))
    path = str(tmp_path / "k.ptx")
    assert cli.main(["emulate", path, "--grid", "1", "--args", "zeros:i32:63"]) == 1
    assert "out-of-bounds" in capsys.readouterr().out
    assert cli.main(["emulate", path, "--grid", "1"]) == 2
    assert cli.main(["emulate", path, "--grid", "1", "--args", "empty:i32:64"]) == 1
    assert "nothing has written" in capsys.readouterr().out
    (tmp_path / "bad.npy").write_text("no array")
    assert cli.main(["emulate", path, "--grid", "1", "--args", str(tmp_path / "bad.npy")]) == 2
    assert "bad.npy: not a .npy file of numbers" in capsys.readouterr().err
    with pytest.raises(SystemExit):  # was an IndexError behind no run at all
        cli.main(["emulate", path, "--grid", "1", "--args", "zeros:i32:64", "--seeds", "-1"])
