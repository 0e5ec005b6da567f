# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The features of this CPU by LLVM's names, and the check of a model against them."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Iterable

from tilewright.core import config
from tilewright.core.cpuinfo import cpuinfo
from tilewright.core.errors import UserError
from tilewright.core.hidden_features import visible

#: /proc/cpuinfo's flag -> LLVM's feature, where the two differ. Others are the flag with "_" removed or "-" instead.
_LLVM_NAMES = {
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "abm": "lzcnt",
    "rdrand": "rdrnd",
    "sha_ni": "sha",
    "lahf_lm": "sahf",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx512_vp2intersect": "avx512vp2intersect",
    "avx_vnni": "avxvnni",
    "avx_vnni_int8": "avxvnniint8",
    "avx_vnni_int16": "avxvnniint16",
    "avx_ifma": "avxifma",
    "avx_ne_convert": "avxneconvert",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
    "amx_fp16": "amx-fp16",
    "gfni": "gfni",
    "vaes": "vaes",
    "vpclmulqdq": "vpclmulqdq",
    "pclmulqdq": "pclmul",
    "popcnt": "popcnt",
    "cx16": "cx16",
    "movbe": "movbe",
    "fma": "fma",
    "fma4": "fma4",
    "f16c": "f16c",
    "bmi1": "bmi",
    "bmi2": "bmi2",
    "aes": "aes",
    "avx": "avx",
    "avx2": "avx2",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "mmx": "mmx",
    "sse": "sse",
    "sse2": "sse2",
    "ssse3": "ssse3",
    "sse4a": "sse4a",
    "adx": "adx",
    "clwb": "clwb",
    "clflushopt": "clflushopt",
    "prfchw": "prfchw",
    "3dnowprefetch": "prfchw",
    "fsgsbase": "fsgsbase",
    "xsave": "xsave",
    "movdiri": "movdiri",
    "movdir64b": "movdir64b",
    "serialize": "serialize",
}


#: What only code with products of a matrix unit needs.
MATRIX_UNIT = frozenset({"amx-tile", "amx-bf16", "amx-int8"})


def features_of(info: dict[str, str]) -> frozenset[str]:
    """Return the features, by LLVM's names, that the field ``flags`` lists."""
    return frozenset(_LLVM_NAMES[flag] for flag in info.get("flags", "").split() if flag in _LLVM_NAMES)


def host_features() -> frozenset[str]:
    """Return the features of this machine's CPU, by LLVM's names, without those that a setting hides."""
    return _visible(config.hide_features.get())


@functools.cache
def _visible(_hidden: tuple[str, ...]) -> frozenset[str]:
    return frozenset(visible(features_of(cpuinfo())))


def check_host(needed: Iterable[str], what: str, cpu: str) -> None:
    """Check that this CPU has all `needed` features.

    Raises:
        UserError: names the missing ones, and what the model was compiled for; or the kernel refuses the registers of
            the matrix unit.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        raise UserError(f"{what} holds x86-64 code, this machine is {platform.machine()}")
    missing = sorted(set(needed) - host_features())
    if missing:
        here = cpuinfo().get("model name", "this CPU")
        hidden = config.hide_features.get()
        here += f" (with {config.hide_features.name}={','.join(hidden)})" if hidden else ""
        raise UserError(
            f"{what} was compiled for {cpu} and needs CPU features that {here} lacks: {', '.join(missing)}. "
            "Compile it on this machine, or for an older CPU, e.g. target='cpu:x86-64-v3'"
        )
    if MATRIX_UNIT & set(needed):
        _use_matrix_unit(what)


def _use_matrix_unit(what: str) -> None:
    from tilewright.runtime.cpu.library import libtwrt

    refused = libtwrt().twrt_use_matrix_unit()
    if refused:
        raise UserError(
            f"{what} uses the matrix unit (AMX), but the kernel refuses this process its registers: "
            f"{os.strerror(refused)}. Linux has had them since 5.16; or compile for a CPU without, e.g. "
            "target='cpu:x86-64-v4'"
        )
