# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What wrong numbers of a rung mean: forward models of the hardware, and the hypotheses that they are asked about."""
