# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GroupQueryAttention beside ONNX Runtime: growing caches and buffers, prompts, windows, rotary embeddings, sinks.

Entries of a cache behind the tokens in it are unspecified: ONNX Runtime has zeros there, ours what was there.
"""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, I32, RANDOM, beside_runtime, model_of, real, run_runtime

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx

HEADS, FEW, SIZE, ROOM = 4, 2, 16, 12
COUNTS = {"num_heads": HEADS, "kv_num_heads": FEW}


def tables():
    angle = RANDOM.uniform(0, 6, (16, SIZE // 2))
    return [np.cos(angle).astype(F32), np.sin(angle).astype(F32)]


def inputs(rows, past, lengths, packed=False, rotary=False, positions=None, added=None, sink=None):
    """For `rows` new tokens and a past of as many entries; lengths of each row with them, less one."""
    batch = len(lengths)
    widths = [(HEADS + 2 * FEW) * SIZE] if packed else [n * SIZE for n in (HEADS, FEW, FEW)]
    new = [real(batch, rows, n) for n in widths] + [None, None] * packed
    old = [None, None] if past is None else [real(batch, FEW, past, SIZE) for _ in range(2)]
    total = [np.array(lengths, I32), np.array([max(lengths) + 1], I32)]
    given = [*new, *old, *total, *(tables() if rotary else [None, None]), positions, added, sink]
    while given[-1] is None:
        given.pop()
    return given


def check(given, outputs=3, half=True, **attributes):
    attributes = {**COUNTS, **attributes, **({"do_rotary": 1} if len(given) > 7 and given[7] is not None else {})}
    kinds = ["float"] * outputs
    arrays = {f"x{i}": x for i, x in enumerate(given) if x is not None}
    want = run_runtime(model_of("GroupQueryAttention", given, kinds, **attributes), arrays)
    for row, last in enumerate(given[5]):
        want[0][row, last + 1 :] = np.nan  # padding behind a prompt
        for cache in want[1:3]:
            cache[row, :, last + 1 :] = np.nan
    beside_runtime("GroupQueryAttention", given, kinds, half=half, opens=(3, 5, ROOM), expected=want, **attributes)


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("past", [None, 0, ROOM])
@pytest.mark.parametrize("lengths", [[2, 2], [2, 1]])
def test_prompt(rotary, past, lengths):
    check(inputs(3, past, lengths, rotary=rotary))


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize(("past", "lengths"), [(5, [5, 5]), (ROOM, [5, 3]), (ROOM, [0, 11])])
def test_next_token(rotary, past, lengths):
    check(inputs(1, past, lengths, rotary=rotary))


@pytest.mark.parametrize("past", [5, ROOM])
def test_part_of_a_prompt(past):
    check(inputs(3, past, [7], rotary=True))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_packed(interleaved):
    check(inputs(3, ROOM, [2, 2], packed=True, rotary=True), rotary_interleaved=interleaved)


@pytest.mark.parametrize("window", [1, 2, 4])
@pytest.mark.parametrize(("rows", "past", "lengths"), [(1, ROOM, [9, 3]), (3, None, [2, 2])])
def test_window(window, rows, past, lengths):
    check(inputs(rows, past, lengths), local_window_size=window)


@pytest.mark.parametrize("attributes", [{"softcap": 1.5}, {"smooth_softmax": 1}, {"scale": 0.2}])
def test_softening(attributes):
    check(inputs(1, ROOM, [9, 3]), **attributes)


def test_sink_bias_positions():
    check(inputs(1, ROOM, [9, 3], sink=real(HEADS)))
    check(inputs(1, ROOM, [9, 9], added=real(2, HEADS, 1, 10)))
    check(inputs(1, ROOM, [9, 9], rotary=True, positions=np.array([[3], [9]], np.int64)))


def test_not_causal():
    check(inputs(3, None, [2, 2]), causal=0)


@pytest.mark.parametrize("mode", [1, 2])
def test_scores_and_weights(mode):
    check(inputs(1, 5, [5, 5]), outputs=4, half=False, qk_output=mode)


@pytest.mark.parametrize(
    ("given", "attributes", "message"),
    [
        ([*inputs(1, 5, [5]), *[None] * 5, np.ones(1, F32), np.ones(1, F32)], {}, "cache of floats"),
        ([*inputs(1, 5, [5]), *[None] * 9, np.ones(1, I32)], {}, "query_seqlens"),
        (inputs(1, 5, [5]), {"sliding_window_cache": 1, "local_window_size": 4}, "sliding_window_cache"),
    ],
)
def test_refused(given, attributes, message):
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(model_of("GroupQueryAttention", given, ["float"] * 3, **COUNTS, **attributes))


def test_wrong():
    with pytest.raises(UserError, match="do not fit 3 of keys"):
        import_onnx(model_of("GroupQueryAttention", inputs(1, 5, [5]), num_heads=4, kv_num_heads=3))
    with pytest.raises(UserError, match="cos_cache"):
        import_onnx(model_of("GroupQueryAttention", inputs(1, 5, [5]), **COUNTS, do_rotary=1))


def test_remark_where_the_cache_may_grow():
    """Copies of a cache are said, where they are more than one."""
    given, kinds = inputs(1, ROOM, [5]), ["float"] * 3
    grown = import_onnx(model_of("GroupQueryAttention", given, kinds, **COUNTS)).remarks
    assert "copied twice" in grown["the_GroupQueryAttention"]
    assert not import_onnx(model_of("GroupQueryAttention", given, kinds, known=(6,), **COUNTS)).remarks
