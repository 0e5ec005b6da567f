# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""OpenVINO's CPU plugin: latency hint, the case's precision forced, an infer request with preset tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import openvino

from bench.peers import Peer


class OpenVino(Peer):
    """INFERENCE_PRECISION_HINT is set because the plugin would choose bf16 by itself where the CPU has it."""

    further: ClassVar[dict[str, object]] = {}  # settings of a variant
    settings = "PERFORMANCE_HINT=LATENCY, INFERENCE_PRECISION_HINT=f32 (bf16 in bf16 cases), preset tensors"

    def version(self) -> str:
        """The package's version."""
        return openvino.__version__

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Compile the model and bind arrays."""
        core = openvino.Core()
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            **self.further,
        }
        compiled = core.compile_model(core.read_model(str(model)), "CPU", settings)
        self._request = compiled.create_infer_request()
        self._inputs = [openvino.Tensor(array, shared_memory=True) for array in inputs.values()]
        for name, tensor in zip(inputs, self._inputs, strict=True):
            self._request.set_tensor(name, tensor)
        self._outputs = []
        for i, port in enumerate(compiled.outputs):
            tensor = openvino.Tensor(port.get_element_type(), openvino.Shape(list(port.get_shape())))
            self._request.set_output_tensor(i, tensor)
            self._outputs.append(tensor)

    def run(self) -> None:
        """Run the request; its results are views of the bound tensors."""
        self._request.infer(share_outputs=True)

    def outputs(self) -> list[np.ndarray]:
        """The bound tensors."""
        return [tensor.data for tensor in self._outputs]


PEER = OpenVino
