# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The life of requests, on a model written in NumPy: errors, trials of padding, limits, threads."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.manifest import TensorSpec

VOCABULARY, TABLE, BAD = 11, 20, 10


class Sums:
    """Logits by the tokens seen, each weighed by its position; the past is the tokens.

    Args:
        counts: the mask's tokens are taken for the first places, as GroupQueryAttention takes them.
        bad: the logits that follow the token BAD.
        least, most: of the past.
    """

    def __init__(self, counts: bool = False, bad: float = np.nan, least: int = 0, most: int | None = None) -> None:
        self.counts, self.bad, self.calls = counts, bad, 0
        self.ranges = {"past": (least, most)}
        self.dims = {"input_ids": ("b", "s"), "attention_mask": ("b", "t"), "position_ids": ("b", "s")}
        self.dims["past_0"] = ("b", 1, "past", 2)
        self.inputs = [TensorSpec(n, "f32" if n == "past_0" else "i64", (1,)) for n in self.dims]
        self.outputs = [TensorSpec("logits", "f32", (1,)), TensorSpec("present_0", "f32", (1,))]

    def __call__(self, input_ids, attention_mask, position_ids, past_0):
        self.calls += 1
        if position_ids.max() >= TABLE:
            raise tw.UserError(f"an index lies outside of the table: {position_ids.max()}")
        low, high = self.ranges["past"]
        if not low <= past_0.shape[2] <= (high or 10**9):
            raise tw.UserError(f"past is {past_0.shape[2]}")
        new = np.stack([input_ids, position_ids], -1)[:, None].astype(np.float32)
        present, seen = np.concatenate([past_0, new], 2), attention_mask.astype(bool)
        if self.counts:
            seen = np.arange(seen.shape[1]) < seen.sum(1, keepdims=True)
        weighed = ((present[:, 0, :, 0] + 1) * (present[:, 0, :, 1] + 3) * seen).sum(1)
        logits = np.cos(weighed[:, None] * np.arange(1, VOCABULARY + 1) * 0.31)
        logits[:, BAD] = -2  # is never the best one
        logits[input_ids[:, -1] == BAD] = self.bad
        return {"logits": logits[:, None].astype(np.float32), "present_0": present}


PROMPTS = [[1, 5, 3], [4], [2, 2, 7, 8, 1], [6, 0]]


def alone(prompts, count=8, **options):
    return [tw.Generator(Sums(**options)).generate(p, max_tokens=count) for p in prompts]


@pytest.mark.parametrize("counts", [False, True])
def test_rows_are_padded_where_a_trial_says_that_it_changes_nothing(counts, caplog) -> None:
    model = Sums(counts)
    generator = tw.Generator(model)
    with caplog.at_level(logging.WARNING, "tilewright"):
        assert generator.generate(PROMPTS, max_tokens=8) == alone(PROMPTS)
    assert len([r for r in caplog.records if "rows with padding before them" in r.message]) == counts
    requests = [generator.submit(p, max_tokens=8) for p in PROMPTS]
    generator.step()
    assert len(generator.running) == (1 if counts else 4)
    generator.run()
    assert [r.result() for r in requests] == alone(PROMPTS)
    forced = tw.Generator(Sums(counts), pads=True).generate(PROMPTS, max_tokens=8)
    assert (forced == alone(PROMPTS)) is not counts


def test_equal_lengths_run_together_whatever_padding_does() -> None:
    generator = tw.Generator(Sums(counts=True))
    prompts = [[1, 2], [3, 4], [5, 6]]
    requests = [generator.submit(p, max_tokens=6) for p in prompts]
    generator.step()
    assert len(generator.running) == 3
    generator.run()
    assert [r.result() for r in requests] == alone(prompts, 6)


def test_what_the_model_refuses_ends_the_longest_request_alone() -> None:
    generator = tw.Generator(Sums())
    long, short = generator.submit(PROMPTS[2]), generator.submit(PROMPTS[1], max_tokens=TABLE)
    generator.run()
    assert long.reason == "error" and len(long.tokens) == TABLE - len(PROMPTS[2]) + 1
    with pytest.raises(tw.UserError, match="outside of the table: 20"):
        long.result()
    assert short.reason == "length" and short.result() == alone(PROMPTS[1:2], TABLE)[0]
    assert generator.generate(PROMPTS[0], max_tokens=8) == alone(PROMPTS[:1])[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("top_k", [None, 3])
def test_logits_that_are_no_numbers_end_their_request(bad, top_k) -> None:
    generator = tw.Generator(Sums(bad=bad))
    good = generator.submit(PROMPTS[0], max_tokens=8)
    other = generator.submit([3, BAD], max_tokens=8, top_k=top_k, seed=top_k and 1)
    generator.run()
    assert other.reason == "error" and other.tokens == []
    with pytest.raises(tw.UserError, match="the logits behind 2 tokens have -?(nan|inf) as their largest"):
        other.result()
    assert good.result() == alone(PROMPTS[:1])[0]


def test_a_refused_prompt_leaves_no_other_behind() -> None:
    generator = tw.Generator(Sums())
    with pytest.raises(tw.UserError, match="a prompt is a list"):
        generator.generate([PROMPTS[0], []])
    assert generator.waiting == generator.running == ()


@pytest.mark.parametrize("least", [0, 1])
def test_capacity_follows_from_the_sizes(least) -> None:
    generator = tw.Generator(Sums(least=least, most=9))
    assert generator.capacity == 10 - least
    request = generator.submit(PROMPTS[1])
    generator.run()
    assert request.reason == "full" and len(request.tokens) == generator.capacity


def test_ends_at_once() -> None:
    generator = tw.Generator(Sums())
    (first,) = generator.generate(PROMPTS[0], max_tokens=1)
    request = generator.submit(PROMPTS[0], stop=first)
    assert generator.step() == [(request, first)] and request.reason == "stop"
    assert generator.step() == [] and generator.running == ()
    assert list(generator.stream(PROMPTS[0], stop={first})) == [first]


def test_numbers_that_are_none() -> None:
    generator = tw.Generator(Sums())
    for name, value in (("max_tokens", 1.5), ("max_tokens", float("nan")), ("stop", 2.5), ("stop", "ab")):
        with pytest.raises(tw.UserError, match=name):
            generator.submit([1], **{name: value})
    with pytest.raises(tw.UserError, match="seed must be a whole number >= 0, got -1"):
        generator.submit([1], top_k=2, seed=-1)
    assert generator.waiting == ()


def test_another_thread_submits() -> None:
    generator, requests = tw.Generator(Sums(), batch=4), []

    def submit() -> None:
        requests.extend(generator.submit(PROMPTS[i % 4], max_tokens=8) for i in range(40))

    thread = threading.Thread(target=submit)
    thread.start()
    while thread.is_alive():
        generator.step()
    thread.join()
    generator.run()
    assert [r.result() for r in requests] == alone(PROMPTS) * 10
