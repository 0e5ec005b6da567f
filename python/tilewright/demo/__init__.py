# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The main job as a program: a trained sentence encoder, compiled for this CPU and checked (`python -m tilewright.demo`)."""
