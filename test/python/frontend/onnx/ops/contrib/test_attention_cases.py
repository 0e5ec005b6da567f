# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nodes of attention beside ONNX Runtime: fixed and open sizes, interpreted; a few compiled."""

from __future__ import annotations

import numpy as np
import pytest
from attention_cases import Case, Given, model
from attention_parts import FAMILIES
from beside import agree, interpret, real, run_runtime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotWritten

import tilewright as tw
from tilewright.core.errors import TilewrightError
from tilewright.frontend import import_onnx


def wanted(case: Case) -> list[np.ndarray] | None:
    """ONNX Runtime's results; None where it refuses the node: then ours is taken, or refused by an error of ours."""
    fixed = model(case)
    try:
        results = run_runtime(fixed, case.arrays())
    except (Fail, InvalidArgument, NotWritten, RuntimeException):
        try:
            import_onnx(fixed)
        except TilewrightError as error:
            assert error.message
        return None
    if case.unspecified is not None:
        case.unspecified(results)
    return results


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("family", FAMILIES)
def test_interpreted(family, seed):
    case = FAMILIES[family](seed)
    want = wanted(case)
    for opens in (False, True) if want is not None else ():
        got = interpret(import_onnx(model(case, opens), symbolic=opens), case.arrays())
        agree(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("family", "seed"), [("multi", 9), ("multi", 12), ("standard", 10), ("standard", 21)])
def test_refused_by_onnx_runtime(family, seed):
    assert wanted(FAMILIES[family](seed)) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 103))
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled(family, seed):
    case = FAMILIES[family](seed)
    want = wanted(case)
    for opens in (False, True) if want is not None else ():
        compiled = tw.compile(model(case, opens), **({"sizes": "general"} if opens and case.opens else {}))
        agree(list(compiled(*case.arrays().values())), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("op", ["DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention"])
def test_decoders_with_shared_buffers_are_refused(op):
    """Their caches are written in place, and beams pick among them: the error says what to do."""
    given = [Given(real(1, 1, 8), (1, 1, 8)) for _ in range(3)]
    with pytest.raises(tw.UnsupportedError, match="without fusing decoders"):
        import_onnx(model(Case(op, given, ["float"], {"num_heads": 2})))
