# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of ai.onnx.ml: encoders, linear models, support vector machines, trees."""

from tilewright.frontend.onnx.ops.ml import (
    encoders,
    ngrams,
    svm,
    trees,
)

__all__ = [
    "encoders",
    "ngrams",
    "svm",
    "trees",
]
