# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Caches of keys and values: where tokens lie after any number of steps, capacities, equal attention."""

from __future__ import annotations

import numpy as np
import pytest

from python.plan.mesh.paths import distances
from tilewright.core.errors import UserError
from tilewright.plan.mesh.attention import attend, mask
from tilewright.plan.mesh.kv_cache import Cache, append, capacity
from tilewright.sim.coremesh.functional import run

POLICIES = ["concat", "shift", "round_robin"]


def filled(cache: Cache, tokens: np.ndarray) -> np.ndarray:
    """Memory after all tokens were appended, one by one."""
    memory = np.zeros((cache.height * cache.slots, cache.features), tokens.dtype)
    for length in range(len(tokens)):
        memory = run(append(cache, length), {"cache": memory, "new": tokens[length : length + 1]})["cache"]
    return memory


def in_order(cache: Cache, memory: np.ndarray, length: int) -> np.ndarray:
    """Tokens by age, read from where the cache says that they lie; each exactly once."""
    found = {}
    for row in range(cache.height):
        for at in range(cache.slots):
            token = cache.token_at(row, at, length)
            if token is not None:
                assert token not in found
                found[token] = memory[row * cache.slots + at]
    assert sorted(found) == list(range(length))
    return np.array([found[token] for token in range(length)])


def counts(cache: Cache, length: int) -> list[int]:
    """Tokens in each row."""
    return [
        sum(cache.token_at(row, at, length) is not None for at in range(cache.slots)) for row in range(cache.height)
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("height", "width", "slots"), [(1, 1, 3), (2, 3, 4), (3, 2, 3), (5, 4, 2), (4, 1, 5)])
def test_every_token_is_where_the_cache_says(policy: str, height: int, width: int, slots: int):
    """After each step from the empty cache to the full one."""
    cache = Cache(policy, height, width, slots, 5, np.int32)  # type: ignore[arg-type]
    tokens = np.random.default_rng(0).integers(1, 99, (cache.tokens, 5)).astype(np.int32)
    memory = np.zeros((height * slots, 5), np.int32)
    for length in range(cache.tokens):
        program = append(cache, length)
        memory = run(program, {"cache": memory, "new": tokens[length : length + 1]})["cache"]
        np.testing.assert_array_equal(in_order(cache, memory, length + 1), tokens[: length + 1])
        if policy == "shift":
            assert distances(program) <= {1}
        if policy != "concat":
            assert max(counts(cache, length + 1)) - min(counts(cache, length + 1)) <= 1


@pytest.mark.parametrize("policy", POLICIES)
def test_several_tokens_in_one_program(policy: str):
    cache = Cache(policy, 3, 2, 8, 4, np.int32)  # type: ignore[arg-type]
    tokens = np.random.default_rng(1).integers(1, 99, (8, 4)).astype(np.int32)
    empty = np.zeros((24, 4), np.int32)
    memory = run(append(cache, 0, 3), {"cache": empty, "new": tokens[:3]})["cache"]
    memory = run(append(cache, 3, 5), {"cache": memory, "new": tokens[3:]})["cache"]
    np.testing.assert_array_equal(memory, filled(cache, tokens))


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("features", [6, 5])
def test_equal_attention(length: int, features: int):
    """All policies, on the mesh, against NumPy: which token is where changes the order of sums alone."""
    generator = np.random.default_rng(2)
    keys, values, query = (generator.standard_normal((n, features)).astype(np.float32) for n in (length, length, 1))
    scores = (query @ keys.T)[0] / np.sqrt(np.float32(features))
    weights = np.exp(scores - scores.max())
    expected = weights / weights.sum() @ values
    for policy in POLICIES:
        cache = Cache(policy, 3, 2, 7, features)  # type: ignore[arg-type]
        memory = {"k": filled(cache, keys), "v": filled(cache, values)}
        program = attend(cache, 1 / features**0.5)
        out = run(program, {"q": query[0], "mask": mask(cache, length), **memory})["out"]
        np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-6)


def test_half_precision_caches():
    generator = np.random.default_rng(3)
    keys, values, query = (generator.standard_normal((n, 8)).astype(np.float16) for n in (5, 5, 1))
    cache = Cache("shift", 2, 4, 3, 8, np.float16)
    inputs = {"q": query[0], "k": filled(cache, keys), "v": filled(cache, values), "mask": mask(cache, 5)}
    out = run(attend(cache, 1.0), inputs)["out"]
    scores = (query.astype(np.float32) @ keys.astype(np.float32).T)[0]
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(out, weights / weights.sum() @ values.astype(np.float32), rtol=1e-5, atol=1e-6)


def test_capacities_as_published():
    """WaferLLM, table 5: 382 and 137,548 tokens of LLaMA3-8B on 360 rows, 16 and 6,168 of LLaMA2-13B on 375."""
    for rows, concat, shift in ((360, 382, 137_548), (375, 16, 6_168)):
        token = 1_000_000  # bytes, so that the free memory is exact to a millionth of a token
        free = -(-shift * token // rows)
        assert capacity("concat", rows, free, token) == concat
        assert capacity("shift", rows, free, token) == capacity("round_robin", rows, free, token) == shift


@pytest.mark.parametrize("policy", POLICIES)
def test_full_caches_say_so(policy: str):
    cache = Cache(policy, 3, 2, 2, 4)  # type: ignore[arg-type]
    assert cache.tokens == (2 if policy == "concat" else 6)
    with pytest.raises(UserError, match=f"holds {cache.tokens} tokens under '{policy}'"):
        append(cache, cache.tokens)
