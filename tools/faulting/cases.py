# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose generated kernels are broken on purpose: one of each kind of kernel, each as small as can be.

A kernel whose CTAs compute tile after tile needs more tiles than CTAs: such cases are planned for, and run on, a GPU of
a few multiprocessors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

import models
from bench.gpu.kernels import BUILDERS
from tilewright.devices.nvidia import for_arch
from tilewright.pipelines.cuda import pipeline
from tilewright.pipelines.pipeline import Pipeline

ARCHS = ("sm_80", "sm_90a")


def attention(heads: int, queries: int, keys: int, depth: int, causal: bool) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(depth) [+ mask]) v in f16, which becomes one kernel with a loop over blocks of keys."""
    kind = np.dtype(np.float16)
    element = helper.np_dtype_to_tensor_dtype(kind)
    constants = [numpy_helper.from_array(np.asarray(depth**-0.5, kind), "scale")]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
    ]
    if causal:
        mask = np.where(np.tril(np.ones((queries, keys), bool)), 0, -np.inf).astype(kind)
        constants.append(numpy_helper.from_array(mask, "mask"))
        nodes.append(helper.make_node("Add", ["scaled", "mask"], ["masked"]))
    nodes.append(helper.make_node("Softmax", ["masked" if causal else "scaled"], ["p"], axis=-1))
    nodes.append(helper.make_node("MatMul", ["p", "v"], ["y"]))
    shapes = {"q": queries, "k": keys, "v": keys}
    inputs = [helper.make_tensor_value_info(n, element, [1, heads, size, depth]) for n, size in shapes.items()]
    result = helper.make_tensor_value_info("y", element, [1, heads, queries, depth])
    graph = helper.make_graph(nodes, "attention", inputs, [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def integer_product(m: int, n: int, k: int) -> onnx.ModelProto:
    """`a` [m, k] of i8 times `b` [k, n] of i8, in i32."""
    inputs = [
        helper.make_tensor_value_info("a", onnx.TensorProto.INT8, [m, k]),
        helper.make_tensor_value_info("b", onnx.TensorProto.INT8, [k, n]),
    ]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [m, n])
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "product", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def residual_product(m: int, n: int, k: int) -> onnx.ModelProto:
    """`a` [m, k] times `b` [k, n], added to `r` [m, n], in f16."""
    kind = onnx.TensorProto.FLOAT16
    shapes = {"a": [m, k], "b": [k, n], "r": [m, n]}
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("y", kind, [m, n])
    nodes = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Add", ["p", "r"], ["y"])]
    graph = helper.make_graph(nodes, "product", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@dataclass(frozen=True)
class Case:
    """One model.

    Attributes:
        model: its builder: of this file, of the GPU suite's kernels, or the name of a test model.
        sizes: what the builder takes.
        units: multiprocessors of the GPU that it is planned for and runs on; 0: as many as the architecture's has.
        archs: that it is made for.
        marks: what its PTX must have, so that the case is of the kind that it stands for.
    """

    model: str | Callable[..., onnx.ModelProto]
    sizes: Mapping[str, object] = field(default_factory=dict)
    units: int = 0
    archs: tuple[str, ...] = ARCHS
    marks: tuple[str, ...] = ()

    def build(self) -> onnx.ModelProto:
        """The model."""
        if callable(self.model):
            return self.model(**self.sizes)
        build = BUILDERS.get(self.model)
        return build(**self.sizes) if build else models.build(self.model, **self.sizes)

    def pipeline(self, arch: str) -> Pipeline | None:
        """The pipeline of its GPU; None: the architecture's own."""
        if not self.units:
            return None
        device = for_arch(arch)
        units = replace(device.units, count=self.units)
        return pipeline(replace(device, name=f"{device.name}-of-{self.units}", units=units))

    def check(self, text: str) -> None:
        """Raise ValueError where the PTX is of another kind."""
        missing = [mark for mark in self.marks if mark not in text]
        if missing:
            raise ValueError(f"the PTX has no {', '.join(missing)}: the plan makes another kind of kernel")


