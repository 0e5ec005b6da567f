# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clocks, power and temperature: from NVML, else from nvidia-smi, else told as not available."""

import subprocess

import fake_cuda
import pytest

from bench.gpu.far.state import reasons, state

NVML = r"""
#include <string.h>
static int device;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { return *h = &device, i != 0; }
int nvmlDeviceGetHandleByUUID(const char *u, void **h) { return *h = &device, strcmp(u, "GPU-7") != 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *r) {
  return *r = 0x1000000044, h != &device;
}
int nvmlDeviceGetClockInfo(void *h, unsigned kind, unsigned *v) { return *v = kind == 1 ? 1980 : 2619, h != &device; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *v) { return *v = 123456, h != &device; }
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *v) { return *v = 0, 3; }
int nvmlDeviceGetTemperature(void *h, unsigned kind, unsigned *v) { return *v = 45, kind || h != &device; }
"""


@pytest.fixture
def nvml(tmp_path):
    if fake_cuda.COMPILER is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvml.so"
    subprocess.run([fake_cuda.COMPILER, "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True)
    return str(library)


def test_nvml(nvml):
    found = state("GPU-7", nvml, "none")
    assert found == state(None, nvml, "none")
    assert found == {
        "source": "nvml",
        "sm_mhz": 1980,
        "memory_mhz": 2619,
        "power_w": 123.456,
        "power_limit_w": None,
        "temperature_c": 45,
        "throttle": ["power cap", "hardware thermal", "0x1000000000"],
    }
    assert state("GPU-8", nvml, "none")["source"] == "not available"


def test_nvidia_smi(tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "$@" >"$0.arguments"\necho "1755, 2619, 88.5, [N/A], 40, 0x0000000000000001"\n')
    program.chmod(0o755)
    found = state("GPU-7", "none.so", str(program))
    assert (found["source"], found["sm_mhz"], found["power_w"], found["throttle"]) == (
        "nvidia-smi",
        1755.0,
        88.5,
        ["idle"],
    )
    assert found["power_limit_w"] is None
    arguments = (tmp_path / "nvidia-smi.arguments").read_text()
    assert arguments.rstrip().endswith("-i GPU-7") and "clocks.sm,clocks.mem,power.draw" in arguments
    program.write_text("#!/bin/sh\nexit 9\n")
    assert state("GPU-7", "none.so", str(program))["source"] == "not available"


def test_neither():
    found = state(None, "none.so", "no-such-program")
    assert found.pop("source") == "not available" and set(found.values()) == {None}


def test_reasons():
    assert reasons(0) == [] and reasons(0x21) == ["idle", "software thermal"]
