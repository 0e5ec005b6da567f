# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Benchmarks: Tilewright beside its peers. `tools/bench/run --list` names the suites; README.md explains the method."""
