# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an importer hands on: the module, the bytes of its weights, the signature."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.mlir import ir


@dataclass(frozen=True)
class Symbol:
    """A size that every run brings: its name and its bounds (no upper one: None)."""

    name: str
    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class TensorSpec:
    """Name, NumPy dtype and shape of an input or output. A size known at run time only is a Symbol, or -1."""

    name: str
    dtype: np.dtype
    shape: tuple[int | Symbol, ...]


@dataclass
class ImportedModel:
    """A layer-1 module with `@main`, and what the text does not hold.

    Attributes:
        module: one `builtin.module`; weights are globals without bytes.
        weights: bytes of the globals, by symbol name.
        inputs: arguments of `@main`, in order.
        outputs: results of `@main`, in order.
        remarks: what a user should know of slow code, by the node's name.
        ranges: the symbolic dimensions of the inputs, and the sizes that the module is for.
        dims: the sizes of each input and output that has symbolic ones, those by name (-1: it has none).
        boundary: what is done around it in Python for strings and maps (`runtime.text.Boundary.data`), if anything is.
    """

    module: ir.Module
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: list[TensorSpec] = field(default_factory=list)
    outputs: list[TensorSpec] = field(default_factory=list)
    remarks: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    dims: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    boundary: dict[str, Any] | None = None
