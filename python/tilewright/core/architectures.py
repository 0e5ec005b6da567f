# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Architectures of GPUs that code is made for."""

#: Of NVIDIA's GPUs, each with the least version of PTX that has all instructions which kernels use: the older the
#: version, the older the drivers that take it.
CUDA = {"sm_80": "+ptx80", "sm_90a": "+ptx86"}
