# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Split-KV looks at each softmax chain once, whatever stands on it by then."""

from __future__ import annotations

import re

import pytest

from tilewright import devices
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.plan.attention import split_kv
from tilewright.plan.attention.online_reduction import Chain
from tilewright.plan.attention.split_kv import Choice, SplitKv, choose_parts
from tilewright.plan.model.gpu import Gpu


def chains(count: int) -> str:
    """The example of the pass, with its chain so many times over the same keys and values."""
    example = re.search(r"Before:\s*```mlir\n(.*?)```", SplitKv.__doc__ or "", re.DOTALL)
    assert example is not None
    head, rest = example[1].split("-> (tensor<8x64xf32>, tensor<8xf32>) {")
    body = rest.split("return")[0]
    copies = [re.sub(r"%(?![qkv]\b)(\w+)", rf"%\g<1>_{number}", body) for number in range(count)]
    results, types = (", ".join(each) for each in ([f"%w_{n}" for n in range(count)], ["tensor<8x64xf32>"] * count))
    return f"{head} -> ({types}) {{{''.join(copies)} return {results} : {types}\n}}"


def test_a_chain_that_stays_whole_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others behind it are cut, and what stays whole has got attributes, which are part of an operation's hash."""
    seen: list[str] = []

    def choose(chain: Chain, gpu: Gpu) -> Choice | None:
        """Cut each but the first one, which is marked."""
        first = chain.accumulators[0].op
        kept = "test.kept" in first.attributes or not seen
        seen.append("kept" if kept else "cut")
        if kept:
            first.attributes["test.kept"] = ir.UnitAttr.get()
            return None
        return choose_parts(chain, gpu)

    monkeypatch.setattr(split_kv, "choose_parts", choose)
    with ir.Context() as context:
        module = ir.Module.parse(chains(3), context)
        annotate(module, devices.get("nvidia-h100"))
        SplitKv().run(module.operation)
        assert module.operation.verify()
        assert str(module).count("tile.parts") == 2
    assert seen == ["kept", "cut", "cut"]
