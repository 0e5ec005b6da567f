# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text from a decoder: prompts in, tokens out, keys and values of the past held from step to step."""

from tilewright.generation.generator import Generator
from tilewright.generation.names import Names
from tilewright.generation.request import Request

__all__ = ["Generator", "Names", "Request"]
