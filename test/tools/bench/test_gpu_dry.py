# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`run --dry-run` of a pack with a driver that records every call: arguments, launch attributes, order."""

import os
import subprocess
import sys

import fake_cuda
import pytest
import recording_cuda

from bench.gpu import packing
from bench.gpu.far.sharing import may_vary
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import gpu_code

#: The other machine has no ml_dtypes.
RUN = """
import sys
sys.modules["ml_dtypes"] = None
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from bench.gpu.far.main import main
sys.exit(main(Path(sys.argv[1]), ["--dry-run"]))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The pack, and the calls of each of its models: softmax (plain), a product in clusters."""
    if fake_cuda.COMPILER is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("dry")
    names = ["gemm_bf16_2048", "softmax"]
    suite = packing.pack(folder / "pack", "sm_90a", small=False, names=names, workers=2)
    for case in suite["cases"]:
        case["folder"] = folder / "pack" / case["folder"]
    library, record = recording_cuda.build(folder)
    environment = {**os.environ, "TILEWRIGHT_LIBCUDA": str(library)}
    command = [sys.executable, "-S", "-c", f"import site; site.main()\n{RUN}", str(folder / "pack")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"launched   {name}, and as a graph" for name in names]
    calls = recording_cuda.calls(record)
    starts = [i for i, call in enumerate(calls) if call["call"] == "cuDevicePrimaryCtxRetain"]
    assert len(starts) == 2 and calls[0]["call"] == "cuInit"
    return suite, {names[0]: calls[: starts[1]], names[1]: calls[starts[1] :]}


def _of(calls, *names):
    return [call for call in calls if call["call"] in names]


def test_machine_code_first_then_ptx(recorded):
    suite, models = recorded
    for case in suite["cases"]:
        images = [(call["image"], call["code"]) for call in _of(models[case["name"]], "cuModuleLoadDataEx")]
        assert images == ([("cubin", 209)] if case["cubin_bytes"] else []) + [("ptx", 0)]
        assert (case["cubin_bytes"] > 0) == (packing.ptxas.find() is not None)


def test_nothing_is_refused(recorded):
    for calls in recorded[1].values():
        refused = [call["call"] for call in calls if call["code"] and call.get("image") != "cubin"]
        assert set(refused) <= {"cuGetErrorName"}, "the fake has no name for the code of the refused machine code"


def test_a_plain_kernel(recorded):
    """16384 rows, one CTA each; no attributes; the memory that any kernel may use is not asked for."""
    calls = recorded[1]["softmax"]
    launches = _of(calls, "cuLaunchKernelEx")
    assert len(launches) == 3, "by itself, before the recording (memory is taken then), and in it"
    for launch in launches:
        assert (launch["grid"], launch["block"]) == ([16384, 1, 1], [256, 1, 1])
        assert launch["shared"] < 48 << 10 and launch["attributes"] == {}
    assert not _of(calls, "cuFuncSetAttribute", "cuTensorMapEncodeTiled")


def test_a_kernel_in_clusters_with_much_shared_memory(recorded):
    calls = recorded[1]["gemm_bf16_2048"]
    (function,) = _of(calls, "cuModuleGetFunction")
    launch = _of(calls, "cuLaunchKernelEx")[0]
    assert launch["attributes"] == {"4": [2, 1, 1]} and launch["block"] == [384, 1, 1]
    assert launch["grid"][0] % 2 == 0 and launch["grid"][1:] == [1, 1]
    assert launch["shared"] > 48 << 10
    (allowed,) = _of(calls, "cuFuncSetAttribute")
    assert (
        allowed["arguments"] == [function["made"], 8, launch["shared"]] and launch["arguments"][1] == function["made"]
    )
    assert calls.index(function) < calls.index(allowed) < calls.index(launch)


def test_tensor_maps(recorded):
    """Of A, B and C: bf16 [2048, 2048], boxes whose lines are the span of the swizzle, before the launch."""
    calls = recorded[1]["gemm_bf16_2048"]
    maps = _of(calls, "cuTensorMapEncodeTiled")
    launch = calls.index(_of(calls, "cuLaunchKernelEx")[0])
    before = [call for call in maps if calls.index(call) < launch]
    assert len(before) == 3
    for call in before:
        place, element, rank, address = call["arguments"][:4]
        interleave, swizzle, promotion, fill = call["arguments"][8:]
        assert (element, rank, interleave, promotion, fill) == (9, 2, 0, 2, 0)
        assert place % 64 == 0 and address % 16 == 0
        assert (call["dims"], call["strides"], call["steps"]) == ([2048, 2048], [4096], [1, 1])
        assert swizzle == 0 or call["box"][0] * 2 <= {1: 32, 2: 64, 3: 128}[swizzle]
    assert len({call["arguments"][3] for call in before}) == 3


def test_a_graph(recorded):
    """Recorded on a stream of its own, made, launched on the model's stream; the recording launches nothing."""
    for calls in recorded[1].values():
        names = [call["call"] for call in calls]
        begin, end = names.index("cuStreamBeginCapture_v2"), names.index("cuStreamEndCapture")
        inside = _of(calls[begin:end], "cuLaunchKernelEx")
        assert len(inside) == 1
        assert not {"cuMemAllocFromPoolAsync", "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2"} & set(names[begin:end])
        assert end < names.index("cuGraphInstantiateWithFlags") < names.index("cuGraphLaunch")
        assert names.count("cuGraphLaunch") == 1
        plain = _of(calls[:begin], "cuLaunchKernelEx")
        for key in ("grid", "block", "shared", "attributes"):
            assert inside[0][key] == plain[0][key]


def test_what_is_compared_over_many_runs(recorded):
    """Clusters, yes; a row per CTA, no; nor atomics in shared memory, but those in memory, semaphores, two kernels."""
    found = {case["name"]: gpu_code.read(Artifact(case["folder"])) for case in recorded[0]["cases"]}
    assert may_vary(*found["gemm_bf16_2048"], [["/MatMul"]])
    program, modules = found["softmax"]
    assert not may_vary(program, modules, [["/Softmax"]])
    assert may_vary(program, modules, [["/Softmax"], ["/Softmax", "/Add"]])
    assert not may_vary(program, modules, [["/Softmax"], ["/Add"]])
    for line, shared in {
        "atom.global.add.u32 %r1, [%rd1], 1;": True,
        "@%p3 red.release.gpu.global.add.u32 [%rd1], 1;": True,
        "ld.acquire.gpu.global.u32 %r1, [%rd1];": True,
        "ld.acquire.gpu.u32 %r1, [%rd1];": True,
        "st.release.gpu.global.u32 [%rd1], %r1;": True,
        "atom.shared.add.u32 %r1, [%r2], 1;": False,
        "// red.global.add": False,
        "redux.sync.add.s32 %r1, %r2, %r3;": False,
    }.items():
        changed = {name: text + f"\n\t{line}\n".encode() for name, text in modules.items()}
        assert may_vary(program, changed, []) == shared, line
    (entry,) = program["kernels"].values()
    for change in ({"persistent": 1}, {"waits": True}, {"cluster": [1, 2, 1]}):
        assert may_vary({"kernels": {"k": {**entry, **change}}}, modules, [])
    assert not may_vary({"kernels": {"k": {**entry, "cluster": [1, 1, 1]}}}, modules, [])
