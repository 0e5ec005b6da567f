# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of element types, and what MLIR calls them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.dtypes import FLOATS, NAMES, bits_of, from_numpy, item_bytes, name_of_mlir, of_mlir, to_numpy
from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.dtypes import element_type, storage
from tilewright.mlir import ir


@pytest.mark.parametrize("name", NAMES)
def test_names_go_round(name: str) -> None:
    assert from_numpy(to_numpy(name)) == name
    assert item_bytes(name) == to_numpy(name).itemsize


@pytest.mark.parametrize("name", NAMES)
def test_types_of_the_ir_are_read_back(name: str) -> None:
    """The IR holds small integers in bytes, and integers have no sign."""
    held = storage(to_numpy(name))
    with ir.Context():
        found = of_mlir(str(element_type(held)))
    assert found == (np.dtype(f"i{held.itemsize}") if held.kind == "u" else held)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("index", np.int64), ("ui8", np.uint8), ("si16", np.int16), ("i1", np.bool_), ("f8E5M2", ml_dtypes.float8_e5m2)],
)
def test_names_of_mlir(text: str, dtype: type) -> None:
    assert of_mlir(text) == dtype


def test_bits() -> None:
    assert [bits_of(name) for name in ("i1", "u4", "f6e2m3fn", "f8e8m0fnu", "bf16", "c64")] == [1, 4, 6, 8, 16, 64]
    assert {"bf16", "f32", "f4e2m1fn"} <= set(FLOATS)


@pytest.mark.parametrize("text", ["i7", "tensor<4xf32>", "!tile.token"])
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match="unknown element type"):
        of_mlir(text)
    assert name_of_mlir(text) not in NAMES
