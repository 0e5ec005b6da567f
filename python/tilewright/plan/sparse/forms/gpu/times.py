# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted times of sparse products on GPUs: the law of dense products for what is multiplied, and for what is moved.

None of this was measured: the law's constants are those of dense kernels (`plan/cost/gemm_time.py`).
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.cost.prediction import Prediction, choice_fields
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.gpu.packing import element_of

#: Elements of the dense operand across the depth that a plan reckons with where a run brings them.
OPEN = 256
#: Bytes of metadata for each byte of kept elements of 16 bits.
_META = 1 / 8


def halves(problem: Problem, shape: Shape, gpu: Gpu) -> Prediction:
    """2:4 by sparse units, which take as long as for half of the terms; all of `b` is read, and metadata.

    Args:
        problem: the dense product of half of the terms.
        shape: of its tiles.
        gpu: the machine.
    """
    dense = gemm_time.predict(problem, shape, gpu)
    down, across = -(-problem.rows // shape.rows), -(-problem.lanes // shape.lanes)
    values = problem.depth * problem.bytes
    near = values * (down // shape.cluster[0] * problem.lanes + _META * across * problem.rows)
    far = values * (problem.lanes + _META * problem.rows)
    return _moving(dense, round(near), round(far))


def _moving(prediction: Prediction, near: int, far: int) -> Prediction:
    """The same work with so many bytes more through L2 and from memory."""
    parts = dict(prediction.parts)
    before = max(parts.values())
    parts["l2"] *= 1 + near / max(prediction.l2_bytes, 1)
    parts["memory"] *= 1 + far / max(prediction.memory_bytes, 1)
    bound = max(parts, key=lambda name: parts[name])
    return replace(
        prediction,
        seconds=prediction.seconds + parts[bound] - before,
        bound="latency" if prediction.waiting > parts[bound] else bound,
        parts=parts,
        l2_bytes=prediction.l2_bytes + near,
        memory_bytes=prediction.memory_bytes + far,
    )


def windows(problem: Problem, shape: Shape, passed: float, gpu: Gpu) -> Prediction:
    """An element of shared memory for each product of two numbers, and all of the dense operand through there.

    Args:
        problem: the dense product of the terms that are kept.
        shape: of its tiles.
        passed: elements of the dense operand for each one that is kept.
        gpu: the machine.
    """
    dense = gemm_time.predict(replace(problem, kind="f32"), shape, gpu)
    tiles = -(-problem.rows // shape.rows) * -(-problem.lanes // shape.lanes)
    rounds = -(-tiles // gpu.units)
    read = rounds * shape.rows * shape.lanes * problem.depth * problem.bytes
    before = max(dense.parts.values())
    parts = {**dense.parts, "shared": read / gpu.device.level("shared").bandwidth}
    slower = replace(dense, parts=parts, seconds=dense.seconds + max(parts.values()) - before)
    more = problem.lanes * problem.depth * (passed - 1) * problem.bytes
    return _moving(slower, round(more * -(-problem.rows // shape.rows)), round(more))


def slower(product: Product, sparse: Prediction, gpu: Gpu) -> str | None:
    """Why a product is left to another family, where that is not asked for: the dense one is predicted to be faster."""
    if "kernel" in product.op.attributes:
        return None
    columns = product.n if product.n > 0 else OPEN
    rows = product.m if product.m > 0 else OPEN
    out = 4 if product.element == "f32" else 2
    choice = gemm_time.choose(Problem(rows, columns, product.k, 1, 1, element_of(product.dense), out), gpu)
    if choice is None or sparse.seconds <= choice.prediction.seconds:
        return None
    ours, dense = sparse.seconds * 1e6, choice.prediction.seconds * 1e6
    return f"it would take {ours:.0f} us, the dense product {dense:.0f} us, as predicted"


def attribute(prediction: Prediction, shape: Shape, candidates: int = 1) -> str:
    """The prediction as the attribute of a kernel, as text."""
    return f"tile.prediction = {prediction.attribute(choice_fields(str(shape), candidates, 0, ''))}"
