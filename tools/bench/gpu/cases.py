# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the GPU suite measures. Sizes for a GPU, and small ones on which the emulator proves the same code paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx

import models
from bench.gpu.kernels import BUILDERS

_SDPA = ("eager", "sdpa_flash", "sdpa_cudnn", "triton")
_GEMM = ("eager", "compile", "triton")
_ROWS = ("eager", "compile", "triton")
_MODEL = ("eager", "compile", "compile_reduce")


@dataclass(frozen=True)
class Case:
    """One row of the suite.

    Attributes:
        name: shown in the table.
        slice: part of the suite that can be run alone.
        model: a builder of `kernels.BUILDERS`, or a name in test/models.
        sizes: parameters of the builder.
        small: those that differ for the emulator.
        peers: functions of far/peers.py; each is timed as a CUDA graph, too.
        gflop: work of one run in 10^9 operations, for what is bound by it.
        gbyte: bytes that one run must move in 10^9, for what is bound by memory.
        error: the largest accepted max|ours - reference| / max|reference|, where PyTorch's own is not half as large.
        goal: the least accepted speed relative to the peers named in `against`, or of the copy rate ("copy").
        against: peers, or "copy".
    """

    name: str
    slice: str
    model: str
    sizes: Mapping[str, object] = field(default_factory=dict)
    small: Mapping[str, object] = field(default_factory=dict)
    peers: tuple[str, ...] = ("eager",)
    gflop: float | None = None
    gbyte: float | None = None
    error: float = 1e-2
    goal: float | None = None
    against: tuple[str, ...] = ()

    def build(self, small: bool) -> onnx.ModelProto:
        """The model."""
        sizes = {**self.sizes, **(self.small if small else {})}
        if self.model in BUILDERS:
            return BUILDERS[self.model](**sizes)
        return models.build(self.model, **sizes)


def _gemm(size: int, dtype: str = "bfloat16", goal: float | None = None, error: float = 1e-2) -> Case:
    name = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}[dtype]
    sizes = {"m": size, "n": size, "k": size, "dtype": dtype}
    small = {"m": 256, "n": 256, "k": 128}
    against = ("eager",) if goal else ()
    gflop = 2e-9 * size**3
    return Case(f"gemm_{name}_{size}", "gemm", "matmul", sizes, small, _GEMM, gflop, None, error, goal, against)


def _product(name: str, m: int, n: int, k: int, small: Mapping[str, int], bound: str = "gflop") -> Case:
    work = {"gflop": 2e-9 * m * n * k} if bound == "gflop" else {"gbyte": 2e-9 * (m * k + k * n + m * n)}
    sizes = {"m": m, "n": n, "k": k, "dtype": "bfloat16"}
    return Case(f"gemm_{name}", "gemm", "matmul", sizes, small, _GEMM, **work)


def _decode(name: str, **sizes: int) -> Case:
    """One query with a cache of keys: bound by the bytes of keys and values."""
    small = {"batch": 1, "heads": 4, "groups": 1, "keys": 32768, "depth": 64}
    sizes = {"batch": 1, "heads": 32, "groups": 8, "queries": 1, "keys": 8192, "depth": 128, **sizes}
    gbyte = 4e-9 * sizes["batch"] * sizes["groups"] * sizes["keys"] * sizes["depth"]
    return Case(f"attention_{name}", "attention", "attention", sizes, small, _SDPA, None, gbyte, 2e-2)


def _attention(name: str, small: Mapping[str, object], goal: float | None, gflop: float, **sizes: object) -> Case:
    against = ("eager", "sdpa_flash", "sdpa_cudnn") if goal else ()
    error = 2e-2  # the operator rounds scores and probabilities to the type, which its result's error is of
    return Case(f"attention_{name}", "attention", "attention", sizes, small, _SDPA, gflop, None, error, goal, against)


def _rows(name: str, model: str, dtype: str, moves: int, peers: tuple[str, ...] = _ROWS) -> Case:
    rows, columns = 16384, 4096
    gbyte = 1e-9 * rows * columns * moves * (4 if dtype == "float32" else 2)
    sizes = {"rows": rows, "columns": columns, "dtype": dtype}
    error = 1e-5 if dtype == "float32" else 1e-2
    small = {"rows": 37, "columns": 200}
    return Case(name, "memory", model, sizes, small, peers, None, gbyte, error, 0.9, ("copy",))