HOPPER = ("sm_90a",)
#: In the PTX of kernels with warps that only load, of TMA's stores, and of CTAs that compute task after task.
_WARPS = ("wgmma.mma_async", "d.shared::cluster.global.tile.mbarrier", "setmaxnreg.dec", "mbarrier.try_wait")
_STORES = "d.global.shared::cta"
_TASKS = "%nctaid.x"
#: Of products of boxes that TMA loads, and of clusters whose CTAs load them for each other.
_BOXES = ("wgmma.mma_async", "d.shared::cluster.global.tile.mbarrier")
_CLUSTERS = (".multicast::cluster", "mapa", "barrier.cluster.wait")


def _product(m: int, n: int, k: int, dtype: str = "bfloat16") -> Case:
    return Case("matmul", {"m": m, "n": n, "k": k, "dtype": dtype})


def _attention(queries: int, keys: int, depth: int, **attributes: object) -> Case:
    """Two heads, by two multiprocessors: with idle ones around, their keys would be cut into parts."""
    sizes = {"batch": 1, "heads": 2, "groups": 2, "queries": queries, "keys": keys, "depth": depth}
    return Case("attention", {**sizes, **attributes}, units=2, archs=HOPPER, marks=_WARPS)


CASES: dict[str, Case] = {
    "gemm": _product(64, 64, 512),
    "gemm_ragged_gelu": Case("feed_forward", {"m": 100, "n": 72, "k": 136}),
    "gemm_f32": _product(40, 36, 48, "float32"),
    "gemm_i8": Case(integer_product, {"m": 40, "n": 48, "k": 128}),
    "split_sums": _product(16, 16, 4096),
    "attention": Case(attention, {"heads": 2, "queries": 130, "keys": 300, "depth": 32, "causal": False}),
    "attention_causal": Case(attention, {"heads": 2, "queries": 200, "keys": 200, "depth": 32, "causal": True}),
    "softmax": Case("softmax", {"rows": 3, "columns": 2000, "dtype": "float32"}),
    "layernorm": Case("layernorm", {"rows": 3, "columns": 1500}),
    "column_sums": Case("column_sums", {"rows": 200, "columns": 64}),
    "gemm_stores": replace(_product(100, 136, 128), archs=HOPPER, marks=(*_WARPS, _STORES)),
    "gemm_persistent": replace(_product(192, 128, 128), units=2, archs=HOPPER, marks=(*_WARPS, _STORES, _TASKS)),
    "gemm_persistent_ragged": Case(
        "feed_forward", {"m": 200, "n": 136, "k": 136}, units=2, archs=HOPPER, marks=(*_WARPS, _STORES, _TASKS)
    ),
    "gemm_clusters": Case(
        "matmul", {"m": 384, "n": 512, "k": 512, "dtype": "float16"}, archs=HOPPER, marks=(*_BOXES, *_CLUSTERS)
    ),
    "gemm_residual": Case(
        residual_product, {"m": 192, "n": 128, "k": 192}, units=2, archs=HOPPER, marks=(*_WARPS, _STORES, _TASKS)
    ),
    "attention_warps": _attention(64, 192, 32),
    "attention_warpgroups": _attention(128, 256, 64),
    "attention_warpgroups_ragged": _attention(100, 300, 64),
    "attention_warps_causal": _attention(192, 192, 32, causal=True),
    "decode": Case("attention", {"batch": 1, "heads": 4, "groups": 1, "queries": 1, "keys": 512, "depth": 32}),
    "decode_product": _product(1, 96, 320, "float16"),
    "conv": Case("convolution", {"batch": 1, "inputs": 16, "outputs": 24, "size": 8}, marks=("mma.",)),
    "conv_boxes": Case(
        "convolution", {"batch": 1, "inputs": 64, "outputs": 64, "size": 16}, units=2, archs=HOPPER, marks=_BOXES
    ),
    "lstm": Case("lstm4", {"layers": 1, "hidden": 16, "inputs": 24, "sequence": 3}),
}


def random_inputs(kind: np.dtype, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """An input: normal numbers, small whole ones, or both truth values."""
    if kind.kind in "iub":
        return random.integers(0, 2 if kind.kind == "b" else 4, shape).astype(kind)
    return random.standard_normal(shape).astype(kind)
