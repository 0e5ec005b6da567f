# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target strings: ``cpu``, ``cpu:znver5``, ``cpu:x86-64-v3``, ``cpu:machine.toml``, ``cuda:sm_90a``, ``reference``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.core.errors import UnsupportedError, UserError

if TYPE_CHECKING:
    from tilewright.devices import Device

KNOWN = (
    "cpu (this machine), cpu:NAME (any x86 CPU that LLVM knows, e.g. cpu:znver5 or cpu:x86-64-v3), "
    "cpu:FILE.toml (a described machine), cuda (this GPU), cuda:sm_80, cuda:sm_90a, reference"
)

HOST = ("cpu", "cpu:native")

#: Architectures of NVIDIA's GPUs, each with the least version of PTX that has all instructions which kernels use: the
#: older the version, the older the drivers that take it.
CUDA = {"sm_80": "+ptx80", "sm_90a": "+ptx86"}

#: Features that compiled code can depend on; others (key locker, ...) are never used by generated code.
_USED = frozenset(
    (
        "sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 fma f16c bmi bmi2 lzcnt movbe avxvnni gfni avx512f avx512bw avx512cd "
        "avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq avx512bf16 "
        "avx512fp16 amx-tile amx-bf16 amx-int8"
    ).split()
)


@dataclass(frozen=True)
class Target:
    """What to compile for.

    Attributes:
        name: the target string.
        kind: ``cpu``, ``cuda`` or ``reference``.
        device: the machine that planning sees; None for the reference interpreter.
        cpu: LLVM's CPU name; a GPU's architecture.
        features: LLVM's feature string, e.g. ``+avx2,-avx512f``.
        needed: features that the machine which runs the code must have.
    """

    name: str
    kind: str
    device: Device | None = None
    cpu: str = ""
    features: str = ""
    needed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the target string."""
        return self.name


def check_target(text: str) -> str:
    """Return the kind of a target string, without loading LLVM.

    Raises:
        UserError: there is no such kind of target.
        UnsupportedError: models are not compiled for it.
    """
    kind = text.partition(":")[0] if isinstance(text, str) else ""
    if kind == "cpu" or text == "reference":
        return kind
    if text == "cuda" or (kind == "cuda" and text.partition(":")[2] in CUDA):
        return kind
    if kind == "cuda":
        raise _unknown_gpu(text)
    if kind == "rocm":
        raise UnsupportedError(
            f"{text!r} is text only, and untested on hardware: tilewright.targets.rocm.assembly makes it of kernels"
        )
    raise UserError(f"unknown target {text!r}; this version has {KNOWN}")


def _unknown_gpu(text: str) -> UserError:
    """Why there is no code for a GPU, and which target is meant, as far as its name tells."""
    number = re.fullmatch(r"cuda:(?:sm_|compute_)?(\d+)[af]?", text)
    named = " and ".join(f"cuda:{arch}" for arch in CUDA)
    if number is None:
        hint = (
            "an architecture is meant, as in cuda:sm_90a for H100 and H200, cuda:sm_80 for A100 and what came between"
        )
    elif int(number[1]) < 80:
        hint = f"sm_{number[1]} is too old: kernels need the asynchronous copies of sm_80 (A100)"
    elif number[1] == "90":
        hint = "cuda:sm_90a is meant: the instructions of H100 and H200 that kernels use have the suffix"
    else:
        hint = "this GPU runs the code of cuda:sm_80"
    return UserError(f"unknown GPU {text!r}: code is made for {named}; {hint}")


def parse_target(text: str | Target) -> Target:
    """Return the target that a string means.

    Raises:
        UserError: unknown target or CPU.
    """
    if isinstance(text, Target):
        return text
    if check_target(text) == "reference":
        return Target("reference", "reference")
    if check_target(text) == "cuda":
        return _cuda(text)
    from tilewright import devices
    from tilewright.mlir._mlir_libs import _tilewright

    device = devices.get(text)
    implied = _tilewright.x86_cpu_features(device.cpu) if device.cpu in _tilewright.x86_cpus() else ()
    features = device.features or tuple(implied)  # a description may leave them to its CPU's name
    return Target(
        name=text,
        kind="cpu",
        device=device,
        cpu=device.cpu,
        features=feature_string(features, implied),
        needed=_needed(text, features),
    )


def _cuda(text: str) -> Target:
    """The target of a GPU: the one that is named, or this machine's."""
    from tilewright import devices

    arch = text.partition(":")[2] or present_arch()
    return Target(f"cuda:{arch}", "cuda", devices.get(f"cuda:{arch}"), arch, CUDA[arch])


def present_arch() -> str:
    """Return the architecture to make code of for this machine's GPU.

    Raises:
        UserError: there is none, or one that is too old.
    """
    from tilewright.runtime.gpu import cuda

    named = " or ".join(f"cuda:{arch}" for arch in CUDA)
    if not cuda.available():
        raise UserError(f"target 'cuda' is this machine's GPU, and there is none: name one, as in {named}")
    arch = cuda.arch()
    number = int("".join(c for c in arch if c.isdigit()))
    if number < 80:
        raise UserError(f"this machine's GPU is an {arch}; code is made for {named} and later ones")
    return "sm_90a" if number == 90 else "sm_80"


def _needed(text: str, features: Iterable[str]) -> tuple[str, ...]:
    needed = _USED & set(features)
    if text in HOST:
        # The kernel may hide a feature that the CPU reports; what this machine compiles must load here.
        from tilewright.runtime.cpu.cpu_features import host_features

        needed &= host_features()
    return tuple(sorted(needed))


def feature_string(features: Iterable[str], implied: Iterable[str]) -> str:
    """Return LLVM's feature string: `features` on, what the CPU's name implies beyond them off (a hypervisor hides it).

    >>> feature_string(["avx2", "fma"], ["avx2", "amx-tile"])
    '+avx2,+fma,-amx-tile'
    """
    on = set(features)
    return ",".join([*(f"+{name}" for name in sorted(on)), *(f"-{name}" for name in sorted(set(implied) - on))])
