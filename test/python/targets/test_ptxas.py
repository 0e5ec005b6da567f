# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is made of ptxas's words, with assemblers that are shell scripts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tilewright.core import config
from tilewright.core.errors import InternalError
from tilewright.ir.units import Unit, twins
from tilewright.targets.cuda import ptxas

PRODUCT = b"wgmma.mma_async.sync.aligned ..."
CLEAN = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info : Used 168 registers"
SPILLS = CLEAN.replace("0 bytes spill stores, 0", "40 bytes spill stores, 24")


def run(folder: Path, words: str, code: bytes, status: int = 0) -> ptxas.Checked:
    """Check one kernel with an assembler that prints `words`."""
    script = folder / "ptxas"
    script.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words}\nEND\nexit {status}\n")
    script.chmod(0o755)
    with config.ptxas.override(str(script)), config.cache.override(False):
        return ptxas.check({"gemm": code}, "sm_90a")


def test_registers_are_noted(tmp_path: Path) -> None:
    """For the manifest."""
    found = run(tmp_path, CLEAN, PRODUCT)
    assert found.resources == {"gemm": {"registers": 168, "spilled_bytes": 0, "stack_bytes": 0}}
    assert not found.remarks


def test_a_kernel_that_is_refused_is_named(tmp_path: Path) -> None:
    """With what ptxas says and a command to see it again."""
    with pytest.raises(InternalError, match="kernel 'gemm': ptxas refuses it: line 3; error : Unknown symbol") as error:
        run(tmp_path, "line 3; error : Unknown symbol", b"", status=255)
    assert error.value.command is not None and "ptxas -arch=sm_90a" in error.value.command


def test_spills_fail_products_only(tmp_path: Path) -> None:
    """In other kernels they are a remark."""
    with pytest.raises(InternalError, match="kernel 'gemm': its registers spill: 64 bytes"):
        run(tmp_path, SPILLS, PRODUCT)
    (remark,) = run(tmp_path, SPILLS, b"add.f32").remarks
    assert remark["location"] == "gemm" and "64 bytes" in remark["message"]


def test_serialized_products_fail(tmp_path: Path) -> None:
    """C75xx is information to ptxas, with status 0."""
    words = "ptxas info : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x"
    with pytest.raises(InternalError, match="kernel 'gemm': ptxas serializes its products: .C7514. Potential"):
        run(tmp_path, f"{words}\n{CLEAN}", PRODUCT)


def test_without_ptxas_a_remark_says_so() -> None:
    """Nothing is checked, and nothing fails."""
    with config.ptxas.override("0"):
        found = ptxas.check({"gemm": PRODUCT}, "sm_80")
    assert [remark["message"] for remark in found.remarks] == [
        "ptxas is not installed: no kernel was assembled, spills are not known"
    ]


def test_machine_code_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    """From the cache as well, beside what ptxas said of the same code before."""
    script = tmp_path / "ptxas"
    script.write_text(
        f"#!/bin/sh\n[ $1 = --help ] && exit\ncat >&2 <<'END'\n{CLEAN}\nEND\n"
        f'echo run >> {tmp_path}/runs\nprintf machine > "$5"\n'
    )
    script.chmod(0o755)
    with config.ptxas.override(str(script)), config.cache_dir.override(tmp_path / "cache"):
        assert ptxas.check({"gemm": PRODUCT}, "sm_90a").cubins == {}
        for _ in range(2):
            found = ptxas.check({"gemm": PRODUCT}, "sm_90a", cubins=True)
            assert found.cubins == {"gemm": b"machine"} and found.resources["gemm"]["registers"] == 168
    assert (tmp_path / "runs").read_text().count("run") == 2, "once to check, once to keep; then the cache has it"


