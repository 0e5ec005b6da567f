# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that ONNX Runtime writes of exported models: by its optimizer, its transformer tool and its quantizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .storing import Made

Variant = Callable[[Path], Made]
Write = Callable[[Path, Path], None]  # from a file to a file


def optimized(level: str) -> Write:
    """The optimizer of a session, up to a level."""

    def write(source: Path, target: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
        options.optimized_model_filepath = str(target)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(source), options)

    return write


def fused(kind: str, heads: int = 4, hidden: int = 32) -> Write:
    """The tool for transformers."""

    def write(source: Path, target: Path) -> None:
        from onnxruntime.transformers import optimizer

        optimizer.optimize_model(
            str(source), model_type=kind, num_heads=heads, hidden_size=hidden, opt_level=0
        ).save_model_to_file(str(target))

    return write


def dynamic(source: Path, target: Path) -> None:
    """The quantizer without calibration."""
    from onnxruntime import quantization

    quantization.quantize_dynamic(str(source), str(target))


def static(form: str) -> Write:
    """The quantizer with calibration: QDQ or QOperator."""

    def write(source: Path, target: Path) -> None:
        from onnxruntime import quantization

        inputs = dict(np.load(source.parent / "inputs_0.npz"))

        class Reader(quantization.CalibrationDataReader):
            def __init__(self) -> None:
                self.left = [inputs]

            def get_next(self) -> dict[str, np.ndarray] | None:
                return self.left.pop() if self.left else None

        quantization.quantize_static(
            str(source), str(target), Reader(), quant_format=getattr(quantization.QuantFormat, form)
        )

    return write


def blocks(source: Path, target: Path) -> None:
    """Weights of four bits in blocks: MatMulNBits."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(str(source)), block_size=32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


WAYS: dict[str, tuple[Write, float]] = {
    "basic": (optimized("basic"), 1e-4),
    "extended": (optimized("extended"), 1e-4),
    "all": (optimized("all"), 1e-4),
    "dynamic_int8": (dynamic, 1e-2),  # a number between two steps may become either
    "static_qdq": (static("QDQ"), 4e-2),  # five steps of the results
    "static_qoperator": (static("QOperator"), 4e-2),
    "int4_blocks": (blocks, 1e-4),
    "tool_bert": (fused("bert"), 1e-4),
    "tool_gpt2": (fused("gpt2"), 1e-4),
    "tool_t5": (fused("t5"), 1e-4),
    "tool_vit": (fused("vit"), 1e-4),
}
CHOICES = {
    "transformers/bert.script": ("basic", "extended", "all", "dynamic_int8", "static_qdq", "tool_bert"),
    "transformers/gpt2_past.script": ("extended", "tool_gpt2", "int4_blocks"),
    "transformers/llama_past.script": ("extended", "int4_blocks"),
    "transformers/t5.script": ("extended", "tool_t5"),
    "transformers/vit.script": ("extended", "tool_vit"),
    "torchvision/resnet18.script": ("all", "static_qdq", "static_qoperator"),
    "torchvision/mobilenet_v2.script": ("extended", "dynamic_int8", "static_qoperator"),
}


def pairs() -> Iterator[tuple[str, str]]:
    """Each source with each way that is chosen for it."""
    for source, ways in CHOICES.items():
        for way in ways:
            yield source, way


def variants(out: Path) -> dict[str, Variant]:
    """Files by source and way; the sources are exported before."""

    def variant(source: str, way: str) -> Variant:
        write, tolerance = WAYS[way]

        def make(folder: Path) -> Made:
            write(out / source / "model.onnx", folder / "model.onnx")
            calls = []
            for file in sorted((out / source).glob("inputs_*.npz")):
                calls.append((dict(np.load(file)), None))
            return Made(calls, tolerance, f"onnxruntime ({way})")

        return make

    return {f"{Path(source).stem}.{way}": variant(source, way) for source, way in pairs()}
