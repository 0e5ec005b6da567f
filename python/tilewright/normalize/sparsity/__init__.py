# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pruned weights say of the tensors around them (SparTA, Zheng et al., OSDI 2022, section 3.2: propagation)."""
