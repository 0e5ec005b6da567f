# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of libcuda's functions against NVIDIA's own header, where a toolkit is installed."""

import ctypes
import re
import subprocess

import fake_cuda
import pytest

from tilewright.runtime.gpu import cuda_driver as cu
from tilewright.runtime.gpu import cuda_errors

pytestmark = pytest.mark.skipif(fake_cuda.HEADER is None, reason="needs cuda.h of a CUDA toolkit")

#: Handles and enumerations by their sizes.
WORDS = {"unsigned int": 4, "int": 4, "size_t": 8, "CUdeviceptr": 8, "CUdevice": 4, "cuuint32_t": 4, "CUresult": 4}
WORDS |= {"unsigned char": 1, "unsigned long long": 8, "CUstreamCaptureMode": 4}
HANDLES = {"CUcontext", "CUmodule", "CUfunction", "CUstream", "CUevent", "CUgraph", "CUgraphExec", "CUmemoryPool"}
CONSTANTS = {
    "MAX_THREADS_PER_BLOCK": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
    "MAX_GRID_DIM_X": "CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X",
    "MULTIPROCESSOR_COUNT": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "COMPUTE_CAPABILITY_MAJOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "COMPUTE_CAPABILITY_MINOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "MEMORY_POOLS_SUPPORTED": "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED",
    "CLUSTER_LAUNCH": "CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH",
    "FUNC_MAX_THREADS_PER_BLOCK": "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
    "FUNC_SHARED_SIZE_BYTES": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
    "FUNC_LOCAL_SIZE_BYTES": "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES",
    "FUNC_NUM_REGS": "CU_FUNC_ATTRIBUTE_NUM_REGS",
    "FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "JIT_INFO_LOG_BUFFER": "CU_JIT_INFO_LOG_BUFFER",
    "JIT_INFO_LOG_BUFFER_SIZE_BYTES": "CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES",
    "JIT_ERROR_LOG_BUFFER": "CU_JIT_ERROR_LOG_BUFFER",
    "JIT_ERROR_LOG_BUFFER_SIZE_BYTES": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
    "JIT_GENERATE_LINE_INFO": "CU_JIT_GENERATE_LINE_INFO",
    "LAUNCH_ATTRIBUTE_COOPERATIVE": "CU_LAUNCH_ATTRIBUTE_COOPERATIVE",
    "LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION": "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION",
    "STREAM_NON_BLOCKING": "CU_STREAM_NON_BLOCKING",
    "STREAM_CAPTURE_MODE_THREAD_LOCAL": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
    "MEM_ALLOCATION_TYPE_PINNED": "CU_MEM_ALLOCATION_TYPE_PINNED",
    "MEM_LOCATION_TYPE_DEVICE": "CU_MEM_LOCATION_TYPE_DEVICE",
    "MEMPOOL_ATTR_RELEASE_THRESHOLD": "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD",
    "MEMPOOL_ATTR_RESERVED_MEM_CURRENT": "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT",
    "MEMPOOL_ATTR_USED_MEM_CURRENT": "CU_MEMPOOL_ATTR_USED_MEM_CURRENT",
    "TENSOR_MAP_L2_PROMOTION_128B": "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
}
TYPES = {"u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "i32": "INT32", "u64": "UINT64", "i64": "INT64"}
TYPES |= {"f16": "FLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "bf16": "BFLOAT16"}
STRUCTURES = {
    "CUlaunchConfig": cu.LaunchConfig,
    "CUlaunchAttribute": cu.LaunchAttribute,
    "CUmemPoolProps": cu.MemPoolProperties,
}
MEMBERS = (
    ("CUlaunchConfig", "blockDimX", "block"),
    ("CUlaunchConfig", "sharedMemBytes", "shared_bytes"),
    ("CUlaunchConfig", "hStream", "stream"),
    ("CUlaunchConfig", "attrs", "attributes"),
    ("CUlaunchConfig", "numAttrs", "attribute_count"),
    ("CUlaunchAttribute", "value", "value"),
    ("CUmemPoolProps", "location", "location_type"),
    ("CUmemPoolProps", "maxSize", "max_size"),
)


@pytest.fixture(scope="module")
def header():
    return fake_cuda.HEADER.read_text(errors="replace")


def _size(declaration: str) -> int:
    words = re.sub(r"\bconst\b", "", declaration)
    if "*" in words:
        return 8
    kind = words.strip().rpartition(" ")[0].strip()
    if kind in HANDLES:
        return 8
    return WORDS.get(kind, 4 if re.fullmatch(r"CU[a-zA-Z0-9_]+", kind) else 0)


@pytest.mark.parametrize("name", sorted(cu.PROTOTYPES))
def test_arguments_have_the_sizes_of_the_header(header, name):
    plain = re.sub(r"_v\d$", "", name)
    plain = "cuGraphInstantiate" if plain == "cuGraphInstantiateWithFlags" else plain  # 13.0: a macro for it
    found = re.search(rf"^CUresult CUDAAPI {plain}\(([^;]*)\);", header, re.MULTILINE)
    assert found, f"{plain} is not in cuda.h"
    wanted = [_size(part) for part in found[1].split(",") if part != "void"]
    assert 0 not in wanted
    assert [ctypes.sizeof(kind) for kind in cu.PROTOTYPES[name]] == wanted
    if name != plain:
        assert re.search(rf"define {plain} +(__CUDA_API_PT[DS][SZ]\()?{name}\b", header)


def _claims() -> list[tuple[str, int]]:
    """Expressions of C, and what our table says they are."""
    claims = [(value, getattr(cu, name)) for name, value in CONSTANTS.items()]
    claims += [(f"CU_TENSOR_MAP_DATA_TYPE_{word}", cu.TENSOR_MAP_TYPES[name]) for name, word in TYPES.items()]
    claims += [(f"CU_TENSOR_MAP_SWIZZLE_{n}B", number) for n, number in cu.TENSOR_MAP_SWIZZLES.items() if n]
    claims += [("CU_TENSOR_MAP_SWIZZLE_NONE", cu.TENSOR_MAP_SWIZZLES[0]), ("CU_TENSOR_MAP_INTERLEAVE_NONE", 0)]
    claims += [("CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE", cu.TENSOR_MAP_FILLS["zero"])]
    claims += [("CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA", cu.TENSOR_MAP_FILLS["nan"])]
    for structure, ours in STRUCTURES.items():
        claims.append((f"sizeof({structure})", ctypes.sizeof(ours)))
    for structure, member, field in MEMBERS:
        claims.append((f"__builtin_offsetof({structure}, {member})", getattr(STRUCTURES[structure], field).offset))
    return claims


def test_constants_and_structures_are_those_of_the_header(tmp_path):
    source = tmp_path / "constants.c"
    lines = [f'_Static_assert({expression} == {value}, "");' for expression, value in _claims()]
    source.write_text("\n".join(["#include <cuda.h>", *lines, ""]))
    command = [fake_cuda.COMPILER, f"-I{fake_cuda.HEADER.parent}", "-fsyntax-only", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_advice_is_for_codes_that_exist(header):
    codes = {int(code) for code in re.findall(r"CUDA_ERROR_\w+ *= (\d+)", header)}
    assert set(cuda_errors.ADVICE) <= codes
