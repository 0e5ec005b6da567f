# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tw.Generator: prompts in, tokens out; requests join and leave between steps."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.generation.cache import Cache
from tilewright.generation.decoder import Decoder
from tilewright.generation.last_row import with_last_row
from tilewright.generation.names import LOGITS, Names
from tilewright.generation.request import Request, is_batch, stop_set, tokens_of
from tilewright.generation.sampling import sampler

log = logging.getLogger("tilewright")


class Generator:
    """Continues prompts with a decoder that takes keys and values of the past, and returns them with the new ones.

    The past stays with the generator. Requests are steps of one batch: each joins when there is room, and leaves when
    it ends. One thread steps and cancels; others may submit.

    Args:
        model: a compiled model with open sequence and past (``batch`` too, if requests shall run together), the path of
            a saved one (``.tw``), or what :func:`tilewright.compile` takes, which it is compiled from.
        capacity: tokens that the past of a request may have, its prompt included.
        batch: requests that run together at most; others wait.
        chunk: tokens of a prompt that a call takes at most.
        names: inputs and outputs that have unusual names.
        pads: whether requests of unequal lengths may run together: the shorter ones get padding before them, which the
            mask hides. By default where the model takes a mask and positions, and a trial (when such requests first
            meet) gives a padded row the same logits. With a mask alone say True if the model counts positions by it;
            what is said is not tried.
        step: a model for one new token of each request, by which steps run: it reads the keys where they are, which a
            model for any number of tokens packs first. True: compile one, from what `model` is compiled from; or a
            compiled model, or the path of a saved one. It has weights of its own in memory.
        options: for :func:`tilewright.compile` (``target``, ``threads``, ``precision``, ...; on CPUs
            ``append_in_place`` is True by default); for a saved model ``threads`` and ``emulate``.

    Raises:
        UserError: the model has no code for all sizes, names of its inputs are not known, a number is out of range, or
            an option comes too late for a model that is compiled already.
    """

    def __init__(
        self,
        model: Any,
        *,
        capacity: int = 2048,
        batch: int = 8,
        chunk: int = 512,
        names: Names | None = None,
        pads: bool | None = None,
        step: Any = None,
        **options: Any,
    ) -> None:
        for what, value in (("capacity", capacity), ("batch", batch), ("chunk", chunk)):
            _require_count(what, value)
        self.model = _opened(model, options, (names or Names()).logits or LOGITS)
        self._decoder = Decoder(self.model, names)
        self.step_model = self.model
        if step is not None and step is not False:
            self.step_model = _for_steps(step, model, self._decoder, options)
        self._stepper = self._decoder if self.step_model is self.model else Decoder(self.step_model, names)
        most = self._decoder.most
        self.capacity = capacity if most is None else min(capacity, most)
        self.batch = batch if self._decoder.batches and not self._decoder.extra else 1
        self._chunk = chunk
        self._pads = pads if pads is not None or self._decoder.masks else False
        self._cache = Cache(self._decoder.parts)
        self._running: list[Request] = []
        self._waiting: deque[Request] = deque()

    @property
    def running(self) -> tuple[Request, ...]:
        """Requests under way, in the order of their rows."""
        return tuple(self._running)

    @property
    def waiting(self) -> tuple[Request, ...]:
        """Requests that have not begun, in the order in which they came."""
        return tuple(self._waiting)

    def submit(
        self,
        prompt: Any,
        *,
        max_tokens: int | None = None,
        stop: int | Collection[int] | None = (),
        top_k: int | None = None,
        temperature: float = 1.0,
        seed: int | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Request:
        """Add a request; it begins with one of the next steps.

        Args:
            prompt: tokens: a list, or an array.
            max_tokens: the most tokens to make.
            stop: tokens that end it; None (of a tokenizer that has none): none.
            top_k, temperature, seed: see :func:`tilewright.generation.sampling.sampler`; by default the best token.
            inputs: of models that take more than tokens and past (an encoder's states), the same in each step.

        Raises:
            UserError: the prompt has no tokens or more than the cache holds, a number is out of range, or an input is
                missing or unknown.
        """
        tokens = tokens_of(prompt)
        if max_tokens is not None:
            _require_count("max_tokens", max_tokens)
        if len(tokens) > self.capacity:
            raise self._full(f"the prompt has {len(tokens)}")
        self._decoder.check_extra(inputs or {})
        choose = sampler(top_k, temperature, seed)
        request = Request(tokens, max_tokens, stop_set(stop), choose, dict(inputs or {}))
        self._waiting.append(request)
        return request

    def cancel(self, request: Request) -> None:
        """End a request; it keeps the tokens that it has."""
        if request.done:
            return
        request.reason = "cancelled"
        if request in self._waiting:
            self._waiting.remove(request)
        self._leave()

    def step(self) -> list[tuple[Request, int]]:
        """Make the next token of each request under way, after waiting ones have joined. Returns them in order.

        A request whose cache is full, that the model does not take, or whose logits are no numbers ends with an error,
        which :meth:`Request.result` raises; others go on.
        """
        self._end_full()
        made = self._decode() if self._running else []
        made += self._admit()
        self._leave()
        return made

    def run(self) -> None:
        """Step until no request is left."""
        while self._running or self._waiting:
            self.step()

    def generate(self, prompts: Any, **options: Any) -> Any:
        """Continue one prompt, or several together.

        Args:
            prompts: the tokens of one, or a list of such.
            options: as for :meth:`submit`.

        Returns:
            The tokens that follow (a stop token is the last one); for several prompts, a list of such lists.

        Raises:
            UserError: as for :meth:`submit`; the cache was full before a request ended.
        """
        several = is_batch(prompts)
        requests: list[Request] = []
        try:
            for prompt in prompts if several else [prompts]:
                requests.append(self.submit(prompt, **options))
            while not all(request.done for request in requests):
                self.step()
        finally:  # where one is refused, or the run is interrupted, the others do not stay
            for request in requests:
                self.cancel(request)
        results = [request.result() for request in requests]
        return results if several else results[0]

    def stream(self, prompt: Any, **options: Any) -> Iterator[int]:
        """Yield the tokens that follow a prompt, as they are made; see :meth:`generate`."""
        request = self.submit(prompt, **options)
        try:
            while not request.done:
                yield from (token for other, token in self.step() if other is request)
            request.result()
        finally:
            self.cancel(request)

    def _decode(self) -> list[tuple[Request, int]]:
        """A step of the batch: the last token of each goes in.

        What the model does not take (a position behind its table, a size) it takes least from the longest request: that
        one ends, and the others try again.
        """
        while self._running:
            ids = np.array([[request.tokens[-1]] for request in self._running])
            try:
                logits = self._stepper.step(self._cache, ids, self._running[0].inputs)
            except UserError as error:
                self._running[self._cache.starts.index(min(self._cache.starts))].fail(error)
                self._leave()
                continue
            return self._taken(self._running, logits)
        return []

    def _taken(self, requests: Sequence[Request], logits: np.ndarray) -> list[tuple[Request, int]]:
        """Those that have another token, with it."""
        made = []
        for request, row in zip(requests, logits, strict=True):
            token = request.take(row)
            made += [] if token is None else [(request, token)]
        return made

    def _fits(self, request: Request) -> bool:
        """Whether a request may be a row beside those that are under way."""
        if not self._running or len(request.prompt) == self._cache.tokens(0):
            return True
        if self._pads is None:
            self._pads = self._decoder.takes_padding()
            if not self._pads:
                log.warning(
                    "rows with padding before them do not give what they give alone, though the model takes a mask and "
                    "positions: requests of unequal lengths run one after the other (pads=True: together all the same)"
                )
        return self._pads

    def _admit(self) -> list[tuple[Request, int]]:
        """Run prompts of waiting requests, and let them join; the first token of each."""
        made = []
        self._leave()
        while self._waiting and len(self._running) < self.batch:
            request = self._waiting[0]
            if not self._fits(request):
                break  # rows of unequal lengths would be wrong: it waits until the others have left
            self._waiting.popleft()
            try:
                cache, logits = self._decoder.begin(request.prompt, request.inputs, self._chunk)
            except UserError as error:  # of this request alone: its inputs, a size that the model does not take
                request.fail(error)
                continue
            made += self._taken([request], logits)
            if not request.done:
                self._cache.join(cache)
                self._running.append(request)
        return made

    def _end_full(self) -> None:
        for row, request in enumerate(self._running):
            if self._cache.tokens(row) >= self.capacity:
                request.error = self._full(f"a prompt of {len(request.prompt)} and {len(request.tokens)} new ones came")
                request.reason = "full"
        self._leave()

    def _full(self, what: str) -> UserError:
        limit = "which the model's sizes allow" if self.capacity == self._decoder.most else "capacity="
        return UserError(f"the cache is full: it holds {self.capacity} tokens of a request ({limit}), and {what}")

    def _leave(self) -> None:
        """Take requests that have ended out of the batch."""
        left = [row for row, request in enumerate(self._running) if not request.done]
        self._cache.keep(left)
        self._running = [self._running[row] for row in left]

    def __repr__(self) -> str:
        """Return what it holds."""
        return f"<tilewright.Generator of {self.model!r}, {len(self._running)} running, {len(self._waiting)} waiting>"


def _require_count(what: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UserError(f"{what} must be a whole number >= 1, got {value!r}")


def _for_steps(step: Any, model: Any, decoder: Decoder, options: Mapping[str, Any]) -> Any:
    """The model for one new token: one that is given, or compiled from what the other one was compiled from."""
    if step is not True:
        given = {name: value for name, value in options.items() if name in ("threads", "emulate")}
        return _opened(step, {} if callable(step) else given, decoder.names.logits)
    if (hasattr(model, "inputs") and callable(model)) or _is_saved(model):
        raise UserError(
            "step=True compiles a model for one new token, but this one is compiled already: give step= a model "
            "compiled with shapes={sequence: 1}"
        )
    sequence = decoder.sequence
    if not isinstance(sequence, str):
        return decoder.model
    shapes = {**options.get("shapes", {}), sequence: 1}
    return _opened(model, {**options, "shapes": shapes}, decoder.names.logits)


def _is_saved(model: Any) -> bool:
    return isinstance(model, str | Path) and (Path(model).suffix == ".tw" or Path(model).is_dir())


def _opened(model: Any, options: Mapping[str, Any], logits: str) -> Any:
    """The compiled model for all sizes; one that is compiled here makes the logits of the last token alone."""
    if not (hasattr(model, "inputs") and callable(model)):
        if _is_saved(model):
            from tilewright.targets.loading import load

            if late := sorted(set(options) - {"threads", "emulate"}):
                raise UserError(f"{model} is compiled already: {', '.join(late)} must be given when it is compiled")
            model = load(model, **options)
        else:
            from tilewright.compiler.api import compile
            from tilewright.targets.registry import parse_target

            appends = parse_target(options.get("target", "cpu")).appends
            model = compile(with_last_row(model, logits), **{"append_in_place": appends, **options})
    elif options:
        raise UserError(f"the model is compiled already: {', '.join(options)} say how to compile one")
    general = getattr(model, "general", model)
    if general is None:
        told = "the model has no code for all sizes, so each step would be compiled for its own"
        raise UserError(f"{told}: {model.reason}")
    return general
