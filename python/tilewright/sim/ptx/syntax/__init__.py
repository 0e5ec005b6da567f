# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From PTX text to instructions that are decoded: text, tree, operands, what is known of a kernel before it runs."""