def test_a_kernel_that_spills_gets_room(tmp_path: Path) -> None:
    """ptxas keeps registers low for the sake of more CTAs, and spills: the kernel says that one is enough."""
    script = tmp_path / "ptxas"
    script.write_text(
        f"#!/bin/sh\nif grep -q '^.minnctapersm 1$' \"$3\"; then echo '{CLEAN}'; else echo '{SPILLS}'; fi >&2\n"
    )
    script.chmod(0o755)
    plain = b".visible .entry gemm()\n.maxntid 128, 1, 1\n{\n" + PRODUCT
    with config.ptxas.override(str(script)), config.cache.override(False):
        found = ptxas.check({"gemm": plain, "other": PRODUCT.replace(b"wgmma.mma_async", b"add")}, "sm_90a")
    assert found.codes == {"gemm": plain.replace(b"1, 1\n", b"1, 1\n.minnctapersm 1\n")}
    assert found.resources["gemm"]["spilled_bytes"] == 0
    assert [remark["location"] for remark in found.remarks] == ["other"]


def _traded(less: int, more: int, threads: int = 384) -> bytes:
    """A kernel of a producing warpgroup, and others that multiply."""
    words = f"setmaxnreg.dec.sync.aligned.u32 {less};\nsetmaxnreg.inc.sync.aligned.u32 {more};\n"
    return f".maxntid {threads}, 1, 1\n{words}".encode() + PRODUCT


def test_registers_that_the_launch_brings_are_enough(tmp_path: Path) -> None:
    """168 for each of three warpgroups: 40 and twice 232."""
    assert not run(tmp_path, CLEAN, _traded(40, 232)).remarks
    assert not run(tmp_path, CLEAN.replace("168", "161"), _traded(40, 232)).remarks, "they come in units of 8"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (_traded(40, 240), r"520 registers a thread in all \(setmaxnreg: 40, 240, 240\).*launched with 168 each, 504"),
        (_traded(48, 232), "512 registers a thread in all"),
        (_traded(40, 232, 256 + 256), "736 registers a thread in all"),
        (_traded(40, 228), "setmaxnreg.inc 228: a number of registers is a multiple of 8 from 24 to 256"),
        (_traded(16, 232), "setmaxnreg.dec 16: a number of registers"),
        (_traded(40, 264), "setmaxnreg.inc 264: a number of registers"),
        (_traded(176, 232), "setmaxnreg.dec 176 is to give registers back, and a thread is launched with 168"),
        (_traded(40, 160), "setmaxnreg.inc 160 is to add registers, and a thread is launched with 168"),
        (_traded(40, 232, 320), "320 threads are no whole warpgroups of 128"),
        (_traded(40, 168, 512), "512 threads of 168 registers are more than the 65536"),
        (_traded(40, 232, 128), "its 1 warpgroups ask for 2 different numbers"),
        (_traded(40, 232).replace(b".maxntid", b"//"), "neither .maxntid nor .reqntid says"),
    ],
)
def test_registers_that_never_come_are_an_error(tmp_path: Path, code: bytes, message: str) -> None:
    """Warpgroups would wait for them for ever."""
    with pytest.raises(InternalError, match=f"kernel 'gemm': .*{message}"):
        run(tmp_path, CLEAN, code)


