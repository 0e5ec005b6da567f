# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder with a past: what its inputs mean, and one step of it for the requests under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.dtypes import to_numpy
from tilewright.core.errors import UserError
from tilewright.generation import names as conventions
from tilewright.generation.cache import Cache, Part
from tilewright.generation.names import Names

#: Logits of the same tokens differ less from each other, as a part of the range that they have; rounding is below it.
_SAME = 0.02


class Decoder:
    """A compiled model whose sequence and past are open.

    Args:
        model: the model; called with arrays by name.
        names: of its inputs and outputs; what is empty is looked for.

    Attributes:
        model: the compiled model.
        parts: the inputs of the past.
        batches: whether it takes several requests at once.
        masks: whether it takes a mask and positions, so that padding may be before the tokens of a row.
        sequence: the name of the number of new tokens, or that number.
        longest: the most tokens of a call; None: any number.
        least: the least length of the past; a prompt begins behind that much padding.
        most: the most tokens of a request, by the sizes that the model takes; None: any number.
        extra: inputs that are neither tokens nor past, mask, positions.

    Raises:
        UserError: names are missing, or a dimension that changes from step to step is fixed.
    """

    def __init__(self, model: Any, names: Names | None = None) -> None:
        self.model = model
        self.names = conventions.find(model.inputs, model.outputs, names)
        self._specs = {spec.name: spec for spec in model.inputs}
        self._sizes = model.dims
        ids = self._sizes[self.names.ids]
        if len(ids) != 2:
            raise UserError(f"tokens {self.names.ids} must be [batch, sequence], not of {len(ids)} dimensions")
        self._batch_name, self.sequence = ids
        self.longest = self.sequence if isinstance(self.sequence, int) else None
        self.batches = isinstance(self._batch_name, str)
        if not self.batches and self._batch_name != 1:
            raise UserError(f"the batch of {self.names.ids} is fixed at {self._batch_name}: export it open, or as 1")
        self.parts = [self._part(old, new) for old, new in self.names.past]
        self.masks = bool(self.names.mask and self.names.positions)
        known = {self.names.ids, self.names.mask, self.names.positions, *(part.past for part in self.parts)}
        self.extra = [spec.name for spec in model.inputs if spec.name not in known]
        self.least, self.most = self._range()
        if self.least and not self.names.mask:
            raise UserError(
                f"the past of {self.parts[0].past} has at least {self.least} places, so a prompt begins behind "
                "padding, and the model has no mask to hide it: export it with a past that may be empty"
            )

    def _part(self, past: str, present: str) -> Part:
        sizes = self._sizes[past]
        batch = next((d for d, n in enumerate(sizes) if self.batches and n == self._batch_name), -1)
        along = [d for d, n in enumerate(sizes) if isinstance(n, str) and d != batch]
        if len(along) != 1 or (self.batches and batch < 0):
            shown = ", ".join(map(str, sizes))
            raise UserError(
                f"input {past} is [{shown}]: its batch must be called as that of {self.names.ids} "
                f"({self._batch_name}), and of the others the length of the past alone must be open; "
                "export the model so, or name the pairs: names=Names(past=...)"
            )
        spec = self._specs[past]
        shape = tuple(n if isinstance(n, int) else 0 for n in sizes)
        return Part(past, present, shape, to_numpy(spec.dtype), batch, along[0])

    def _range(self) -> tuple[int, int | None]:
        """The least length of the past, and the most tokens behind it, by what the model says of its dimensions."""
        ranges = getattr(self.model, "ranges", {})
        part = self.parts[0]
        least, high = ranges.get(self._sizes[part.past][part.along], (0, None))
        most = [] if high is None else [high + 1]
        if self.names.mask:
            total = self._sizes[self.names.mask][-1]
            high = ranges.get(total, (0, None))[1]
            most += [] if high is None else [high]
        return least, min((n - least for n in most), default=None)

    def step(self, cache: Cache, ids: np.ndarray, extra: Mapping[str, Any]) -> np.ndarray:
        """Run new tokens [rows, count] of each request; the cache holds them then, too.

        Returns:
            The logits of what follows the last ones: [rows, vocabulary].
        """
        count = ids.shape[1]
        feeds: dict[str, Any] = {self.names.ids: ids.astype(self._dtype(self.names.ids)), **extra, **cache.feeds()}
        if self.names.mask:
            feeds[self.names.mask] = cache.mask(count, self._dtype(self.names.mask))
        if self.names.positions:
            feeds[self.names.positions] = cache.positions(count, self._dtype(self.names.positions))
        outputs = self.model(**{name: feeds[name] for name in self._specs})
        logits = np.asarray(outputs[self.names.logits])
        cache.advance(outputs, count)
        return logits[:, -1] if logits.ndim == 3 else logits

    def begin(self, tokens: Sequence[int], extra: Mapping[str, Any], chunk: int) -> tuple[Cache, np.ndarray]:
        """Run a prompt, at most `chunk` tokens in a call; its past, and the logits [1, vocabulary] of what follows."""
        cache = Cache.empty(self.parts, self.least)
        size = self.longest or chunk
        logits = np.zeros(0)
        ids = np.array([tokens])
        for first in range(0, len(tokens), size):
            logits = self.step(cache, ids[:, first : first + size], extra)
        return cache, logits

    def takes_padding(self) -> bool:
        """Whether a row with padding before it gives what it gives alone, by a trial of a few tokens.

        A mask and positions do not say so: GroupQueryAttention, for one, only counts the mask's tokens, and takes them
        for the first places.
        """
        try:
            short, long = (self.begin(tokens, {}, len(tokens))[0] for tokens in ([0], [1, 0, 1, 0]))
            rows = Cache(self.parts)
            rows.join(short)
            rows.join(long)
            together = self.step(rows, np.array([[1], [1]]), {})[0].astype(np.float64)
            alone = self.step(short, np.array([[1]]), {})[0].astype(np.float64)
        except UserError:  # sizes that it does not take
            return False
        return bool(np.abs(together - alone).max() <= _SAME * np.ptp(alone))

    def check_extra(self, extra: Mapping[str, Any]) -> None:
        """Check the names of what a request gives besides tokens.

        Raises:
            UserError: an input of the model is missing, or one is given that it has not.
        """
        wrong = sorted(set(extra) ^ set(self.extra))
        if wrong:
            takes = ", ".join(self.extra) or "none"
            raise UserError(f"besides tokens and past the model takes: {takes}; inputs= is wrong in {', '.join(wrong)}")

    def _dtype(self, name: str) -> np.dtype:
        return to_numpy(self._specs[name].dtype)
