# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions of machines in TOML files: those that come with Tilewright, and others."""

from __future__ import annotations

import functools
from pathlib import Path

from tilewright.core.errors import UserError
from tilewright.devices.device import Device

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

_FOLDER = Path(__file__).parent


def file_names() -> list[str]:
    """Return the names of the descriptions that come with Tilewright."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


@functools.cache
def load(path: str | Path) -> Device:
    """Return the device described by a TOML file.

    Raises:
        UserError: there is no such file, or it is no description.
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read the device description '{path}': {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {error}") from None
    return Device.from_dict(values, str(path))


def described(name: str) -> Device:
    """Return the device whose description comes with Tilewright under that name."""
    return load(_FOLDER / f"{name}.toml")
