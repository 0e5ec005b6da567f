# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models called with tensors on the (fake) GPU: results without copies, CUDA graphs, what is refused."""

import gc

import fake_cuda
import numpy as np
import pytest

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime.binding import Signature
from tilewright.runtime.gpu.gpu_calls import GpuCalls
from tilewright.runtime.gpu.gpu_interop import GpuArray, is_on_gpu
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_program import VERSION, HostProgram
from tilewright.runtime.manifest import TensorSpec

COUNT = 64
TYPE = {"dtype": "f32", "shape": [COUNT]}
PROGRAM = {
    "format": "tilewright-host-program",
    "version": VERSION,
    "arch": "sm_90a",
    "arena_bytes": 0,
    "registers": 5,
    "arguments": [
        {"kind": "input", "index": 0, "register": 0, "type": TYPE},
        {"kind": "input", "index": 1, "register": 1, "type": TYPE},
        {"kind": "output", "index": 0, "register": 2, "type": TYPE},
    ],
    "constants": [[3, COUNT], [4, 2]],
    "kernels": {
        "add": {
            "module": "add.ptx",
            "entry": "add",
            "threads": 32,
            "shared_bytes": 0,
            "cluster": None,
            "rank": 1,
            "params": [
                *({"kind": "pointer", "arg": i, "align": 16} for i in range(3)),
                {"kind": "scalar", "arg": 3, "type": "i32"},
            ],
        }
    },
    "body": [
        {"op": "launch", "kernel": "add", "grid": [4], "args": [2, 0, 1, 3]},
        {"op": "return", "values": []},
    ],
}
SIGNATURE = Signature([TensorSpec(n, "f32", (COUNT,)) for n in "xy"], [TensorSpec("z", "f32", (COUNT,))])
X, Y = np.arange(COUNT, dtype=np.float32), np.full(COUNT, 0.5, np.float32)


@pytest.fixture
def calls(gpu):
    return GpuCalls(HostProgram(PROGRAM, gpu, {"add.ptx": fake_cuda.PTX}, {}), SIGNATURE, gpu)


def _array(gpu, values):
    view = View.contiguous(Memory.allocate(gpu, values.nbytes), "f32", values.shape)
    array = GpuArray(gpu, view)
    _write(gpu, array, values)
    return array


def _write(gpu, array, values):
    gpu.upload(array._view.address, memoryview(values.view(np.uint8)))


def test_a_call_copies_nothing(gpu, fake, calls):
    x, y = _array(gpu, X), _array(gpu, Y)
    assert is_on_gpu(y) and not is_on_gpu(X)
    fake.clear()
    outputs = calls.call([x, y], None)
    assert not fake.log("upload") and not fake.log("synchronize")
    assert len(fake.log("launch")) == 1
    np.testing.assert_array_equal(outputs["z"].numpy(), X + Y)
    again = calls.call([x, y], None)
    assert again[0]._view.address != outputs[0]._view.address, "a result that is held is not written again"


def test_results_go_where_they_are_asked(gpu, calls):
    x, y, z = _array(gpu, X), _array(gpu, Y), _array(gpu, np.zeros(COUNT, np.float32))
    for out in (z, [z], {"z": z}):
        assert calls.call([x, y], out)[0] is z
        np.testing.assert_array_equal(z.numpy(), X + Y)
        _write(gpu, z, np.zeros(COUNT, np.float32))


def test_inputs_live_until_the_work_is_done(gpu, fake, calls):
    x, y = _array(gpu, X), _array(gpu, Y)
    result = calls.call([x, y], None)
    before = fake.live["blocks"]
    del x, y
    gc.collect()
    assert fake.live["blocks"] == before, "the inputs are held"
    calls._keep([])
    gc.collect()
    assert fake.live["blocks"] == before - 2
    assert result is not None


