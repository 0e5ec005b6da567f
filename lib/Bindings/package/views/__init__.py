# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the bindings look first for the Python classes of a dialect's operations, when they meet one in IR.

Upstream's modules are imported otherwise, which takes a noticeable part of the compilation of a small model. Here stand
those dialects of which passes need less than that; who imports upstream's module gets all of it.
"""
