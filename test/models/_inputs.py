# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random inputs for any of the models, from the graph's own declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from .bert import encoder_inputs


def random_inputs(
    model: onnx.ModelProto, seed: int = 0, sizes: Mapping[str, int] | None = None
) -> dict[str, np.ndarray]:
    """Seeded inputs by name. `sizes` gives symbolic dimensions; token ids stay inside the embedding table."""
    sizes = sizes or {}
    declared = {i.name: i.type.tensor_type for i in model.graph.input}
    shapes = {
        name: [sizes[d.dim_param] if d.dim_param else d.dim_value for d in kind.shape.dim]
        for name, kind in declared.items()
    }
    if "input_ids" in declared:
        table = next(t for t in model.graph.initializer if "embeddings.word" in t.name and len(t.dims) == 2)
        return encoder_inputs(*shapes["input_ids"], vocabulary=table.dims[0], seed=seed)
    random = np.random.default_rng(seed)
    return {name: _array(random, declared[name].elem_type, shape) for name, shape in shapes.items()}


def _array(random: np.random.Generator, kind: int, shape: Sequence[int]) -> np.ndarray:
    """Small non-negative integers, or normal floats."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if dtype.kind in "iu":
        return random.integers(0, 16, shape, dtype)
    return random.standard_normal(shape, dtype=np.float32).astype(dtype)
