"""Fixtures: an empty cache, and models whose lowering is known."""

from __future__ import annotations

import lowered_model
import pytest

import tilewright as tw
from tilewright.core import config


@pytest.fixture(autouse=True)
def cache_dir(tmp_path):
    with config.cache_dir.override(tmp_path / "cache"):
        yield tmp_path / "cache"


@pytest.fixture(scope="session", autouse=True)
def _needs_the_extension():
    pytest.importorskip("tilewright.mlir._mlir_libs._tilewright")


@pytest.fixture
def compiled():
    """Compile the model whose lowering is in its text."""

    def run(**options):
        options = {"weights": {"w_0": lowered_model.WEIGHT}, "pipeline": lowered_model.pipeline(), **options}
        return tw.compile(lowered_model.TEXT, **options)

    return run
