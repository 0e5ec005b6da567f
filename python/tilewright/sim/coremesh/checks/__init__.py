# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known about a program for a mesh of cores before it runs: memory, routes, colors, deadlocks, races."""
