# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Find the description of a device by the text that users write."""

from __future__ import annotations

import dataclasses
import difflib
import functools

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.devices.files import described, file_names, load
from tilewright.devices.host import detect_host
from tilewright.devices.nvidia import for_arch
from tilewright.devices.x86 import cpu_units, known_rates, vector_bits

_GENERIC = {512: "host-generic-avx512", 256: "host-generic-avx2", 128: "host-generic-sse"}


def get(target: str | Device) -> Device:
    """Return the device for a target.

    Args:
        target: ``cpu`` (this host); ``cpu:NAME`` with LLVM's name of an x86 CPU, the name of a description that comes
            with Tilewright, or ``native``; the path of a ``.toml`` file, alone or after ``cpu:``; ``cuda:ARCH``; or a
            Device, returned as it is.

    Raises:
        UserError: there is no such device.
    """
    if isinstance(target, Device):
        return target
    if target.endswith(".toml"):
        return load(target.removeprefix("cpu:"))
    family, _, name = target.partition(":")
    if family in _FAMILIES:
        return _FAMILIES[family](name)
    if family not in file_names():
        raise UserError(
            f"unknown device '{target}': use {', '.join(f'{one}:NAME' for one in _FAMILIES)}, cpu, a .toml file or one "
            f"of {', '.join(file_names())}"
        )
    return described(family)


def _cpu(name: str) -> Device:
    """The device behind ``cpu:NAME``."""
    if name in ("", "native"):
        return detect_host()
    return described(name) if name in file_names() else named_cpu(name)


@functools.cache
def named_cpu(name: str) -> Device:
    """Return a generic machine around an x86 CPU that LLVM knows by name, e.g. ``znver5`` or ``x86-64-v3``.

    Raises:
        UserError: LLVM knows no 64-bit x86 CPU of that name.
    """
    from tilewright.mlir._mlir_libs import _tilewright

    known = _tilewright.x86_cpus()
    if name not in known:
        close = difflib.get_close_matches(name, [*known, *file_names()], n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"LLVM's names are {', '.join(known)}"
        raise UserError(f"LLVM knows no x86 CPU named '{name}': {hint}")
    features = tuple(_tilewright.x86_cpu_features(name))
    generic = described(_GENERIC[vector_bits(features)])
    units = cpu_units(features, generic.units.frequency, generic.units.count)
    rates = tuple(sorted({**dict(generic.rates), **dict(known_rates(features))}.items()))
    return dataclasses.replace(generic, name=name, cpu=name, features=features, units=units, rates=rates)


#: What finds a device by the name behind the colon of a target, by the word before it.
_FAMILIES = {"cpu": _cpu, "cuda": for_arch}
