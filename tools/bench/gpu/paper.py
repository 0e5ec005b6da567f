# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted times of GPU kernels, from the device description alone: `tools/bench/run gpu-paper [--device NAME]`.

Each program is planned as `tw.compile` plans it; the numbers are what the plan left on its kernels (`tile.prediction`).
Nothing is measured. Operations are those of products where a kernel has some, and all others where not. The roofline is
the plan's, as in the report of a model: products at the peak of their type, or each tensor once at the bandwidth of
memory, whichever takes longer; a column tells its part of the predicted time. With `--suite`: all cases of the GPU
suite, each launch counted once, in a stream and in a CUDA graph, where only the first launch costs what it does there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.gpu.cases import CASES as SUITE
from bench.gpu.cases import Case
from bench.gpu.packing import described
from models.sparse_programs import SparseProduct
from tilewright import devices
from tilewright.compiler.source import open_source
from tilewright.core.errors import InternalError, UserError
from tilewright.devices import Device
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.pipelines import cuda_plan
from tilewright.plan.cost.decide import prediction_of

_DEVICES = ("nvidia-a100", "nvidia-h100", "nvidia-h200")


def _model(nodes: list, inputs: dict[str, tuple[int, list[int]]], constants: Sequence = ()) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    kind = next(iter(inputs.values()))[0]
    result = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "paper", given, result, list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def gemm(size: int) -> onnx.ModelProto:
    """A square product of bf16."""
    shape = (TensorProto.BFLOAT16, [size, size])
    return _model([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": shape, "b": shape})


def _attention(shapes: dict[str, list[int]], kind: int, causal: bool = False) -> onnx.ModelProto:
    """The operator Attention: no tensor holds a mask."""
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("y", kind, shapes["q"])
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=int(causal))
    graph = helper.make_graph([node], "paper", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def attention(batch: int, heads: int, length: int, channels: int, causal: bool) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(channels)) v in f16; a causal query sees the keys up to its own."""
    return _attention(dict.fromkeys("qkv", [batch, heads, length, channels]), TensorProto.FLOAT16, causal)


def decode(heads: int, groups: int, keys: int, channels: int) -> onnx.ModelProto:
    """One query for each head, groups of heads with common keys and values, in bf16: the operator Attention."""
    shapes = {"q": [1, heads, 1, channels]} | dict.fromkeys("kv", [1, groups, keys, channels])
    return _attention(shapes, TensorProto.BFLOAT16)


def softmax(rows: int, columns: int) -> onnx.ModelProto:
    """Along the rows of a matrix of f32."""
    return _model([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {"x": (TensorProto.FLOAT, [rows, columns])})


def layer_norm(rows: int, columns: int) -> onnx.ModelProto:
    """Along the rows of a matrix of f32, with scale and bias."""
    weights = [numpy_helper.from_array(np.ones(columns, np.float32), name) for name in ("s", "b")]
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)
    return _model([node], {"x": (TensorProto.FLOAT, [rows, columns])}, weights)


def sparse(form: str, pattern: str, left: bool = True) -> SparseProduct:
    """A square product of f16 with pruned weights of one family of kernels, beside the dense one."""
    return SparseProduct(form, pattern, (4096, 4096), 4096, left, ("f16", "f16"))


CASES: dict[str, Callable[[], onnx.ModelProto | SparseProduct]] = {
    "GEMM 4096^3 bf16": lambda: gemm(4096),
    "  2:4 weights": lambda: sparse("gpu_mma_sp", "nm<2 : 4, axis = 1>"),
    "  8:32, 64 rows share": lambda: sparse("gpu_nm", "nm<8 : 32, axis = 1, unit = [64, 1]>"),
    "  8:32, each row its own": lambda: sparse("gpu_nm", "nm<8 : 32, axis = 1>"),
    "  blocks 64x64, 10 % kept": lambda: replace(sparse("gpu_blocks", "block<[64, 64]>"), density=0.1),
    "GEMM 8192^3 bf16": lambda: gemm(8192),
    "attention b4 h16 s4096 d128 f16": lambda: attention(4, 16, 4096, 128, causal=False),
    "attention, causal": lambda: attention(4, 16, 4096, 128, causal=True),
    "decode h32 g8 keys 8192 d128 bf16": lambda: decode(32, 8, 8192, 128),
    "softmax 16384x4096 f32": lambda: softmax(16384, 4096),
    "layer norm 16384x4096 f32": lambda: layer_norm(16384, 4096),
}


@dataclass(frozen=True)
class Line:
    """What the plan says of one kernel."""

    case: str
    kernel: str
    found: dict[str, object]

    def __str__(self) -> str:
        """Return a row of the table."""
        number = {name: value for name, value in self.found.items() if isinstance(value, int)}
        seconds = number["ns"] * 1e-9
        cells = [
            f"{self.case:33}",
            f"{seconds * 1e6:9.1f} us",
            f"{number.get('products', number['operations']) / seconds / 1e12:7.1f} TFLOP/s",
            f"{number['memory_bytes'] / 2**20:8.1f} MiB",
            f"{number['l2_bytes'] / 2**20:9.1f} MiB",
            f"{number['occupancy']:3}",
            f"{self.found['bound']:8}",
            f"{number['roofline_ns'] * 1e-9 / seconds:5.0%}",
            f"{self.found.get('shape', '')}",
        ]
        return "  ".join(cells)


def plan(model: onnx.ModelProto | SparseProduct, device: Device) -> ir.Module:
    """The module after phase `tile`."""
    if isinstance(model, SparseProduct):
        imported = open_source(model.text(), {"w": model.weight()}).load(None)
    else:
        imported = open_source(model).load(None, True)
    annotate(imported.module, device)
    for phase in cuda_plan.PHASES:
        run_pipeline(imported.module, phase, weights=imported.weights)
    return imported.module


def lines(case: str, device: Device) -> Iterator[Line]:
    """One line per kernel of a case."""
    for op in plan(CASES[case](), device).body.operations:
        if op.operation.name == "tile.kernel":
            yield Line(case, ir.StringAttr(op.operation.attributes["sym_name"]).value, prediction_of(op))


@dataclass(frozen=True)
class Total:
    """The predicted time of a case of the suite.

    Attributes:
        case: its name.
        kernels: how many are launched.
        seconds: one behind the other in a stream.
        graph: the same in a CUDA graph.
        product_seconds: of kernels that hold products.
        products: their operations.
    """

    case: str
    kernels: int
    seconds: float
    graph: float
    product_seconds: float
    products: int

    def __str__(self) -> str:
        """Return a row of the table."""
        rate = f"{self.products / self.product_seconds / 1e12:7.1f} TFLOP/s" if self.products else f"{'-':>15}"
        return f"{self.case:33}  {self.kernels:4}  {self.seconds * 1e6:9.1f} us  {self.graph * 1e6:9.1f} us  {rate}"


def total(case: Case, device: Device) -> Total:
    """What the plan predicts for all launches of a case. InternalError: a kernel without a prediction is launched."""
    module = plan(described(case, False).model, device)
    found = [prediction_of(kernel) for kernel in kernels(module)]
    if not all("ns" in one for one in found):
        raise InternalError(f"case {case.name} launches a kernel without tile.prediction")
    seconds = sum(one["ns"] for one in found) * 1e-9
    later = sum(one.get("launch_ns", 0) * 1e-9 - device.rate("launch.graph") for one in found[1:])
    having = [one for one in found if "products" in one]
    products = sum(one["products"] for one in having)
    return Total(case.name, len(found), seconds, seconds - later, sum(one["ns"] for one in having) * 1e-9, products)


def kernels(module: ir.Module) -> list[ir.Operation]:
    """The kernel of each launch, those inside of loops once. They live as long as the module."""
    named = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if op.operation.name == "tile.kernel"
    }
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tile.launch":
            found.append(named[ir.FlatSymbolRefAttr(op.attributes["kernel"]).value])
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _print_suite(device: Device, part: str) -> None:
    print(f"{'':33}  kernels  {'stream':>9}  {'graph':>12}  {'products':>15}")
    for case in SUITE:
        if part in case.name:
            try:
                print(total(case, device), flush=True)
            except UserError as error:
                print(f"{case.name:33}  not planned: {str(error).splitlines()[0]}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Print the table; returns 0."""
    assert ml_dtypes  # NumPy knows bf16 once it is loaded
    parser = argparse.ArgumentParser(prog="tools/bench/run gpu-paper", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", action="append", help="a device description; more than once: all of them")
    parser.add_argument("--case", default="", help="only cases whose name contains it")
    parser.add_argument("--suite", action="store_true", help="all cases of the GPU suite instead, a line each")
    options = parser.parse_args(list(arguments))
    print("Predicted from the device description, not measured.")
    for name in options.device or _DEVICES:
        device = devices.get(name)
        print(f"\n{name}")
        if options.suite:
            _print_suite(device, options.case)
            continue
        print(
            f"{'':33}  {'time':>12}  {'':15}  {'memory':>12}  {'through L2':>13}  CTAs/unit  bound  of roofline  shape"
        )
        for case in CASES:
            if options.case in case:
                for line in lines(case, device):
                    print(line, flush=True)
    return 0
