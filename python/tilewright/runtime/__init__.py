# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The run-time: loads and runs compiled models with the standard library, ctypes and NumPy alone.

Nothing here imports MLIR, onnx or the compiler; a test blocks them and runs a model.
"""

from tilewright.runtime.cpu.model import Model
from tilewright.runtime.manifest import KernelInfo, Manifest, TensorSpec
from tilewright.runtime.result import Outputs

__all__ = ["KernelInfo", "Manifest", "Model", "Outputs", "TensorSpec"]
