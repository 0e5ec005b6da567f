# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code beside PTX in a model: who loads which, and what happens where a driver refuses the former."""

import copy
import logging

import fake_cuda
import numpy as np
import pytest
from test_gpu_calls import COUNT, PROGRAM

from tilewright.core.errors import TilewrightError, UserError
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.cuda import CudaDevice
from tilewright.runtime.gpu.host_program import HostProgram
from tilewright.runtime.manifest import Manifest, TensorSpec
from tilewright.sim import ptx as emulate
from tilewright.targets.loading import load as load_model

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


@pytest.fixture
def saved(tmp_path):
    """A model of one kernel, z = x + y, with both kinds of code for sm_90a."""
    inputs, outputs = ([TensorSpec(name, "f32", (COUNT,)) for name in names] for names in ("xy", "z"))
    manifest = Manifest(tuple(inputs), tuple(outputs), target="cuda:sm_90a", cpu="sm_90a", producer="tilewright test")
    gpu_code.write(tmp_path / "model", manifest, WITH_CUBIN, MODULES, {})
    return tmp_path / "model"


def test_a_saved_model_runs_its_machine_code(saved, fake):
    x = np.arange(COUNT, dtype=np.float32)
    np.testing.assert_array_equal(load_model(saved)(x, x)[0], 2 * x)
    assert fake.log("load") == ["load cubin"]


@pytest.mark.parametrize(("attributes", "arch"), [(fake_cuda.AMPERE, "sm_80"), (fake_cuda.HOPPER | {75: 10}, "sm_100")])
def test_a_saved_model_of_another_architecture_is_refused(saved, fake, attributes, arch):
    """Code with a suffix runs on its own chip only; the error says what to do."""
    fake.reset(attributes)
    x = np.zeros(COUNT, np.float32)
    with pytest.raises(UserError, match=rf"has code for sm_90a, this GPU \(Fake GPU 0\) is {arch}.*target='cuda'"):
        load_model(saved)(x, x)
    assert not fake.log("load")
