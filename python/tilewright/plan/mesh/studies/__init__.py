# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Studies of machines: what a model costs on meshes that differ (`explore`), and what products cost as grids grow."""
