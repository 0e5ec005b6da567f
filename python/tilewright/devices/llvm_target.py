# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What LLVM is told of a device: the name of its processor, and its features."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.architectures import CUDA
from tilewright.core.errors import UserError
from tilewright.devices.device import Device


def llvm_target(device: Device) -> tuple[str, str]:
    """Return LLVM's name of a device's processor, and its feature string.

    Raises:
        UserError: it is a GPU of an architecture that no code is made for.
    """
    if device.kind != "gpu":
        features, implied = cpu_features(device)
        return device.cpu, feature_string(features, implied)
    if device.cpu not in CUDA:
        raise UserError(f"device '{device.name}' is a GPU of architecture '{device.cpu}': use {' or '.join(CUDA)}")
    return device.cpu, CUDA[device.cpu]


def cpu_features(device: Device) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the features of a CPU, which a description may leave to its name, and those that the name implies."""
    from tilewright.mlir._mlir_libs import _tilewright

    implied = tuple(_tilewright.x86_cpu_features(device.cpu)) if device.cpu in _tilewright.x86_cpus() else ()
    return device.features or implied, implied


def feature_string(features: Iterable[str], implied: Iterable[str]) -> str:
    """Return LLVM's feature string: `features` on, what the CPU's name implies beyond them off (a hypervisor hides it).

    >>> feature_string(["avx2", "fma"], ["avx2", "amx-tile"])
    '+avx2,+fma,-amx-tile'
    """
    on = set(features)
    return ",".join([*(f"+{name}" for name in sorted(on)), *(f"-{name}" for name in sorted(set(implied) - on))])
