# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text from a small decoder: what its prompts give alone they give together, whoever joins and leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from models.decoder import decoder
from tilewright.compiler.dynamic_shapes import DynamicShapesModel

SIZES = {"layers": 1, "hidden": 24, "intermediate": 32, "positions": 64}
PROMPTS = [[5, 9, 2, 11], [7], [3, 3, 8, 20, 31, 4, 60], [12, 40], [1, 2, 3, 4, 5], [66], [9, 8, 7], [50, 51, 52, 53]]


@pytest.fixture(scope="module")
def padded():
    """A decoder with a mask and positions, for all sizes."""
    return tw.compile(decoder("padded", dynamic=True, **SIZES), threads=1)


@pytest.fixture(scope="module")
def plain():
    """One without a mask: rows cannot be padded."""
    return tw.compile(decoder("operators", dynamic=True, **SIZES), threads=1)


def whole(model, prompt: list[int], count: int, stop: int = -1) -> list[int]:
    """Greedy tokens without a past: each step runs all tokens anew."""
    tokens = list(prompt)
    while len(tokens) < len(prompt) + count and not (len(tokens) > len(prompt) and tokens[-1] == stop):
        ids = np.array([tokens], np.int64)
        feeds = {"tokens": ids, "positions": np.arange(len(tokens))[None]}
        feeds |= {s.name: np.zeros((1, 2, 0, 6), np.float32) for s in model.inputs if s.name.startswith("past")}
        if any(s.name == "attention_mask" for s in model.inputs):
            feeds["attention_mask"] = np.ones_like(ids)
        tokens.append(int(np.argmax(model(**feeds)["logits"][0, -1])))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("kind", ["padded", "plain"])
