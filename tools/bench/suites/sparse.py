# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruned weights and zeros of a run beside our own dense code and sparse libraries, with the targets of the project.

`own dense` is the same model with numbers in place of its zeros that are too small to be seen: the same results, and
nothing to leave out. Densities, patterns and shapes: nmSPARSE (MLSys 2023) for N:M, SparTA (OSDI 2022) figures 15 and
17 for unstructured and mixed, PIT (SOSP 2023) figures 8 and 15 for what a run brings.

Other rivals: `own padded`, a layer of experts padded to the fullest; `own full`, a batch of full sentences. Peers with
sparse formats (`scipy_*`, `torch_csr`, `torch_bsr`, `torch_semi`) take models of one product, and get operands laid out
as they like; `openvino_sparse` is OpenVINO with its option for sparse weights. With `--target cpu:NAME` the limits are
those of that CPU's instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, log2

from bench.case import Case, Form, Suite
from models.sparse import lengths, padding_ratio

_CUBE = dict(m=1024, n=1024, k=1024)
_DENSE = ("onnxruntime", "openvino", "openvino_sparse", "torch")
_ROWS = (*_DENSE, "scipy_csr", "torch_csr")
_BLOCKS = (*_ROWS, "scipy_bsr", "torch_bsr")
_NEVER_SLOWER = 1 / 1.03
#: Percent of zeros from which on sparse libraries are timed, too.
_MANY_ZEROS = 70


def _own(gain: float | None = None) -> tuple[Form, ...]:
    return (Form("dense", filled=True, gain=gain),)


def _product(
    name: str, pattern: str, gain: float | None = None, peers: tuple[str, ...] = _ROWS, **sizes: object
) -> Case:
    return Case(name, "pruned_linear", {**_CUBE, **sizes, "pattern": pattern}, peers=peers, rivals=_own(gain))


def _windows(n: int, m: int, element_wise: float, vector_wise: float) -> tuple[Case, Case]:
    peers = (*_ROWS, "torch_semi") if (n, m) == (2, 4) else _ROWS
    return (
        _product(f"ew_{n}_{m}", f"{n}:{m}", element_wise, peers),
        _product(f"vw32_{n}_{m}", f"{n}:{m}/32", vector_wise),
    )


def _mixture(percent: int) -> Case:
    """Blocks and single elements against all in blocks, all in single elements, and dense: the best single format."""
    single = [Form(f"{cover} alone", cover=cover, gain=1.2) for cover in ("mask", "blocks")]
    case = _product(f"mixture_{percent}", f"mixture@{percent / 100}", 1.2, _BLOCKS)
    return replace(case, rivals=(*case.rivals, *single))


def _gemv(n: int, m: int, limit: str) -> Case:
    """Against the bandwidth of the condensed weights: f32 values, and a position of log2 m bits for each."""
    size = 4096
    gbyte = 1e-9 * size * size * n / m * (4 + ceil(log2(m)) / 8)
    sizes = dict(m=1, n=size, k=size, pattern=f"{n}:{m}")
    share = {1: 0.85, 2: 0.85}
    return Case(
        f"gemv_{n}_{m}", "pruned_linear", sizes, gbyte=gbyte, limit=limit, share=share, peers=_ROWS, rivals=_own()
    )


def _sweep(kind: str, pattern: str, peers: tuple[str, ...]) -> list[Case]:
    """One product at all densities: never slower than dense; libraries beside it where zeros may pay for them."""
    return [
        _product(f"sweep_{kind}_{p:02d}", f"{pattern}@{p}%", _NEVER_SLOWER, peers if p >= _MANY_ZEROS else ())
        for p in (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
    ]


def _granular(name: str, unit: tuple[int, int], sparsity: int, gain: float | None) -> Case:
    """A product whose other operand has zeros that a run brings, behind a ReLU, in units of rows and columns."""
    wide = 4096 if gain and gain > 1 else 1024  # the others take a quarter of the time
    sizes = dict(m=4096, k=4096, n=wide, pattern="dense", relu=True)
    given = dict(unit=unit, sparsity=sparsity / 100)
    return Case(
        f"pit_{name}_{sparsity}",
        "pruned_linear",
        sizes,
        inputs=("granular", given),
        peers=("onnxruntime", "openvino"),
        rivals=_own(gain),
    )


def _granularities() -> list[Case]:
    cases = []
    for sparsity in (50, 90, 95, 99):
        cases += [
            _granular("rows", (1, 0), sparsity, 5.0 if sparsity == 90 else _NEVER_SLOWER),
            _granular("32x1", (32, 1), sparsity, _NEVER_SLOWER),
            _granular("1x64", (1, 64), sparsity, _NEVER_SLOWER),
            _granular("32x64", (32, 64), sparsity, _NEVER_SLOWER),
        ]
    return cases


def _experts(tokens: int = 1024, experts: int = 64, chosen: int = 2) -> Case:
    """A layer of experts as the dense form that exporters write; the peers get the form padded to the fullest."""
    sizes: Mapping[str, object] = dict(tokens=tokens, experts=experts, chosen=chosen, hidden=256, wide=512)
    least = 0.9 * padding_ratio(tokens, experts, chosen)
    padded = Form("padded", "moe_padded", inputs=dict(padded=True), gain=least)
    return Case(
        f"moe_{experts}_top{chosen}",
        "moe_dense",
        sizes,
        inputs=("moe", {}),
        peers=("onnxruntime", "openvino"),
        rivals=(padded,),
        peers_form=padded,
        error=1e-3,
    )


def _ragged(batch: int = 16, sequence: int = 128) -> Case:
    """Two layers of BERT-base on sentences padded to one length: in proportion to the real tokens."""
    sizes = dict(layers=2, batch=batch, sequence=sequence)
    least = 0.9 * batch * sequence / float(lengths(batch, sequence).sum())
    full = Form("full", inputs=dict(full=True), same=False, gain=least)
    return Case(
        "ragged_batch",
        "bert_base",
        sizes,
        padded="attention_mask",
        inputs=("ragged", {}),
        peers=("onnxruntime", "openvino"),
        rivals=(full,),
    )


SUITE = Suite(
    "sparse",
    "pruned weights and zeros of a run beside own dense, sparse and dense libraries",
    (
        Case("dense", "pruned_linear", {**_CUBE, "pattern": "dense"}, gflop=2.147, share={1: 0.9}, peers=_DENSE),
        *_windows(2, 4, 1.4, 1.7),
        *_windows(8, 32, 2.5, 3.0),
        *_windows(3, 32, 4.5, 6.0),
        _product("unstructured_90", "unstructured@90%"),
        _product("unstructured_95", "unstructured@95%", 5.0),
        _product("unstructured_99", "unstructured@99%", 12.0),
        _product("block32_90", "block:32x32@90%", 5.0, _BLOCKS),
        *map(_mixture, (70, 80, 90)),
        _gemv(2, 4, "read_34MB"),  # 34 MiB are read: caches of 32 MiB, as on AMD, hold less than all of it
        _gemv(8, 32, "read_16MB"),
        *_sweep("single", "unstructured", _ROWS),
        *_sweep("block", "block:32x32", _BLOCKS),
        *_granularities(),
        _experts(),
        _ragged(),
    ),
)
