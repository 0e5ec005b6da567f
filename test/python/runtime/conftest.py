"""Fixtures of the run-time's tests."""

from __future__ import annotations

import fake_cuda
import fake_model
import pytest

from tilewright.core import config
from tilewright.runtime.gpu.cuda import CudaDevice
from tilewright.targets.loading import load as load_model


@pytest.fixture(scope="session")
def artifact(tmp_path_factory):
    if fake_model.COMPILER is None:
        pytest.skip("needs a C compiler")
    return fake_model.build(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def model(artifact):
    return load_model(artifact)


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory):
    if fake_cuda.COMPILER is None:
        pytest.skip("needs a C compiler")
    return fake_cuda.FakeCuda(fake_cuda.build(tmp_path_factory.mktemp("cuda")))


@pytest.fixture
def fake(fake_driver):
    """The fake driver of a Hopper GPU in the place of libcuda."""
    fake_driver.reset()
    with config.libcuda.override(str(fake_driver.path)):
        yield fake_driver


@pytest.fixture
def gpu(fake):
    with CudaDevice() as device:
        yield device
