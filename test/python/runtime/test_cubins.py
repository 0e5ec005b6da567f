# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code beside PTX in a model: who loads which, and what happens where a driver refuses the former."""

import copy
import logging

import fake_cuda
import pytest
from test_gpu_calls import PROGRAM

from tilewright import emulate
from tilewright.errors import TilewrightError
from tilewright.runtime.cuda import CudaDevice
from tilewright.runtime.host_program import HostProgram

MODULES = {"add.ptx": fake_cuda.PTX, "add.cubin": fake_cuda.CUBIN}
WITH_CUBIN = copy.deepcopy(PROGRAM)
WITH_CUBIN["kernels"]["add"]["cubin"] = "add.cubin"


def test_a_gpu_of_exactly_the_architecture_loads_machine_code(gpu, fake):
    HostProgram(WITH_CUBIN, gpu, MODULES, {})
    assert fake.log("load") == ["load cubin"]


def test_a_model_without_machine_code_loads_ptx(gpu, fake):
    HostProgram(PROGRAM, gpu, MODULES, {})
    assert fake.log("load") == ["load ptx"]


def test_another_architecture_of_the_family_assembles_the_ptx(fake):
    """An A10 (sm_86) runs what was made for an A100."""
    fake.reset(fake_cuda.AMPERE | {76: 6})
    program = {**WITH_CUBIN, "arch": "sm_80"}
    with CudaDevice() as device:
        assert device.limits.arch == "sm_86"
        HostProgram(program, device, MODULES, {})
        assert fake.log("load") == ["load ptx"]


@pytest.mark.parametrize("code", [200, 209, 222])
def test_a_driver_that_refuses_machine_code_gets_ptx_and_a_warning_says_so(gpu, fake, caplog, code):
    """An older driver knows nothing of a newer toolkit's."""
    fake.fail("cuModuleLoadDataEx", code)
    with caplog.at_level(logging.WARNING, "tilewright"):
        HostProgram(WITH_CUBIN, gpu, MODULES, {})
    assert fake.log("load") == ["load ptx"]
    (record,) = caplog.records
    assert "kernel add: its machine code cannot be loaded, its PTX is assembled instead" in record.getMessage()


def test_ptx_that_is_refused_is_an_error_still(gpu, fake):
    with pytest.raises(TilewrightError, match="the driver's assembler rejects the PTX"):
        HostProgram(WITH_CUBIN, gpu, {"add.ptx": b"nonsense", "add.cubin": b"damaged"}, {})


def test_the_emulator_reads_ptx():
    """It has no machine code of its own."""
    assert not emulate.Device(arch="sm_90a").limits.cubins
