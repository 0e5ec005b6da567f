# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of codes, scales and zero points as encoded tensors (`sparse_tile`): quantize, dequantize.

Both give None for what no number format says (codes of 16 bits, scales of other types): operators then compute it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.dtypes import named
from tilewright.dialects.sparse_tile.formats import STORAGE, Format
from tilewright.dialects.sparse_tile.patterns import Dense
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.frontend.builder.builder import Builder, foldable
from tilewright.frontend.builder.dims import Size, has_zero, is_static, marked
from tilewright.frontend.builder.dtypes import F32, I32, is_float
from tilewright.frontend.builder.tensor import Tensor
from tilewright.ir.views import create_with_ones
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types

_FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Numbers:
    """Scales and zero points of a tensor.

    Attributes:
        scale: broadcasts with the tensor, but along `blocks`; None where there are none.
        zero: the same.
        blocks: dimensions of the tensor along which so many neighbours share a number.
        bits: of a code, where it is less than its type's.
    """

    scale: Tensor | None = None
    zero: Tensor | None = None
    blocks: Mapping[int, int] | None = None
    bits: int = 8


def dequantize(b: Builder, codes: Tensor, numbers: Numbers, dtype: np.dtype) -> Tensor | None:
    """(codes - zero) * scale as `dtype`; without scales as int32."""
    storage = _storage(codes.dtype, numbers.bits)
    wanted = dtype == I32 if numbers.scale is None else _name(dtype) in _FLOATS
    if storage is None or not wanted or not _fits(codes, storage, numbers):
        return None
    codes = _without_ones(b, b.stored(codes))
    kind, held = _encoding(b, codes, storage, numbers, dtype)
    value = b.op("sparse_tile.assemble", [codes.data, *held], kind)
    plain = ir.RankedTensorType.get(kind.shape, kind.element_type)
    return Tensor(dtype, codes.shape, b.op("sparse_tile.dequantize", [value], plain), codes.dims)


def quantize(b: Builder, x: Tensor, numbers: Numbers, dtype: np.dtype) -> Tensor | None:
    """saturate(round(x / scale) + zero) as codes of `dtype`."""
    storage, scale = _storage(dtype, 8), numbers.scale
    if storage is None or scale is None or _name(x.dtype) not in _FLOATS or not _fits(x, storage, numbers):
        return None
    if scale.dtype not in (x.dtype, F32):
        return None  # ONNX rounds what it divides to the scale's type before
    x = _without_ones(b, b.stored(x))
    kind, held = _encoding(b, x, storage, numbers, x.dtype)
    value = b.op("sparse_tile.quantize", [x.data, *held], kind)
    parts = ir.Operation.create("sparse_tile.parts", results=part_types(kind), operands=[value])
    return Tensor(np.dtype(dtype), x.shape, parts.results[0], x.dims)


def _name(dtype: np.typing.DTypeLike) -> str:
    """Our name of a type of numbers; empty where there is none."""
    return named(np.dtype(dtype).name) or ""


def _storage(dtype: np.dtype, bits: int) -> str | None:
    """The name of a type of codes; None where no format has it."""
    name = _name(dtype)
    name = f"{name[:1]}{bits}" if bits < 8 and not is_float(dtype) else name
    return name if name in STORAGE else None


def _fits(x: Tensor, storage: str, numbers: Numbers) -> bool:
    """Whether a format says it all; what is known and small is folded instead."""
    given = [v for v in (numbers.scale, numbers.zero) if v is not None]
    if has_zero(x.shape) or (is_static(x.shape) and foldable([x, *given], x.size)):
        return False
    if numbers.scale is not None and _name(numbers.scale.dtype) not in (*_FLOATS, "f8e8m0fnu"):
        return False
    zero = numbers.zero
    if zero is not None and (storage.startswith("f") or _name(zero.dtype) not in (*STORAGE[:6], "i32", *_FLOATS)):
        return False
    return all(v.is_static for v in given)


def _encoding(
    b: Builder, x: Tensor, storage: str, numbers: Numbers, dtype: np.dtype
) -> tuple[ir.RankedTensorType, list[ir.Value]]:
    """The type of the encoded tensor, and its scales and zero points as the type wants them."""
    shapes = [_aligned(v, x.rank) for v in (numbers.scale, numbers.zero) if v is not None]
    common = [max(sizes) for sizes in zip(*shapes, strict=True)] if shapes else [1] * x.rank
    blocks = numbers.blocks or {}
    group = tuple(None if d is None or common[d] == 1 else blocks.get(d, 1) for d in x.dims)
    scales, zeros = ((v and _name(v.dtype)) for v in (numbers.scale, numbers.zero))
    if zeros is not None and zeros in STORAGE[:6]:
        zeros = storage
    format = Format(storage, scales, zeros, group if any(group) else ())
    kind = Tesa.one(Dense(), format).type(marked(_sizes(x)), b.element_type(dtype))
    given = [v for v in (numbers.scale, numbers.zero) if v is not None]
    return kind, [_beside(b, v, x, common) for v in given]


def _sizes(x: Tensor) -> list[Size]:
    """Sizes of what is stored."""
    return [1 if d is None else x.shape[d] for d in x.dims]


def _aligned(v: Tensor, rank: int) -> list[int]:
    """Sizes of a tensor with as many dimensions."""
    return [1] * (rank - v.rank) + [int(n) for n in v.shape]


def _beside(b: Builder, v: Tensor, x: Tensor, common: Sequence[int]) -> ir.Value:
    """A scale or zero point stored in the order of `x`, with a dimension for each that `x` is stored with."""
    v = v.unsqueeze(range(x.rank - v.rank)) if v.rank < x.rank else v
    v = b.broadcast(v, common) if list(v.shape) != list(common) else v
    order = [d for d in x.dims if d is not None and common[d] != 1]
    if [d for d in v.dims if d is not None and v.shape[d] != 1] != order:
        v = b.copy(v, [*(d for d in range(v.rank) if d not in order), *order])
    return create_with_ones(b.stored(v).data, [1 if d is None else common[d] for d in x.dims])


def _without_ones(b: Builder, x: Tensor) -> Tensor:
    """A stored tensor without dimensions of size 1, as results of operators are."""
    dims = tuple(d for d in x.dims if d is not None and x.shape[d] != 1) or (None,)
    if len(dims) >= len(x.dims):
        return x
    sizes = [n for n in ir.RankedTensorType(x.data.type).shape if n != 1] or [1]
    return Tensor(x.dtype, x.shape, create_with_ones(x.data, sizes), dims)
