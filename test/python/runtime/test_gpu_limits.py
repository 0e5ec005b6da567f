# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches and TMA descriptors that no GPU takes are refused by name, before a driver or the emulator sees them."""

import pytest

from tilewright.core.errors import UserError
from tilewright.runtime.gpu import tensor_map
from tilewright.runtime.gpu.gpu_device import Limits, check_launch

HOPPER = Limits("sm_90a", 132, shared_bytes=232448, cluster=8)
AMPERE = Limits("sm_80", 108, shared_bytes=166912, cluster=1)
GOOD_LAUNCH = {"grid": (8, 1, 1), "block": (128, 1, 1), "cluster": (1, 1, 1), "shared_bytes": 0}
GOOD_MAP = {
    "element": "bf16",
    "address": 4096,
    "dims": (512, 100),
    "strides_bytes": (1024,),
    "box": (64, 128),
    "swizzle": 128,
    "fill": "zero",
}


def test_capability():
    assert (HOPPER.capability, AMPERE.capability) == (90, 80)


def test_good_launches_pass():
    check_launch("k", HOPPER, **GOOD_LAUNCH)
    check_launch("k", HOPPER, **{**GOOD_LAUNCH, "cluster": (2, 1, 1), "shared_bytes": 232448})
    check_launch("k", AMPERE, **{**GOOD_LAUNCH, "block": (32, 32, 1)})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"grid": (0, 1, 1)}, "leave out empty grids"),
        ({"grid": (1, 65536, 1)}, "65535"),
        ({"block": (1025, 1, 1)}, "1 to 1024"),
        ({"block": (1, 1, 65)}, "z up to 64"),
        ({"shared_bytes": 166913}, "166912"),
        ({"cluster": (2, 1, 1)}, "sm_80 takes at most 1"),
    ],
)
def test_bad_launches_are_refused(changed, words):
    with pytest.raises(UserError, match=words):
        check_launch("k", AMPERE, **{**GOOD_LAUNCH, **changed})


def test_clusters_divide_the_grid():
    with pytest.raises(UserError, match="round the grid up"):
        check_launch("k", HOPPER, **{**GOOD_LAUNCH, "cluster": (3, 1, 1)})


def test_good_descriptors_pass():
    tensor_map.check(**GOOD_MAP)
    tensor_map.check(**{**GOOD_MAP, "element": "i8", "box": (128, 256)})
    tensor_map.check(**{**GOOD_MAP, "swizzle": 0, "box": (256, 1), "fill": "nan"})
    tensor_map.check("f32", 0, (2**32,), (), (4,), 0, "zero")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"element": "i4"}, "elements must be"),
        ({"swizzle": 16}, "swizzle must be"),
        ({"fill": "one"}, "'one'"),
        ({"element": "u16", "fill": "nan"}, "filled with nan"),
        ({"dims": (), "strides_bytes": (), "box": ()}, "1 to 5"),
        ({"box": (64,)}, "2 box sizes"),
        ({"strides_bytes": ()}, "1 strides"),
        ({"address": 4104}, "multiple of 16"),
        ({"dims": (0, 100)}, "outside 1 to 2"),
        ({"strides_bytes": (1032,)}, "pad the rows"),
        ({"strides_bytes": (0,)}, "pad the rows"),
        ({"box": (64, 257)}, "outside 1 to 256"),
        ({"box": (4, 128)}, "rows of 8 bytes"),
        ({"box": (128, 64)}, "span of 128"),
    ],
)
def test_bad_descriptors_are_refused(changed, words):
    with pytest.raises(UserError, match=words):
        tensor_map.check(**{**GOOD_MAP, **changed})


def test_which_code_runs():
    assert HOPPER.runs("sm_90a") and HOPPER.runs("sm_90") and HOPPER.runs("sm_80")
    assert AMPERE.runs("sm_80") and not AMPERE.runs("sm_90") and not AMPERE.runs("sm_90a")
    assert not Limits("sm_100a", 148).runs("sm_90a")
