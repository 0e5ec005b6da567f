# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which token comes next: the best one, or one of the best k, drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.core.errors import UserError

#: Takes the logits [vocabulary] of a position, gives the token that follows.
Sampler = Callable[[np.ndarray], int]


def sampler(top_k: int | None = None, temperature: float = 1.0, seed: int | None = None) -> Sampler:
    """How a request chooses its tokens.

    Args:
        top_k: the number of best tokens that one is drawn from; None: the best one is taken (greedy).
        temperature: logits are divided by it before they become probabilities.
        seed: of the random numbers, which are the request's own: the same seed and logits give the same tokens.

    Raises:
        UserError: `top_k` is less than 1, `temperature` is not above 0, `seed` is less than 0, or a temperature or a
            seed is given without `top_k`, where nothing is drawn.
    """
    if top_k is None:
        if temperature not in (0, 1) or seed is not None:
            raise UserError("temperature= and seed= are for a draw: give top_k=; without it the best token is taken")
        return greedy
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1:
        raise UserError(f"top_k must be a whole number >= 1, got {top_k!r}; None takes the best token")
    if not temperature > 0:
        raise UserError(f"temperature must be above 0, got {temperature!r}; top_k=None takes the best token")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise UserError(f"seed must be a whole number >= 0, got {seed!r}; None takes another one each time")
    random = np.random.default_rng(seed)

    def draw(logits: np.ndarray) -> int:
        wide = logits.astype(np.float64)
        count = min(int(top_k), wide.size)
        best = np.argpartition(wide, -count)[-count:]
        best = best[np.lexsort((best, -wide[best]))]  # the best first, of equal ones the first in the vocabulary
        weights = np.exp((wide[best] - wide[best[0]]) / temperature)
        return int(random.choice(best, p=weights / weights.sum()))

    return draw


def greedy(logits: np.ndarray) -> int:
    """The token with the largest logit, the first of equal ones."""
    return int(np.argmax(logits))
