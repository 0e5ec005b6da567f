# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and writing safetensors files, without copies on the way in.

The format: 8 bytes length of the header (little endian), the header as JSON (name -> dtype, shape, data_offsets), the
bytes. Files written here align every tensor to 64 bytes (vector loads that cross cache lines cost twice); as the
format allows no holes, the gaps are tensors of their own, named ``__gap_<n>``, which reading skips. Element types that
the format does not have (or packs: ours take a byte each) are bytes in it, and ``__metadata__`` holds their names.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tilewright.core.dtypes import from_numpy, to_numpy
from tilewright.core.errors import UserError

ALIGNMENT = 64
_GAP = "__gap_"
_METADATA = "__metadata__"
_FORMAT = {name: name.upper() for name in "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 c64".split()} | {
    "i1": "BOOL",
    "f8e4m3fn": "F8_E4M3",
    "f8e5m2": "F8_E5M2",
    "f8e8m0fnu": "F8_E8M0",
}
_NAMES = {value: name for name, value in _FORMAT.items()}
_HEADER_LIMIT = 100 << 20


def write(file: BinaryIO, tensors: Mapping[str, np.ndarray]) -> None:
    """Write `tensors` (any shape and strides) to an open binary file."""
    foreign = {name: own for name, a in tensors.items() if (own := from_numpy(a.dtype)) not in _FORMAT}
    header: dict[str, dict] = {_METADATA: foreign} if foreign else {}
    offset = 0
    for number, (name, array) in enumerate(tensors.items()):
        end = offset + array.nbytes
        header[name] = {
            "dtype": "U8" if name in foreign else _FORMAT[from_numpy(array.dtype)],
            "shape": [*array.shape, array.itemsize] if name in foreign else list(array.shape),
            "data_offsets": [offset, end],
        }
        gap = -end % ALIGNMENT
        if gap:
            header[f"{_GAP}{number}"] = {"dtype": "U8", "shape": [gap], "data_offsets": [end, end + gap]}
        offset = end + gap
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    file.write(struct.pack("<Q", len(text)) + text)
    for array in tensors.values():
        data = np.ascontiguousarray(array)
        file.write(memoryview(data.reshape(-1).view(np.uint8)))
        file.write(b"\0" * (-data.nbytes % ALIGNMENT))


def read(path: str | Path, start: int = 0) -> dict[str, np.ndarray]:
    """Map a file and return its tensors as read-only views into the mapping.

    Args:
        path: the file.
        start: where the safetensors data begins in it (inside a zip archive).

    Raises:
        UserError: the file is not well-formed safetensors.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size - start < 8:
            raise UserError(f"{path} is too short for a safetensors file; compile or save the model again")
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (length,) = struct.unpack_from("<Q", mapping, start)
    data_start = start + 8 + length
    if length > _HEADER_LIMIT or data_start > size:
        raise UserError(f"{path} is not a safetensors file: its header claims {length} bytes")
    try:
        header = json.loads(mapping[start + 8 : data_start])
        foreign = header.get(_METADATA, {})
        entries = [(name, entry) for name, entry in header.items() if _is_tensor(name)]
        return {name: _view(mapping, data_start, entry, foreign.get(name)) for name, entry in entries}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged: {error}; compile or save the model again") from None


def _is_tensor(name: str) -> bool:
    return name != _METADATA and not name.startswith(_GAP)


def _view(mapping: mmap.mmap, data_start: int, entry: dict, foreign: str | None) -> np.ndarray:
    name = entry["dtype"]
    if foreign is None and name not in _NAMES:
        raise ValueError(f"element type {name} is not supported; known: {', '.join(_NAMES)}")
    dtype = to_numpy(foreign or _NAMES[name])
    shape = tuple(entry["shape"][:-1] if foreign else entry["shape"])
    begin, end = entry["data_offsets"]
    count = int(np.prod(shape, dtype=np.int64))
    if end - begin != count * dtype.itemsize:
        raise ValueError(f"{end - begin} bytes for shape {shape} of {dtype}")
    if count == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(mapping, dtype, count, data_start + begin).reshape(shape)
