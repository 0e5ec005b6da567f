# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of tiled TMA descriptors, checked before any driver sees one: the driver says no more than "invalid value".

Source: CUDA driver API, ``cuTensorMapEncodeTiled`` (tensor map object management). The emulator's device applies the
same rules, so that a descriptor which it takes is one that hardware takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.dtypes import item_bytes
from tilewright.core.errors import UserError

#: Bytes of an element, for each type that a descriptor can describe (fp8 and truth values travel as bytes).
ELEMENT_BYTES = {
    name: item_bytes(name)
    for name in (
        "f64 i64 u64 f32 i32 u32 f16 bf16 i16 u16 i8 u8 i1 f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz f8e8m0fnu".split()
    )
}
FLOATS = frozenset({"f64", "f32", "f16", "bf16"})
SWIZZLES = (0, 32, 64, 128)
FILLS = ("zero", "nan")
#: Bytes of a descriptor, and the alignment that the driver and the kernel's parameter need.
SIZE, ALIGNMENT = 128, 64


def check(
    element: str,
    address: int,
    dims: Sequence[int],
    strides_bytes: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    fill: str,
    steps: Sequence[int] = (),
) -> None:
    """Check the arguments of ``Device.tensor_map``.

    Raises:
        UserError: which rule is broken, by which figure.
    """
    problem = (
        _wrong_kind(element, swizzle, fill)
        or _wrong_rank(dims, strides_bytes, box)
        or _wrong_memory(address, dims, strides_bytes)
        or _wrong_box(ELEMENT_BYTES[element], box, swizzle)
        or _wrong_steps(box, steps)
    )
    if problem:
        raise UserError(
            f"no TMA descriptor of {element}, dims {list(dims)}, strides {list(strides_bytes)} bytes, box {list(box)} "
            f"(innermost first), swizzle {swizzle}: {problem}"
        )


def _wrong_kind(element: str, swizzle: int, fill: str) -> str | None:
    if element not in ELEMENT_BYTES:
        return f"elements must be of {', '.join(ELEMENT_BYTES)}"
    if swizzle not in SWIZZLES:
        return f"the swizzle must be one of {SWIZZLES} bytes"
    if fill not in FILLS:
        return f"the fill must be one of {FILLS}, got {fill!r}"
    if fill == "nan" and element not in FLOATS:
        return f"only {', '.join(sorted(FLOATS))} can be filled with nan"
    return None


def _wrong_rank(dims: Sequence[int], strides_bytes: Sequence[int], box: Sequence[int]) -> str | None:
    if not 1 <= len(dims) <= 5:
        return f"1 to 5 dimensions, not {len(dims)}"
    if len(box) != len(dims) or len(strides_bytes) != len(dims) - 1:
        return f"{len(dims)} dimensions need {len(dims)} box sizes and {len(dims) - 1} strides"
    return None


def _wrong_memory(address: int, dims: Sequence[int], strides_bytes: Sequence[int]) -> str | None:
    if address % 16:
        return f"the address {address:#x} must be a multiple of 16"
    for size in dims:
        if not 1 <= size <= 2**32:
            return f"a dimension of {size} is outside 1 to 2^32"
    for stride in strides_bytes:
        if stride % 16 or not 0 < stride < 2**40:
            return f"a stride of {stride} bytes must be a positive multiple of 16 below 2^40: pad the rows"
    return None


def _wrong_box(element_bytes: int, box: Sequence[int], swizzle: int) -> str | None:
    for size in box:
        if not 1 <= size <= 256:
            return f"a box size of {size} is outside 1 to 256"
    row = box[0] * element_bytes
    if row % 16:
        return f"the box's rows of {row} bytes must be multiples of 16"
    if swizzle and row > swizzle:
        return f"the box's rows of {row} bytes must fit into the swizzle's span of {swizzle}"
    return None


def _wrong_steps(box: Sequence[int], steps: Sequence[int]) -> str | None:
    if steps and len(steps) != len(box):
        return f"{len(box)} dimensions need {len(box)} steps, or none"
    if any(not 1 <= step <= 8 for step in steps):
        return f"steps of {list(steps)} are outside 1 to 8"
    return "elements side by side are copied all: the first step must be 1" if steps and steps[0] != 1 else None
