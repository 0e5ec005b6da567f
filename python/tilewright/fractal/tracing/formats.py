# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Codes of leaves as encoded tensors (`sparse_tile`): the format says how they stand for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.dialects.sparse_tile.formats import Format
from tilewright.dialects.sparse_tile.patterns import Dense
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.fractal.tracing.leaves import Leaves
from tilewright.fractal.tracing.values import TensorValue
from tilewright.fractal.types import TensorType
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types


class Formats(Leaves):
    """Functions of tensors of codes."""

    def dequantize(self, codes: TensorValue, format: Format, numbers: Sequence[Any], dtype: np.dtype) -> TensorValue:
        """The elements that codes stand for."""
        kind = self._encoded(format, codes.shape, dtype)
        whole = self.op("sparse_tile.assemble", [codes.value, *self._held(numbers)], [kind])
        return self.value("sparse_tile.dequantize", [whole.result], TensorType(codes.shape, dtype))

    def quantize(self, x: TensorValue, format: Format, numbers: Sequence[Any]) -> TensorValue:
        """The codes of elements."""
        kind = self._encoded(format, x.shape, x.dtype)
        whole = self.op("sparse_tile.quantize", [x.value, *self._held(numbers)], [kind])
        parts = self.op("sparse_tile.parts", [whole.result], part_types(kind))
        return self.symbol(parts.results[0], TensorType(x.shape, format.held))

    def _encoded(self, format: Format, shape: Sequence[int], dtype: np.dtype) -> ir.RankedTensorType:
        return Tesa.one(Dense(), format).type(list(shape), self.emitter.element_type(dtype))

    def _held(self, numbers: Sequence[Any]) -> list[ir.Value]:
        return [self.as_value(number).value for number in numbers]
