"""Fixtures of the run-time's tests."""

from __future__ import annotations

import fake_model
import pytest

from tilewright.runtime import load_model


@pytest.fixture(scope="session")
def artifact(tmp_path_factory):
    if fake_model.COMPILER is None:
        pytest.skip("needs a C compiler")
    return fake_model.build(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def model(artifact):
    return load_model(artifact)
