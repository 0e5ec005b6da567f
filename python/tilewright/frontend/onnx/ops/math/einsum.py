# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Einsum: each step one `linalg.generic` over the labels of one or two operands; diagonals are indexing maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import sum_of_products
from tilewright.frontend.onnx.registry import Builder, Node, op

Label = str | int  # a letter, or a dimension of the ellipsis counted from its end (-1, -2, ...)


@dataclass(frozen=True)
class _Operand:
    x: Tensor
    labels: tuple[Label, ...]


def _labels(node: Node, term: str, rank: int | None, ellipsis: int) -> tuple[Label, ...]:
    """The labels of one term; the ellipsis covers what the letters leave of `rank`, or `ellipsis` dimensions."""
    before, dots, after = term.partition("...")
    if not all(c.isalpha() for c in before + after):
        node.wrong(f"cannot read the term {term!r} of the equation")
    count = ellipsis if rank is None else rank - len(before + after)
    if count < 0 or (count and not dots):
        node.wrong(f"the term {term!r} does not fit an operand of {rank} dimensions")
    middle = tuple(range(-count, 0)) if dots else ()
    return (*before, *middle, *after)


def _parse(node: Node, equation: str, ranks: Sequence[int]) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """Labels of every operand and of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        node.wrong(f"the equation {equation!r} has {len(terms)} terms for {len(ranks)} operands")
    operands = [_labels(node, term, rank, 0) for term, rank in zip(terms, ranks, strict=True)]
    counts = Counter(label for labels in operands for label in labels)
    dots = sorted(label for label in counts if isinstance(label, int))
    if arrow:
        result = _labels(node, right, None, len(dots))
    else:
        result = (*dots, *sorted(label for label, n in counts.items() if isinstance(label, str) and n == 1))
    if len(set(result)) != len(result) or not set(result) <= set(counts):
        node.wrong(f"the result {right!r} of the equation repeats a label, or has one that no operand has")
    return operands, result


def _sizes(b: Builder, node: Node, operands: Sequence[_Operand]) -> dict[Label, Size]:
    found: dict[Label, list] = {}
    for operand in operands:
        for label, n in zip(operand.labels, operand.x.shape, strict=True):
            found.setdefault(label, []).append(n)
    try:
        return {label: b.common_shape(*([n] for n in sizes))[0] for label, sizes in found.items()}
    except ValueError as error:
        node.wrong(f"the operands do not fit: {error}")


def _step(b: Builder, sizes: dict, operands: Sequence[_Operand], kept: Sequence[Label]) -> _Operand:
    """Multiply one or two operands and sum over their labels that are not `kept`."""
    here = list(dict.fromkeys(label for operand in operands for label in operand.labels))
    out = [label for label in kept if label in here]
    loops = [*out, *(label for label in here if label not in out)]
    number = {label: i for i, label in enumerate(loops)}
    own = {label for operand in operands for label, n in zip(operand.labels, operand.x.shape, strict=True) if n != 1}
    space = Space([sizes[d] if d in own else 1 for d in loops], frozenset(range(len(out), len(loops))))
    reads = [(operand.x, [number[label] for label in operand.labels]) for operand in operands]
    return _Operand(sum_of_products(b, space, reads, range(len(out))), tuple(out))


def _alone(b: Builder, sizes: dict, operand: _Operand, kept: Sequence[Label]) -> _Operand:
    """Diagonals and sums of one operand; a permutation is a view."""
    out = [label for label in kept if label in operand.labels]
    if len(out) == len(operand.labels):
        return _Operand(operand.x.transpose([operand.labels.index(label) for label in out]), tuple(out))
    return _step(b, sizes, [operand], out)


def _path(equation: str, operands: Sequence[_Operand]) -> list[tuple[int, ...]]:
    """Which operands to multiply at each step: NumPy's greedy choice, or from left to right."""
    shapes = [operand.x.shape for operand in operands]
    if len(operands) < 3 or not all(is_static(shape) and 0 not in shape for shape in shapes):
        return [(0, 1)] * (len(operands) - 1)
    dummies = [np.broadcast_to(np.float32(0), [int(n) for n in shape]) for shape in shapes]
    path = np.einsum_path(equation, *dummies, optimize="greedy")[0][1:]
    return [tuple(step) for step in path]


@op("Einsum")
def einsum(b: Builder, node: Node, *xs: Tensor) -> Tensor:
    """Any equation: ellipsis, repeated labels, sums, any number of operands."""
    equation = node.attr("equation", "")
    terms, result = _parse(node, equation, [x.rank for x in xs])
    operands = [_Operand(x, labels) for x, labels in zip(xs, terms, strict=True)]
    sizes = _sizes(b, node, operands)
    for step in _path(equation, operands):
        chosen = [operands[i] for i in step]
        operands = [operand for i, operand in enumerate(operands) if i not in step]
        for i, second in enumerate(chosen[1:], 1):
            others = [*operands, *chosen[i + 1 :]]
            later = {label for operand in others for label in operand.labels}
            kept = [*result, *(label for label in _all(terms) if label in later and label not in result)]
            first = _alone(b, sizes, chosen[0], _shared(chosen[0], [second, *others], result))
            second = _alone(b, sizes, second, _shared(second, [first, *others], result))
            chosen[0] = _step(b, sizes, [first, second], kept)
        operands.append(chosen[0])
    return _alone(b, sizes, operands[0], result).x


def _all(terms: Sequence[Sequence[Label]]) -> list[Label]:
    return list(dict.fromkeys(label for term in terms for label in term))


def _shared(operand: _Operand, others: Sequence[_Operand], result: Sequence[Label]) -> list[Label]:
    """The operand's labels that something else still needs, in its order."""
    needed = {label for other in others for label in other.labels} | set(result)
    return [label for label in dict.fromkeys(operand.labels) if label in needed]
