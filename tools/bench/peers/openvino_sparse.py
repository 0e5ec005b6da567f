# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""OpenVINO's CPU plugin with its option for sparse weights."""

from __future__ import annotations

from typing import ClassVar

from bench.peers.openvino import OpenVino


class OpenVinoSparse(OpenVino):
    """Weights with at least this part of zeros may be kept compressed (the plugin does so for int8 on AMX)."""

    settings = f"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE=0.4; else {OpenVino.settings}"
    further: ClassVar[dict[str, object]] = {"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE": 0.4}


PEER = OpenVinoSparse
