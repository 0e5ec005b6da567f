# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Set-ups of the ladder's rungs go to JSON and back."""

import json

import pytest

from bench.gpu.far.ladder.setup import (
    LaunchSetup,
    MbarrierSetup,
    OperandSetup,
    TileSetup,
    TmaSetup,
    WgmmaSetup,
    from_json,
    to_json,
)

TMA = TmaSetup("bf16", (100, 50), (208,), (64, 8), (1, 2), 128, "nan", (-3, 7), 1024, 1024)
OPERAND = OperandSetup(0, 16, 1024, 0, 128, advance=32)
WGMMA = WgmmaSetup(64, "bf16", None, OPERAND)
RING = MbarrierSetup(4, 9, 1, 8, 16384, 16384)
LAUNCH = LaunchSetup((4, 1, 1), (128, 1, 1), (2, 1, 1), 1024, ("x", "n"), (0, 5))
ALL = [TMA, OPERAND, WGMMA, RING, LAUNCH, TileSetup(TMA, TMA, WGMMA, RING, LAUNCH, (64, 64, 64))]


@pytest.mark.parametrize("setup", ALL, ids=lambda setup: type(setup).__name__)
def test_round_trip(setup):
    assert from_json(json.loads(json.dumps(to_json(setup)))) == setup


def test_unknown_kind():
    with pytest.raises(ValueError, match="no kind of set-up is called 'Tma'"):
        from_json({"kind": "Tma"})