def test_a_recorded_call(gpu, fake, calls):
    x, y = _array(gpu, X), _array(gpu, Y)
    step = calls.capture([x, y], None)
    fake.clear()
    _write(gpu, x, 2 * X)
    assert step() is step.outputs
    assert fake.log("graph") and step.inputs == (x, y)
    np.testing.assert_array_equal(step.outputs["z"].numpy(), 2 * X + Y)


def test_what_is_refused(gpu, calls):
    x, y = _array(gpu, X), _array(gpu, Y)
    short = _array(gpu, X[:8])
    with pytest.raises(UserError, match="inputs x lie on the host"):
        calls.call([X, y], None)
    with pytest.raises(UserError, match=r"input x must have shape \[64\], got \[8\]"):
        calls.call([short, y], None)
    with pytest.raises(UserError, match="overlaps"):
        calls.call([x, y], [x])
    with pytest.raises(UserError, match=r"needs 1 tensors \(z\), got 2"):
        calls.call([x, y], [x, y])
    with pytest.raises(UserError, match="must name all outputs: z"):
        calls.call([x, y], {"q": x})
    halves = GpuArray(gpu, View.contiguous(x._view.memory, "f16", (COUNT,)))
    with pytest.raises(UserError, match="must be of f32, got f16"):
        calls.call([halves, y], None)
    shifted = GpuArray(gpu, View.contiguous(Memory(None, x._view.address + 4), "f32", (COUNT,)))
    with pytest.raises(UserError, match="no multiple of 16"):
        calls.call([shifted, y], None)


def test_only_static_programs_are_recorded(gpu):
    body = [{"op": "load", "result": 4, "source": 0, "indices": [4]}, *PROGRAM["body"]]
    program = HostProgram({**PROGRAM, "body": body}, gpu, {"add.ptx": fake_cuda.PTX}, {})
    x, y = _array(gpu, X), _array(gpu, Y)
    with pytest.raises(UnsupportedError, match="cannot be recorded"):
        GpuCalls(program, SIGNATURE, gpu).capture([x, y], None)


def _open_program():
    """x + y into memory of its own, and that plus y into an output that the run makes; sizes are the input's."""
    open_type = {"dtype": "f32", "shape": [-1]}
    arguments = [{"kind": "input", "index": i, "register": i, "type": open_type} for i in range(2)]
    body = [
        {"op": "dim", "source": 0, "axis": 5, "result": 6},
        {"op": "alloc", "type": open_type, "sizes": [6], "result": 2},
        {"op": "launch", "kernel": "add", "grid": [4], "args": [2, 0, 1, 6]},
        {"op": "alloc", "type": open_type, "sizes": [6], "result": 7},
        {"op": "launch", "kernel": "add", "grid": [4], "args": [7, 2, 1, 6]},
        {"op": "drop", "registers": [2]},
        {"op": "return", "values": [[0, 7]]},
    ]
    constants = [*PROGRAM["constants"], [5, 0]]
    return {**PROGRAM, "registers": 8, "arguments": arguments, "constants": constants, "body": body, "arena_bytes": 64}


def test_a_recorded_call_of_open_sizes(gpu, fake):
    open_spec = [TensorSpec(n, "f32", (-1,)) for n in "xyz"]
    program = HostProgram(_open_program(), gpu, {"add.ptx": fake_cuda.PTX}, {})
    calls = GpuCalls(program, Signature(open_spec[:2], open_spec[2:]), gpu)
    x, y = _array(gpu, X), _array(gpu, Y)
    step = calls.capture([x, y], None)
    np.testing.assert_array_equal(step.outputs["z"].numpy(), X + 2 * Y)
    other = calls.call([y, y], None)  # takes memory that a graph which did not hold its own would write
    _write(gpu, x, 3 * X)
    step()
    np.testing.assert_array_equal(step.outputs["z"].numpy(), 3 * X + 2 * Y)
    np.testing.assert_array_equal(other["z"].numpy(), 3 * Y)
    del step, other, x, y
    calls._keep([])
    gc.collect()
    assert "blocks" not in fake.live and "executables" not in fake.live