@pytest.mark.parametrize(
    ("knows", "kernels", "cubins", "parts"), [(1, 1, 0, 1), (1, 2, 0, 0), (1, 1, 1, 0), (0, 1, 0, 0)]
)
def test_cores_without_a_kernel_share_the_work_of_a_check(
    tmp_path: Path, monkeypatch, knows: int, kernels: int, cubins: int, parts: int
) -> None:
    """Not that of code which ships, whose bytes must not depend on threads; nor by an old release."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    script = tmp_path / "ptxas"
    known = "--split-compile <N>" if knows else "--verbose"
    script.write_text(
        f"#!/bin/sh\nif [ $1 = --help ]; then echo '{known}'; exit; fi\necho \"$@\" >> {tmp_path}/runs\n"
        f"echo '{CLEAN}' >&2\nfor made; do :; done\necho machine > \"$made\"\n"
    )
    script.chmod(0o755)
    with config.ptxas.override(str(script)), config.cache.override(False):
        ptxas.check({f"k{number}": PRODUCT + b"%d" % number for number in range(kernels)}, "sm_90a", bool(cubins))
    runs = (tmp_path / "runs").read_text().splitlines()
    assert len(runs) == kernels
    assert [("-split-compile=2" in run) for run in runs] == [bool(parts)] * kernels


def test_blocks_that_stay_say_how_many_share_a_multiprocessor() -> None:
    """Once: who has said it keeps its number."""
    plain = b".visible .entry gemm()\n.maxntid 128, 1, 1\n{\n"
    told = ptxas.with_room(plain, 2)
    assert told == plain.replace(b"1, 1\n", b"1, 1\n.minnctapersm 2\n")
    assert ptxas.with_room(told) == told


def test_kernels_are_assembled_as_they_come(tmp_path: Path) -> None:
    """The first one while there is no other yet; remarks come in the order that is asked for."""
    script = tmp_path / "ptxas"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\necho '{SPILLS}' >&2\n")
    script.chmod(0o755)
    with (
        config.ptxas.override(str(script)),
        config.cache.override(False),
        ptxas.Check("sm_90a", kernels=2, cubins=True) as checking,
    ):
        checking.add("second", b"add.f32")
        for _ in range(1000):
            if (tmp_path / "begun").exists():
                break
            time.sleep(0.01)
        assert (tmp_path / "begun").exists()
        checking.add("first", b"sub.f32")
        found = checking.result(["first", "second"])
    assert [remark["location"] for remark in found.remarks] == ["first", "second"]


def test_what_is_said_of_a_kernel_holds_for_its_twin(tmp_path: Path) -> None:
    """It is not assembled again; where it spills, both get room."""
    script = tmp_path / "ptxas"
    script.write_text(
        f"#!/bin/sh\necho run >> {tmp_path}/runs\n"
        f"if grep -q '^.minnctapersm 1$' \"$3\"; then echo '{CLEAN}'; else echo '{SPILLS}'; fi >&2\n"
    )
    script.chmod(0o755)
    text = b".visible .entry %b(.param .u64 %b_param_0)\n.maxntid 128, 1, 1\n{\n"
    one, two = (text % (name, name) for name in (b"one", b"two"))
    with (
        config.ptxas.override(str(script)),
        config.cache.override(False),
        ptxas.Check("sm_90a", kernels=2) as checking,
    ):
        checking.add("one", one)
        checking.add("two", two)
        found = checking.result(["one", "two"])
    assert (tmp_path / "runs").read_text().count("run") == 2
    assert found.codes == {"one": ptxas.with_room(one), "two": ptxas.with_room(two)}
    assert found.resources["one"] == found.resources["two"]


@pytest.mark.parametrize("other", ["sub", "param", "add_1"])
def test_kernels_that_are_called_as_instructions_keep_theirs(other: str) -> None:
    """Renaming one, as its twin is called, changes nothing but names."""
    text = (
        "\t// .globl\t{0}\n\n.visible .entry {0}(\n\t.param .u64 .ptr .global .align 1 {0}_param_0\n)\n{{\n"
        "\tld.param.b64 \t%rd1, [{0}_param_0];\n\tadd.s64 \t%rd2, %rd1, 4;\n\tret;\n}}\n"
    )
    assert ptxas.renamed(text.format("add").encode(), "add", other) == text.format(other).encode()
    assert ptxas.renamed(text.format(other).encode(), other, "add") == text.format("add").encode()


@pytest.mark.parametrize(
    ("attributes", "same"),
    [
        ('tile.grid = array<i64: 8, 2>, tile.prediction = {ns = 7 : i64, bound = "l2"}', True),
        ("nvvm.maxntid = array<i32: 64, 1, 1>", False),
    ],
)
def test_twins_differ_in_what_code_does_not_depend_on(attributes: str, same: bool) -> None:
    """Their names, launches and predicted times."""
    plain = "tile.grid = array<i64: 4>, tile.prediction = {ns = 1 : i64}" if same else "nvvm.kernel"
    texts = {"map_4": plain, "map_8": attributes}
    units = [
        Unit(name, f"module {{\nllvm.func @{name}() attributes {{{text}}} {{\n}}\n}}".encode())
        for name, text in texts.items()
    ]
    assert twins(units) == {"map_4": "map_4", "map_8": "map_4" if same else "map_8"}
