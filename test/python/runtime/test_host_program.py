# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host programs against a device that keeps its memory in an array and its launches in a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.core.errors import InternalError, UserError
from tilewright.runtime.gpu.gpu_device import Limits, check_launch
from tilewright.runtime.gpu.gpu_memory import Memory, View, row_major
from tilewright.runtime.gpu.host_program import FORMAT, VERSION, HostProgram
from tilewright.runtime.gpu.host_scalars import function


class FakeDevice:
    """Memory without kernels: a launch is written down."""

    limits = Limits("sm_90a", 4, shared_bytes=1024, cluster=8)

    def __init__(self) -> None:
        self.memory = np.zeros(1 << 16, np.uint8)
        self.next = 256
        self.live: set[int] = set()
        self.launches: list[tuple] = []

    def load(self, image: bytes) -> bytes:
        return image

    def function(self, module: bytes, name: str) -> str:
        return name

    def alloc(self, nbytes: int) -> int:
        address = self.next
        self.next += -(-nbytes // 256) * 256
        self.live.add(address)
        return address

    def free(self, address: int) -> None:
        self.live.remove(address)

    def upload(self, address: int, data: memoryview) -> None:
        self.memory[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def download(self, address: int, data: memoryview) -> None:
        data[:] = self.memory[address : address + len(data)].data

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        self.memory[destination : destination + nbytes] = self.memory[source : source + nbytes]

    def launch(self, function: str, grid: Any, block: Any, cluster: Any, shared: int, params: list[bytes]) -> None:
        check_launch(function, self.limits, grid, block, cluster, shared)
        self.launches.append((function, grid, block, cluster, shared, params))


def program(
    device: FakeDevice, body: list, constants: list | tuple = (), kernels: dict | None = None, **more: Any
) -> Any:
    """A program of the given operations."""
    data = {"format": FORMAT, "version": VERSION, "arena_bytes": 0, "registers": 40, "arguments": [], **more}
    data |= {"constants": list(constants), "kernels": kernels or {}, "body": body}
    return HostProgram(data, device, {"k.ptx": b"ptx"}, more.get("weights", {}))  # type: ignore[arg-type]


def kernel(params: list[dict], **more: Any) -> dict:
    """The entry of a kernel."""
    plain = {"module": "k.ptx", "entry": "k", "threads": 64, "shared_bytes": 16, "cluster": None, "rank": 2}
    return {"k": {**plain, "params": params, **more}}


MATRIX = {"dtype": "f32", "shape": [4, 6]}


def test_a_launch_packs_what_the_kernel_declares() -> None:
    """Pointer with the view's offset, sizes, strides, scalars by their types, bounds; one grid dimension."""
    device = FakeDevice()
    params = [
        {"kind": "pointer", "arg": 0, "align": 4},
        {"kind": "size", "arg": 0, "dim": 0},
        {"kind": "stride", "arg": 0, "dim": 0},
        {"kind": "scalar", "arg": 1, "type": "f16"},
        {"kind": "scalar", "arg": 2, "type": "index"},
        {"kind": "bound", "dim": 1},
    ]
    body = [
        {"op": "alloc", "result": 0, "type": MATRIX, "sizes": []},
        {"op": "subview", "result": 1, "source": 0, "offsets": [10, 11], "sizes": [11, 11], "strides": [11, 10],
         "keep": [0, 1]},
        {"op": "launch", "kernel": "k", "grid": [11, 12], "args": [1, 13, 12]},
        {"op": "return", "values": []},
    ]  # fmt: skip
    program(device, body, [[10, 1], [11, 2], [12, 3], [13, 0.5]], kernel(params)).run([], [])
    ((name, grid, block, cluster, shared, packed),) = device.launches
    assert (name, grid, block, cluster, shared) == ("k", (6, 1, 1), (64, 1, 1), (1, 1, 1), 16)
    assert packed[0] == (256 + 4 * (1 * 6 + 2)).to_bytes(8, "little")
    assert [int.from_bytes(p, "little") for p in packed[1:3]] == [2, 12]
    assert packed[3] == np.float16(0.5).tobytes()
    assert packed[4:] == [(3).to_bytes(8, "little"), (3).to_bytes(4, "little")]


def test_nothing_is_launched_on_an_empty_grid() -> None:
    """A bound of zero."""
    device = FakeDevice()
    body = [{"op": "launch", "kernel": "k", "grid": [0, 1], "args": []}]
    program(device, body, [[0, 0], [1, 7]], kernel([])).run([], [])
    assert device.launches == []


@pytest.mark.parametrize(
    ("tasks", "cluster", "blocks"), [(3, None, 3), (100, None, 8), (6, [2, 1, 1], 6), (100, [3, 1, 1], 6)]
)
def test_persistent_kernels_fill_the_device(tasks: int, cluster: list[int] | None, blocks: int) -> None:
    """Four multiprocessors take two CTAs each, in whole clusters; the parameters tell of all tasks."""
    device = FakeDevice()
    body = [{"op": "launch", "kernel": "k", "grid": [0], "args": []}]
    entry = kernel([{"kind": "bound", "dim": 0}], persistent=2, cluster=cluster)
    program(device, body, [[0, tasks]], entry).run([], [])
    ((_, grid, _, _, _, packed),) = device.launches
    assert grid == (blocks, 1, 1) and packed == [tasks.to_bytes(4, "little")]


@pytest.mark.parametrize(("persistent", "blocks"), [(None, 18), (2, 8)])
def test_a_rounded_grid_has_whole_clusters(persistent: int | None, blocks: int) -> None:
    """Five rows of three tasks become six; the parameters tell of five."""
    device = FakeDevice()
    body = [{"op": "launch", "kernel": "k", "grid": [0, 1], "args": []}]
    entry = kernel([{"kind": "bound", "dim": 0}], rank=2, persistent=persistent, cluster=[2, 1, 1], rounded=[2, 1])
    program(device, body, [[0, 5], [1, 3]], entry).run([], [])
    ((_, grid, _, _, _, packed),) = device.launches
    assert grid == (blocks, 1, 1) and packed == [(5).to_bytes(4, "little")]


def test_a_grid_that_no_cluster_divides_is_refused() -> None:
    """By the rule that all devices share, with the kernel's name."""
    body = [{"op": "launch", "kernel": "k", "grid": [0], "args": []}]
    whole = program(FakeDevice(), body, [[0, 3]], kernel([], cluster=[2, 1, 1]))
    with pytest.raises(UserError, match="kernel k: clusters"):
        whole.run([], [])


def test_an_address_that_code_cannot_take_is_refused() -> None:
    """The kernel's vector accesses rely on 16 bytes."""
    body = [
        {"op": "alloc", "result": 0, "type": {"dtype": "f32", "shape": [8]}, "sizes": []},
        {"op": "subview", "result": 1, "source": 0, "offsets": [3], "sizes": [3], "strides": [3], "keep": [0]},
        {"op": "launch", "kernel": "k", "grid": [3], "args": [1]},
    ]
    whole = program(FakeDevice(), body, [[3, 1]], kernel([{"kind": "pointer", "arg": 0, "align": 16}]))
    with pytest.raises(InternalError, match="multiples of 16"):
        whole.run([], [])


def test_memory_is_given_back_when_nothing_refers_to_it() -> None:
    """A loop that makes its next state each time holds two of them at most; what is returned stays."""
    device = FakeDevice()
    inner = [
        {"op": "alloc", "result": 5, "type": {"dtype": "i8", "shape": [-1]}, "sizes": [2]},
        {"op": "store", "value": 4, "target": 5, "indices": [0]},
    ]
    body = [
        {"op": "alloc", "result": 3, "type": {"dtype": "i8", "shape": [-1]}, "sizes": [2]},
        {"op": "for", "lower": 0, "upper": 1, "step": 2, "inits": [3], "args": [4, 6], "results": [7], "body": inner,
         "yield": [5]},
        {"op": "drop", "registers": [3]},
        {"op": "load", "source": 7, "indices": [0], "result": 8},
        {"op": "scalar", "name": "arith.extsi", "operands": [8], "type": "i8", "to": "i64", "result": 9},
        {"op": "return", "values": [[0, 7]]},
    ]  # fmt: skip
    results = program(device, body, [[0, 0], [1, 5], [2, 1]]).run([], [])
    assert device.memory[results[0].address] == 4
    assert len(device.live) == 1
    del results
    assert not device.live


def test_a_result_among_the_temporaries_has_its_numbers() -> None:
    """A result that the run makes may lie in the arena, where numbers of the host are not written otherwise."""
    device = FakeDevice()
    arena = {"register": 0, "kind": "arena", "type": {"dtype": "i8", "shape": [192]}}
    number = {"dtype": "i32", "shape": [1]}
    body = [
        {"op": "view", "source": 0, "shift": 1, "type": number, "sizes": [], "result": 5},
        {"op": "store", "value": 3, "target": 5, "indices": [2]},
        {"op": "view", "source": 0, "shift": 2, "type": number, "sizes": [], "result": 6},
        {"op": "store", "value": 3, "target": 6, "indices": [2]},
        {"op": "return", "values": [[0, 5]]},
    ]
    constants = [[1, 64], [2, 0], [3, 7]]
    results = program(device, body, constants, arguments=[arena], arena_bytes=192).run([], [None])
    assert device.memory[results[0].address : results[0].address + 4].tobytes() == np.int32(7).tobytes()
    assert device.memory.sum() == 7  # the temporary, which nobody reads, is not


def test_loops_and_branches_carry_values() -> None:
    """A while that counts, a branch that chooses, an assertion that fails."""
    device = FakeDevice()
    compare = {"op": "scalar", "name": "arith.cmpi", "predicate": "slt", "operands": [3, 1], "type": "index"}
    add = {"op": "scalar", "name": "arith.addi", "operands": [4, 2], "type": "index", "to": "index", "result": 4}
    choice = {"then": {"body": [], "yield": [5]}, "else": {"body": [], "yield": [0]}}
    body = [
        {"op": "while", "inits": [0], "results": [5],
         "before": {"args": [3], "body": [{**compare, "to": "i1", "result": 6}], "condition": 6, "yield": [3]},
         "after": {"args": [4], "body": [add], "yield": [4]}},
        {"op": "if", "condition": 6, "results": [7], **choice},
        {"op": "affine", "kind": "max", "exprs": [["ceildiv", ["operand", 0], 2], 1], "operands": [5], "result": 8},
        {"op": "scalar", "name": "arith.cmpi", "predicate": "eq", "operands": [8, 7], "type": "index", "to": "i1",
         "result": 9},
        {"op": "assert", "condition": 9, "message": "3 is not 0"},
    ]  # fmt: skip
    with pytest.raises(UserError, match="3 is not 0"):
        program(device, body, [[0, 0], [1, 5], [2, 1]]).run([], [])


def test_reshapes_keep_strides() -> None:
    """Collapse and expand of a view with gaps."""
    device = FakeDevice()
    body = [
        {"op": "collapse", "source": 0, "groups": [[0, 1], [2]], "result": 1},
        {"op": "expand", "source": 1, "groups": [[0], [1, 2]], "sizes": [10, 11, 11], "result": 2},
        {"op": "permute", "source": 2, "order": [1, 2, 0], "result": 3},
        {"op": "return", "values": [[0, 1], [1, 2], [2, 3]]},
    ]
    arguments = [{"kind": "input", "index": 0, "register": 0, "type": {"dtype": "f32", "shape": [2, 3, 4]}}]
    view = View(Memory(None, 4096), "f32", 1, (2, 3, 4), (24, 8, 1))
    out = program(device, body, [[10, 6], [11, 2]], arguments=arguments).run([view], [])
    assert (out[0].sizes, out[0].strides, out[0].offset) == ((6, 4), (8, 1), 1)
    assert (out[1].sizes, out[1].strides) == ((6, 2, 2), (8, 2, 1))
    assert (out[2].sizes, out[2].strides) == ((2, 2, 6), (2, 1, 8))
    assert out[2].address == 4096 + 4


def test_other_formats_are_refused() -> None:
    """A program of another version, an operation of a later one."""
    with pytest.raises(UserError, match="format version 99"):
        HostProgram({"format": FORMAT, "version": 99}, FakeDevice(), {}, {})  # type: ignore[arg-type]
    with pytest.raises(InternalError, match="'sing'"):
        program(FakeDevice(), [{"op": "sing"}])


@pytest.mark.parametrize(
    ("name", "operands", "kind", "to", "predicate", "expected"),
    [
        ("arith.addi", [2**31 - 1, 1], "i32", "i32", "", -(2**31)),
        ("arith.divsi", [-7, 2], "i64", "i64", "", -3),
        ("arith.floordivsi", [-7, 2], "i64", "i64", "", -4),
        ("arith.ceildivsi", [-7, 2], "index", "index", "", -3),
        ("arith.remsi", [-7, 2], "i64", "i64", "", -1),
        ("arith.divui", [-1, 2], "i8", "i8", "", 127),
        ("arith.xori", [True, True], "i1", "i1", "", False),
        ("arith.extui", [-1], "i8", "i32", "", 255),
        ("arith.extsi", [True], "i1", "i32", "", -1),
        ("arith.index_cast", [-1], "i32", "index", "", -1),
        ("arith.trunci", [257], "i32", "i8", "", 1),
        ("arith.cmpi", [-1, 1], "i32", "i1", "ugt", True),
        ("arith.cmpf", [float("nan"), 1.0], "f32", "i1", "une", True),
        ("arith.cmpf", [float("nan"), 1.0], "f32", "i1", "oge", False),
        ("arith.mulf", [0.1, 3.0], "f32", "f32", "", float(np.float32(0.1 * 3.0))),
        ("arith.minimumf", [-0.0, 0.0], "f32", "f32", "", -0.0),
        ("arith.fptosi", [1e30], "f32", "i32", "", 2**31 - 1),
        ("arith.sitofp", [16777217], "i32", "f32", "", 16777216.0),
        ("arith.bitcast", [1.0], "f32", "i32", "", 0x3F800000),
        ("arith.truncf", [1.00390625 + 1e-9], "f64", "bf16", "", 1.0078125),
        ("arith.shrui", [-1, 4], "i8", "i8", "", 15),
        ("arith.select", [False, 1, 2], "i32", "i32", "", 2),
    ],
)
def test_scalars(name: str, operands: list, kind: str, to: str, predicate: str, expected: Any) -> None:
    """Widths, signs and roundings."""
    found = function(name, kind, to, predicate)(*operands)
    assert found == expected
    assert type(found) is type(expected)
    assert np.signbit(found) == np.signbit(expected) if isinstance(expected, float) else True


def test_division_by_zero_is_told() -> None:
    """MLIR leaves it undefined."""
    with pytest.raises(UserError, match="by zero"):
        function("arith.divsi", "i64", "i64")(1, 0)


def test_strides_of_rows() -> None:
    """Of an empty list too."""
    assert row_major(()) == ()
    assert row_major((5, 0, 3)) == (0, 3, 1)


def test_ctas_that_wait_are_no_more_than_are_resident() -> None:
    """Launched together, as many as fit; a device that holds none is an error, not a launch that hangs."""
    device = FakeDevice()
    held = {"k": 2}
    calls: list[tuple[Any, ...]] = []
    device.resident = lambda function, threads, shared: held[function]  # type: ignore[attr-defined]

    def launch(function: str, grid: Any, *rest: Any, together: bool = False) -> None:
        calls.append((grid, together))

    device.launch = launch  # type: ignore[method-assign]
    entry = kernel([], persistent=3, waits=True)
    body = [{"op": "launch", "kernel": "k", "grid": [0, 1], "args": []}]
    constants = [[0, 5], [1, 400]]
    made = program(device, body, constants, entry)
    made.run([], [])
    assert calls == [((2 * device.limits.multiprocessors, 1, 1), True)]
    held["k"] = 0
    with pytest.raises(UserError, match="holds no CTA of 64 threads"):
        made.run([], [])
