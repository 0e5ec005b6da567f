# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The main job as a program (`python -m tilewright.demo`): a trained sentence encoder, compiled and checked."""
