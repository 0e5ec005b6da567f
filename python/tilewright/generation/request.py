# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A request: a prompt, when it ends, and the tokens that it got so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.generation.sampling import Sampler, greedy


@dataclass(eq=False)
class Request:
    """A prompt that is continued.

    Attributes:
        prompt: its tokens.
        limit: the most tokens to make; None: until a stop token, or until the cache is full.
        stop: tokens that end it; the one that did is the last of `tokens`.
        choose: which token follows from logits.
        inputs: what other inputs of the model take, the same in each step, with a batch of 1.
        tokens: those made so far.
        reason: why it ended: ``stop``, ``length`` (the limit), ``full`` (the cache), ``error``, ``cancelled``; empty
            while it has not.
        error: what its user has to know: that the cache was full, what the model said of its inputs, or that logits
            were no numbers.
    """

    prompt: tuple[int, ...]
    limit: int | None = None
    stop: frozenset[int] = frozenset()
    choose: Sampler = greedy
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=list)
    reason: str = ""
    error: UserError | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return bool(self.reason)

    def result(self) -> list[int]:
        """Return the tokens.

        Raises:
            UserError: it has not ended, or it ended with an error.
        """
        if self.error is not None:
            raise self.error
        if not self.done:
            raise UserError("the request has not ended yet: step() the generator, or run() it")
        return self.tokens

    def fail(self, error: UserError) -> None:
        """End with an error."""
        self.reason, self.error = "error", error

    def take(self, logits: np.ndarray) -> int | None:
        """Choose the next token by logits [vocabulary], and end where it says so; returns it.

        Where the largest of them is NaN or infinite there is none, and the request ends with an error.
        """
        top = logits.max()  # NaN, if one is
        if not np.isfinite(top):
            place = len(self.prompt) + len(self.tokens)
            self.fail(
                UserError(
                    f"the logits behind {place} tokens have {top} as their largest: the model computed no "
                    "numbers (f16 may overflow: export it in f32 or bf16)"
                )
            )
            return None
        token = self.choose(logits)
        self.tokens.append(token)
        if token in self.stop:
            self.reason = "stop"
        elif self.limit is not None and len(self.tokens) >= self.limit:
            self.reason = "length"
        return token


def tokens_of(prompt: Any) -> tuple[int, ...]:
    """A prompt's tokens from a list, or an array with one row.

    Raises:
        UserError: it is empty, or holds something else than tokens.
    """
    array = np.asarray(prompt)
    if array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        kind = f"{array.dtype}{list(array.shape)}"
        raise UserError(f"a prompt is a list of at least one token (whole numbers), got {kind}")
    return tuple(map(int, array))


def stop_set(stop: int | Collection[int] | None) -> frozenset[int]:
    """Tokens that end a request, from one, several, or none.

    Raises:
        UserError: one is no whole number.
    """
    if stop is None:
        return frozenset()
    tokens = list(stop) if isinstance(stop, Collection) else [stop]
    if wrong := [token for token in tokens if isinstance(token, bool) or not isinstance(token, int | np.integer)]:
        raise UserError(f"stop is a token or several (whole numbers), got {wrong[0]!r}")
    return frozenset(map(int, tokens))


def is_batch(prompts: Any) -> bool:
    """Whether prompts are several: a list of lists, an array or a torch tensor with two dimensions."""
    if hasattr(prompts, "ndim"):
        return prompts.ndim == 2
    return isinstance(prompts, Sequence) and bool(prompts) and not isinstance(prompts[0], int | np.integer)
