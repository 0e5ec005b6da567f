# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime's CPU provider, with bound inputs and outputs (no allocation or copy per run)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime

from bench.peers import Peer


class OnnxRuntime(Peer):
    """Default session options, spinning included: bursts are far enough apart that its threads sleep by then."""

    settings = "bound inputs and outputs, one session thread pool"

    def version(self) -> str:
        """The package's version."""
        return onnxruntime.__version__

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Create the session and bind arrays."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = dict(inputs)
        self._outputs = [np.asarray(array) for array in self._session.run(None, self._inputs)]
        self._binding = self._session.io_binding()
        for name, array in self._inputs.items():
            self._binding.bind_cpu_input(name, array)
        for value, array in zip(self._session.get_outputs(), self._outputs, strict=True):
            self._binding.bind_output(value.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run(self) -> None:
        """Run the bound session."""
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> list[np.ndarray]:
        """The bound arrays."""
        return self._outputs


PEER = OnnxRuntime
