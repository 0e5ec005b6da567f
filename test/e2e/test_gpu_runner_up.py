# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel that ptxas refuses gets the plan's runner-up, with a remark; only where all fail there is an error."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.compiler import driver
from tilewright.core import config
from tilewright.targets.cuda import ptxas, runner_up

SPILLS = "0 bytes stack frame, 40 bytes spill stores, 24 bytes spill loads"
CLEAN = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"


def product() -> onnx.ModelProto:
    """A product that matrix units do, and a sum that they do not."""
    half, g = np.dtype(np.float16), Graph("product", 17)
    y = g.op("MatMul", g.input("a", half, [256, 128]), g.input("b", half, [128, 256]))
    g.output(y, "y", half, [256, 256])
    return g.model()


@pytest.fixture
def assembler(tmp_path: Path):
    """An assembler that says of the first `bad` kernels that they spill, more registers or not."""

    def make(bad: int) -> Path:
        script = tmp_path / "ptxas"
        script.write_text(
            f"#!/bin/sh\n[ $1 = --help ] && exit\nif grep -q minnctapersm \"$3\"; then echo '{SPILLS}'; exit 0; fi\n"
            f"echo run >> {tmp_path}/runs\n"
            f'if [ $(wc -l < {tmp_path}/runs) -le {bad} ]; then echo "{SPILLS}"; else echo "{CLEAN}"; fi\n'
        )
        script.chmod(0o755)
        return script

    return make


def remarks(model: tw.Model) -> list[str]:
    return [remark["message"] for remark in model._artifact.report()["remarks"] if "runner-up" in remark["message"]]


@pytest.mark.parametrize("bad", [0, 1, 2, 4])
def test_the_runner_up_is_taken(bad: int, assembler, tmp_path: Path) -> None:
    """Once, twice, four times; the IR tells number and shape, and the result is right."""
    with config.ptxas.override(str(assembler(bad))), config.cache_dir.override(tmp_path / "cache"):
        model = tw.compile(product(), "cuda:sm_80", emulate=True)
    plan = model._manifest.kernels[0].details["plan"]
    assert plan.get("number", 0) == bad
    told = remarks(model)
    assert len(told) == bad
    if bad:
        assert "its registers spill: 64 bytes" in told[-1] and told[-1].endswith(plan["shape"])
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((256, 128)).astype(np.float16), rng.standard_normal((128, 256)).astype(np.float16)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(model(a, b)[0].astype(np.float32), expected, rtol=4e-3, atol=4e-2)


def test_kernels_of_one_name_are_refused_together() -> None:
    """Both take the next candidate: the name says which tiles, not which kernel."""
    plan = {"plan": {"candidates": 3, "shape": "a", "runner_up": "b"}}
    names = ("product_7x512x128", "product_7x512x128_29")
    work = driver.Compilation(None, None, statistics={"kernels": dict.fromkeys(names, plan)})  # type: ignore[arg-type]
    error = SimpleNamespace(kernels=dict.fromkeys(names, "its registers spill"))
    made = runner_up._with_runners_up(work, error)  # type: ignore[arg-type]
    assert made.options.choices == ("product_7x512x128:1",) and len(made.kept) == 2


def test_only_when_all_fail_there_is_an_error(assembler, tmp_path: Path) -> None:
    with config.ptxas.override(str(assembler(99))), config.cache_dir.override(tmp_path / "cache"):
        with pytest.raises(ptxas.RefusedError, match="its registers spill: 64 bytes") as error:
            tw.compile(product(), "cuda:sm_80", emulate=True)
    assert error.value.command is not None
    assert (tmp_path / "runs").read_text().count("run") == 5


def attention(queries: int, keys: int, channels: int) -> onnx.ModelProto:
    """Four heads of the operator Attention in f16."""
    half, g = np.dtype(np.float16), Graph("attention", 23)
    sizes = {"q": [1, 4, queries, channels]} | dict.fromkeys("kv", [1, 4, keys, channels])
    y = g.op("Attention", *(g.input(name, half, size) for name, size in sizes.items()))
    g.output(y, "y", half, sizes["q"])
    return g.model()


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find() is None, reason="needs ptxas")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_wide_heads_with_ragged_queries(arch: str, tmp_path: Path) -> None:
    """256 channels take all registers: on sm_80 the first blocks of keys spill, smaller ones do not."""
    with config.cache_dir.override(tmp_path):
        model = tw.compile(attention(40, 333, 256), f"cuda:{arch}", emulate={"seed": 3})
    assert all(kernel.details["spilled_bytes"] == 0 for kernel in model._manifest.kernels)
    told = remarks(model)
    assert bool(told) == (arch == "sm_80") and all("its registers spill" in text for text in told)
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((1, 4, n, 256)).astype(np.float16) for n in (40, 333, 333))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 1, 3, 2) / 16
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(model(q, k, v)[0].astype(np.float64), expected, rtol=0, atol=1e-2)
