# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/bench/run mesh`: times of decoders on a wafer, simulated, beside what WaferLLM (OSDI 2025) published."""
