# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaign `onnx`: mutated ONNX files for the front end. Anything but a model or an error for users is a finding."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .campaign import Campaign, Contexts, describe

_NUMBERS = (0, 1, -1, 2, 3, 7, 127, 255, -128, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))
_LARGEST = 1 << 16  # bytes of a file to start from


class OnnxFiles(Campaign):
    """Bytes of small models changed at random: flipped, cut, doubled, spliced; or fields changed in a valid file."""

    name = "onnx"
    suffix = ".onnx"

    def prepare(self) -> None:
        """Read the models of ONNX's node tests."""
        from onnx_suite import cases

        files = [case.folder / "model.onnx" for case in cases.load(["node", "pytorch-converted", "simple"])]
        self._contexts = Contexts()
        self._seeds = [file.read_bytes() for file in files if file.stat().st_size <= _LARGEST]

    def case(self, choose: random.Random) -> bytes:
        """One to four changes of one model."""
        data = choose.choice(self._seeds)
        fields = choose.random() < 0.6
        for _ in range(choose.choice((1, 1, 2, 4))):
            data = change_fields(data, choose) if fields else change_bytes(data, choose, self._seeds)
        return data

    def execute(self, case: bytes) -> str | None:
        """Import it."""
        from tilewright.core.errors import InternalError, TilewrightError
        from tilewright.frontend import import_onnx

        try:
            import_onnx(case, context=self._contexts.next())
        except InternalError as error:
            return describe(error)
        except TilewrightError:
            return None
        except Exception as error:
            return describe(error)
        return None


def change_bytes(data: bytes, choose: random.Random, others: list[bytes]) -> bytes:
    """One change of the bytes."""
    at = choose.randrange(len(data) + 1)
    kind = choose.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1 and at < len(data):
        return data[:at] + bytes([data[at] ^ (1 << choose.randrange(8))]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + choose.randbytes(choose.randrange(1, 9)) + data[at:]
    if kind == 3:
        return data[:at] + data[at + choose.randrange(1, 17) :]
    if kind == 4:
        end = min(len(data), at + choose.randrange(1, 65))
        return data[:end] + data[at:end] + data[end:]
    other = choose.choice(others)
    return data[:at] + other[choose.randrange(len(other) + 1) :]


def change_fields(data: bytes, choose: random.Random) -> bytes:
    """One change of a field somewhere in the message; the bytes themselves where they are no message."""
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return data
    places: list[Callable[[random.Random], None]] = []
    _collect(model, places, 0)
    try:
        choose.choice(places)(choose)
        return model.SerializeToString()
    except (ValueError, TypeError):  # a value that the field's type refuses
        return data


def _collect(message: Any, places: list, depth: int) -> None:
    """A function for each field that can be changed."""
    for field, value in message.ListFields():
        if field.is_repeated:
            places.append(lambda choose, m=message, f=field: _change_list(m, f, choose))
            items = list(value)[:64] if field.message_type else []
        else:
            places.append(lambda choose, m=message, f=field: _change_one(m, f, choose))
            items = [value] if field.message_type else []
        if depth < 12:
            for item in items:
                _collect(item, places, depth + 1)


def _change_list(message: Any, field: Any, choose: random.Random) -> None:
    values = getattr(message, field.name)
    i = choose.randrange(len(values))
    kind = choose.randrange(4)
    if kind == 0:
        del values[i]
    elif kind == 1 and field.message_type:
        values.add().CopyFrom(choose.choice(list(values)))
    elif kind == 2 and len(values) > 1 and field.message_type:
        values[i].CopyFrom(values[choose.randrange(len(values))])
    elif not field.message_type:
        values[i] = _value(field, values[i], choose, values)


def _change_one(message: Any, field: Any, choose: random.Random) -> None:
    if field.message_type or choose.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _value(field, getattr(message, field.name), choose, [""]))


def _value(field: Any, old: Any, choose: random.Random, others: Any) -> Any:
    if isinstance(old, bool | int):
        return choose.choice((*_NUMBERS, old + 1, old - 1))
    if isinstance(old, float):
        return choose.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    if isinstance(old, str):
        return choose.choice((choose.choice(list(others)), "", "x", old + "x", "\u00e9", "Conv", "Reshape", "Loop"))
    return change_bytes(old, choose, [b"\0" * 8]) if old else b"\0"