def test_greedy_tokens_are_those_of_the_whole_model(kind: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    generator = tw.Generator(model, chunk=3)
    for prompt in PROMPTS[:3]:
        assert generator.generate(prompt, max_tokens=20) == whole(model, prompt, 20)
    assert generator.running == generator.waiting == ()


@pytest.mark.slow  # compiles models of its own
def test_a_model_that_the_generator_compiles_appends_in_place(padded) -> None:
    """It makes the last token's logits alone, and a step leaves the past where it is."""
    generator = tw.Generator(decoder("padded", dynamic=True, **SIZES), threads=1, chunk=3)
    assert generator.generate(PROMPTS, max_tokens=20) == [whole(padded, prompt, 20) for prompt in PROMPTS]
    (logits,) = (spec for spec in generator.model.outputs if spec.name == "logits")
    assert logits.shape[1] == 1
    generator.submit(PROMPTS[0], max_tokens=30)
    places = set()
    while generator.step():
        places |= {array.__array_interface__["data"][0] for array in generator._cache.arrays}
    assert len(places) == 2  # keys and values of the one layer


@pytest.mark.slow  # compiles models of its own
def test_steps_by_a_model_of_their_own(padded, tmp_path: Path) -> None:
    given = decoder("padded", dynamic=True, **SIZES)
    generator = tw.Generator(given, step=True, threads=1, batch=3)
    assert generator.step_model is not generator.model
    assert generator.step_model.dims["tokens"] == ("batch", 1) and generator.model.dims["tokens"][1] == "sequence"
    expected = [whole(padded, prompt, 12) for prompt in PROMPTS]
    assert generator.generate(PROMPTS, max_tokens=12) == expected
    saved = generator.step_model.save(tmp_path / "step.tw")
    other = tw.Generator(padded, step=saved, batch=3)
    assert other.generate(PROMPTS[:4], max_tokens=12) == expected[:4]
    assert tw.Generator(padded).step_model is padded.general
    with pytest.raises(tw.UserError, match="this one is compiled already: give step= a model"):
        tw.Generator(padded, step=True)


@pytest.mark.parametrize("kind", ["padded", "plain"])
def test_requests_that_come_and_go(kind: str, request: pytest.FixtureRequest) -> None:
    """Eight requests of unequal lengths, at most three at a time, and some that come while others are under way."""
    model = request.getfixturevalue(kind)
    generator = tw.Generator(model, batch=3)
    lengths = [4, 15, 2, 9, 1, 12, 7, 3]
    requests = [generator.submit(p, max_tokens=n) for p, n in zip(PROMPTS[:4], lengths, strict=False)]
    most, made = 0, []
    for prompt, length in zip(PROMPTS[4:], lengths[4:], strict=True):
        made += generator.step()
        made += generator.step()
        most = max(most, len(generator.running))
        requests.append(generator.submit(prompt, max_tokens=length))
    while generator.running or generator.waiting:
        made += generator.step()
        most = max(most, len(generator.running))
    assert most == 3 or kind == "plain"  # whose rows have to be equally long when they meet
    for request_, prompt, length in zip(requests, PROMPTS, lengths, strict=True):
        assert request_.result() == whole(model, prompt, length), prompt
        assert request_.reason == "length"
        assert [token for other, token in made if other is request_] == request_.tokens


def test_requests_of_equal_length_run_together_without_a_mask(plain) -> None:
    generator = tw.Generator(plain)
    prompts = [[1, 2], [3, 4], [5, 6]]
    assert generator.generate(prompts, max_tokens=6) == [whole(plain, p, 6) for p in prompts]
    requests = [generator.submit(p, max_tokens=5) for p in prompts]
    generator.step()
    assert generator.running == tuple(requests)


def test_stop_tokens_end_a_request_early(padded) -> None:
    generator = tw.Generator(padded)
    tokens = whole(padded, PROMPTS[0], 12)
    stop = tokens[5]
    expected = tokens[: tokens.index(stop) + 1]
    request = generator.submit(PROMPTS[0], stop=stop, max_tokens=50)
    other = generator.submit(PROMPTS[1], max_tokens=12)
    generator.run()
    assert request.result() == expected and request.reason == "stop"
    assert other.result() == whole(padded, PROMPTS[1], 12)
    assert list(generator.stream(PROMPTS[0], stop=[stop, 70], max_tokens=50)) == expected


def test_top_k_follows_its_seed_and_is_the_same_alone_and_together(padded) -> None:
    generator = tw.Generator(padded)
    options = {"top_k": 5, "temperature": 1.5, "max_tokens": 15}
    first, again, other = (generator.generate(PROMPTS[0], seed=seed, **options) for seed in (1, 1, 2))
    assert first == again != other
    assert generator.generate(PROMPTS[:3], seed=1, **options)[0] == first
    assert generator.generate(PROMPTS[0], top_k=1, max_tokens=9) == whole(padded, PROMPTS[0], 9)


def test_a_full_cache_is_an_error_with_its_size(padded) -> None:
    generator = tw.Generator(padded, capacity=12)
    long, short = generator.submit(PROMPTS[2]), generator.submit(PROMPTS[1], max_tokens=11)
    generator.run()
    assert long.reason == "full" and long.tokens == whole(padded, PROMPTS[2], 6)
    message = r"the cache is full: it holds 12 tokens of a request \(capacity=\), and a prompt of 7 and 6 new ones came"
    with pytest.raises(tw.UserError, match=message):
        long.result()
    assert short.result() == whole(padded, PROMPTS[1], 11)
    with pytest.raises(tw.UserError, match="the cache is full: it holds 12 tokens .*, and the prompt has 13"):
        generator.submit(range(13))
    with pytest.raises(tw.UserError, match="the cache is full"):
        generator.generate(PROMPTS[2])
    assert generator.generate(PROMPTS[2], max_tokens=6) == long.tokens


def test_a_position_behind_the_table_ends_its_request_alone(padded) -> None:
    generator = tw.Generator(padded)
    long, short = generator.submit(PROMPTS[2]), generator.submit(PROMPTS[1], max_tokens=60)
    generator.run()
    assert long.reason == "error" and len(long.prompt) + len(long.tokens) == SIZES["positions"] + 1
    with pytest.raises(tw.UserError, match="an index lies outside of axis 0 of the data, which has 64 elements"):
        long.result()
    assert short.result() == whole(padded, PROMPTS[1], 60)


def test_requests_that_are_cancelled(padded) -> None:
    generator = tw.Generator(padded, batch=2)
    requests = [generator.submit(p, max_tokens=9) for p in PROMPTS[:3]]
    generator.step()
    generator.step()
    generator.cancel(requests[0])
    generator.cancel(requests[2])
    generator.run()
    assert [r.reason for r in requests] == ["cancelled", "length", "cancelled"]
    assert requests[0].result() == whole(padded, PROMPTS[0], 2)
    assert requests[1].result() == whole(padded, PROMPTS[1], 9)
    tokens = generator.stream(PROMPTS[0])
    next(tokens)
    tokens.close()
    assert generator.running == ()


def test_a_saved_model(padded, tmp_path: Path) -> None:
    path = padded.save(tmp_path / "decoder.tw")
    generator = tw.Generator(path, threads=1)
    assert generator.generate(PROMPTS[0], max_tokens=5) == whole(padded, PROMPTS[0], 5)
    with pytest.raises(tw.UserError, match="compiled already: threads say how"):
        tw.Generator(padded, threads=1)
    with pytest.raises(tw.UserError, match="compiled already: precision must be given when it is compiled"):
        tw.Generator(path, threads=1, precision="bf16")


def test_a_wrong_prompt_leaves_no_request_of_its_call(padded) -> None:
    generator = tw.Generator(padded)
    with pytest.raises(tw.UserError, match="a prompt is a list"):
        generator.generate([PROMPTS[0], [1.5]], max_tokens=3)
    assert generator.waiting == generator.running == ()


def test_what_a_tokenizer_gives(padded) -> None:
    """Tokens as an array [prompts, length], of any library; no end of text."""

    class Tensor:
        def __init__(self, values: np.ndarray) -> None:
            self.values, self.ndim = values, values.ndim

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return self.values

        def __iter__(self) -> Iterator[Tensor]:
            return map(Tensor, self.values)

    generator = tw.Generator(padded)
    rows = np.array([PROMPTS[0][:2], PROMPTS[2][:2]])
    expected = generator.generate(rows.tolist(), max_tokens=3, temperature=0)
    assert generator.generate(Tensor(rows), max_tokens=3, stop=None) == expected
    assert generator.generate(Tensor(rows[:1]), max_tokens=3) == expected[:1]


def test_wrong_arguments(padded) -> None:
    generator = tw.Generator(padded)
    for prompt in ([], [1.5], [[1], [2]], "text"):
        with pytest.raises(tw.UserError, match="a prompt is a list of at least one token"):
            generator.submit(prompt)
    with pytest.raises(tw.UserError, match="max_tokens must be a whole number >= 1, got 0"):
        generator.submit([1], max_tokens=0)
    with pytest.raises(tw.UserError, match="top_k must be a whole number"):
        generator.submit([1], top_k=0)
    with pytest.raises(tw.UserError, match="temperature must be above 0"):
        generator.submit([1], top_k=2, temperature=0)
    for drawn in ({"temperature": 0.8}, {"seed": 1}):
        with pytest.raises(tw.UserError, match="temperature= and seed= are for a draw: give top_k="):
            generator.submit([1], **drawn)
    with pytest.raises(tw.UserError, match="the model takes: none; inputs= is wrong in states"):
        generator.submit([1], inputs={"states": np.zeros(1)})
    with pytest.raises(tw.UserError, match="capacity must be a whole number"):
        tw.Generator(padded, capacity=0)
    apart = DynamicShapesModel(lambda shapes: padded, [("tokens", "i64", ("batch", "n"))], {}, "cpu", None, "it sorts")
    with pytest.raises(tw.UserError, match="no code for all sizes, so each step would be compiled .*: it sorts"):
        tw.Generator(apart)


def test_heads_that_share_keys_read_them_where_they_are(padded) -> None:
    """The repeated keys and values that exporters write are not made: one kernel is the whole attention."""
    names = [kernel.name for kernel in padded.general.kernels]
    assert any(name.startswith("product_max_exp") for name in names)
    assert not any(name.startswith("copy_nx2x2") for name in names), names
