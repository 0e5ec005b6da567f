# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles for GPUs: a task is a CTA, a register tile is distributed over its threads. One file per idea (README.md)."""
