# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of a kernel's launch as bytes, by the list that the kernel was compiled with."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import InternalError
from tilewright.runtime.gpu.gpu_device import Device
from tilewright.runtime.gpu.gpu_memory import View, element_bytes

#: Descriptors that are kept: callers with ever new addresses or sizes would else fill the memory.
_MOST_MAPS = 4096

_LONG = struct.Struct("<q")
_POINTER = struct.Struct("<Q")
_BOUND = struct.Struct("<i")


class Packer:
    """Makes parameters; keeps the TMA descriptors that it made.

    Args:
        device: that makes descriptors.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._maps: dict[tuple, bytes] = {}

    def pack(
        self, kernel: str, params: Sequence[Mapping[str, Any]], grid: Sequence[int], args: Sequence[Any]
    ) -> list[bytes]:
        """Return one bytes object per parameter.

        Args:
            kernel: its name, for errors.
            params: the kernel's list, see `tile.params` in the rationale of the conversion.
            grid: bounds of the grid's coordinates.
            args: arguments of the launch: views and numbers.

        Raises:
            InternalError: a parameter of an unknown kind.
            UserError: no TMA descriptor for an argument's address and strides.
        """
        return [self._one(kernel, param, grid, args) for param in params]

    def _one(self, kernel: str, param: Mapping[str, Any], grid: Sequence[int], args: Sequence[Any]) -> bytes:
        kind = param["kind"]
        if kind == "bound":
            return _BOUND.pack(grid[param["dim"]])
        value = args[param["arg"]]
        if kind == "pointer":
            return _pointer(kernel, param, value)
        if kind == "size":
            return _LONG.pack(value.sizes[param["dim"]])
        if kind == "stride":
            return _LONG.pack(value.strides[param["dim"]])
        if kind == "scalar":
            return scalar_bytes(value, param["type"])
        if kind == "tensor_map":
            return self._map(_part(value, param), param)
        raise InternalError(f"kernel {kernel} takes a parameter of kind {kind!r}, which no launch can make")

    def _map(self, view: View, param: Mapping[str, Any]) -> bytes:
        box, steps = (tuple(param.get(name, ())) for name in ("box", "steps"))
        key = (view.address, view.sizes, view.strides, view.dtype, box, param["swizzle"], param["fill"], steps)
        found = self._maps.get(key)
        if found is None:
            if len(self._maps) >= _MOST_MAPS:
                self._maps.pop(next(iter(self._maps)))
            size = element_bytes(view.dtype)
            found = self._maps[key] = self._device.tensor_map(
                view.dtype.lower(),
                view.address,
                view.sizes[::-1],
                [stride * size for stride in view.strides[-2::-1]],
                box[::-1],  # written as the argument's dimensions stand
                param["swizzle"],
                param["fill"],
                steps[::-1],
            )
        return found


def _part(view: View, param: Mapping[str, Any]) -> View:
    """What of an argument a descriptor is of: all, or a part that the kernel gives what it launches."""
    if "shift" not in param:
        return view
    at = view.address - view.memory.address + param["shift"]
    return View(view.memory, param["element"], 0, tuple(param["sizes"]), tuple(param["strides"]), at)


def _pointer(kernel: str, param: Mapping[str, Any], view: View) -> bytes:
    """The address of the first element, or of what a type with a known offset counts from."""
    address = view.address - param.get("offset", 0) * element_bytes(view.dtype)
    align = param.get("align", 1)
    if address % align:
        raise InternalError(
            f"kernel {kernel}: argument {param['arg']} lies at {address:#x}; its code relies on multiples of {align}"
        )
    return _POINTER.pack(address)


def scalar_bytes(value: Any, kind: str) -> bytes:
    """Return a number as its type lies in memory."""
    return of_mlir(kind).type(value).tobytes()