def _model(name: str, model: str, small: Mapping[str, object], goal: float | None = None, **sizes: object) -> Case:
    against = ("compile", "compile_reduce") if goal else ()
    return Case(name, "models", model, sizes, small, _MODEL, error=3e-2, goal=goal, against=against)


_S = {"batch": 1, "heads": 2, "groups": 2, "queries": 128, "keys": 320, "depth": 64}
_FORWARD = 4e-9 * 4 * 16 * 4096 * 4096 * 128
_TINY_GPT = {"layers": 1, "hidden": 64, "heads": 2, "vocabulary": 97, "positions": 64, "past": 31}
_HALF = {"floats": "float16"}

CASES: tuple[Case, ...] = (
    _gemm(8192, goal=0.9),
    _gemm(4096),
    _gemm(2048),
    _gemm(4096, "float16"),
    _gemm(2048, "float32", error=1e-5),
    _product("ragged", 4095, 4104, 4104, {"m": 97, "n": 104, "k": 72}),
    _product("tall", 16384, 1024, 1024, {"m": 384, "n": 128, "k": 64}),
    _product("split", 256, 256, 16384, {"m": 64, "n": 64, "k": 512}),
    _product("decode_m1", 1, 16384, 4096, {"m": 1, "n": 256, "k": 128}, bound="gbyte"),
    _product("decode_m16", 16, 16384, 4096, {"m": 16, "n": 256, "k": 128}, bound="gbyte"),
    Case(
        "ffn_gelu",
        "gemm",
        "feed_forward",
        small={"m": 128, "n": 192, "k": 64},
        peers=("eager", "compile"),
        gflop=2e-9 * 4096 * 11008 * 4096,
    ),
    Case(
        "batched",
        "gemm",
        "batched",
        small={"batch": 3, "m": 64, "n": 72, "k": 64},
        peers=("eager", "compile"),
        gflop=2e-9 * 64 * 512 * 512 * 64,
    ),
    Case(
        "gemm_f8_8192",
        "gemm",
        "float8",
        small={"m": 64, "n": 64, "k": 512},
        peers=("eager", "scaled_mm"),
        gflop=2e-9 * 8192**3,
        error=1e-3,
    ),
    _attention("s4096", _S, 0.8, _FORWARD),
    _attention("s4096_causal", _S, 0.8, _FORWARD / 2, causal=True),
    _attention("gqa", {**_S, "heads": 4}, 0.8, _FORWARD, groups=4),
    _decode("decode"),
    _decode("decode_b4", batch=4, keys=4096),
    _rows("add", "add", "bfloat16", 3, ("eager", "compile")),
    _rows("softmax", "softmax", "bfloat16", 2),
    _rows("softmax_f32", "softmax", "float32", 2),
    _rows("layernorm", "layernorm", "bfloat16", 2),
    _rows("layernorm_f32", "layernorm", "float32", 2),
    _rows("rmsnorm", "rmsnorm", "bfloat16", 2),
    _rows("column_sums_f32", "column_sums", "float32", 1, ("eager", "compile")),
    Case(
        "conv_3x3",
        "conv",
        "convolution",
        small={"batch": 2, "inputs": 16, "outputs": 24, "size": 10},
        peers=("eager", "compile"),
        gflop=2e-9 * 32 * 56 * 56 * 64 * 64 * 9,
    ),
    Case(
        "conv_1x1",
        "conv",
        "convolution",
        {"inputs": 256, "outputs": 512, "size": 28, "window": 1},
        {"batch": 2, "inputs": 16, "outputs": 24, "size": 10},
        ("eager", "compile"),
        2e-9 * 32 * 28 * 28 * 256 * 512,
    ),
    _model("minilm_b1", "minilm", {"batch": 1, "sequence": 16}, 1.0, **_HALF),
    _model("minilm_b32", "minilm", {"batch": 1, "sequence": 24}, 1.0, **_HALF, batch=32),
    _model("resnet50_b1", "resnet50", {"blocks": (1, 1), "width": 16, "classes": 13, "size": 33}, **_HALF),
    _model("resnet50_b32", "resnet50", {"blocks": (1, 1), "width": 16, "batch": 2, "size": 33}, **_HALF, batch=32),
    _model("lstm4", "lstm4", {"layers": 1, "hidden": 32, "inputs": 32, "sequence": 3}, **_HALF),
    _model("gpt_decode", "gpt", _TINY_GPT, **_HALF, sequence=1, past=511),
)
SLICES = tuple(dict.fromkeys(case.slice for case in CASES))
