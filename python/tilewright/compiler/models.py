# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled models of one source for one target: from the cache, or built; tuned, compared, for open sizes."""

from __future__ import annotations

import errno
import logging
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compiler import driver, precision
from tilewright.compiler.driver import Compilation
from tilewright.compiler.source import Source
from tilewright.core import cache, config
from tilewright.core.errors import OpenShapesError, TilewrightError, UserError
from tilewright.core.options import CompileOptions, shape_items
from tilewright.runtime.text import bounded
from tilewright.targets.base import Target
from tilewright.targets.loading import load_numbers

log = logging.getLogger("tilewright")

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class Models:
    """What is compiled of one source: the model that was asked for, and those that it is measured or compared with.

    They are imported and normalized once together, where they begin with the same passes.

    Args:
        source: the model as the user gave it.
        target: what to compile for.
        options: what was asked for.
    """

    def __init__(self, source: Source, target: Target, options: CompileOptions) -> None:
        self.source = source
        self.target = target
        self.options = options
        self._start: driver.Start | None = None
        self._shares = bool(options.tune) or not options.is_plain

    def result(self) -> Any:
        """Return the model; with `stop_after`, the IR as text.

        Raises:
            UserError, UnsupportedError, InternalError: see :func:`tilewright.compile`.
        """
        if self.options.stop_after is not None:
            return self.text(self.options)
        try:
            model = self._model(self.options)
        except OpenShapesError as error:
            return bounded(self._dynamic_shapes(error), error.boundary)
        self._compare(model, self.options)
        return bounded(model)

    def text(self, options: CompileOptions) -> str:
        """Return the IR after a phase.

        Raises:
            UserError: the pipeline has no such phase.
        """
        try:
            text = driver.lower(Compilation(self.source, self.target, options))
        except OpenShapesError:
            text = driver.lower(Compilation(self.source, self.target, replace(options, symbolic=True)))
        if text is None:
            raise UserError(f"the pipeline has no phase {options.stop_after!r}")
        return text

    def _model(self, options: CompileOptions) -> Any:
        """The model for sizes that are known."""
        if not self.target.compiles:
            return self.target.interpreted(self.source, options)
        return self._cached(self._tuned(options) if options.tune else options)

    def _dynamic_shapes(self, error: OpenShapesError) -> Any:
        """The model whose sizes each call brings."""
        from tilewright.compiler import dynamic_shapes

        def build(shapes: Mapping[str, Any]) -> Any:
            return self._model(replace(self.options, shapes=shape_items(shapes)))

        def build_general() -> Any:
            options = replace(self.options, symbolic=True)
            model = self._cached(options)
            self._compare(model, options)
            return model

        general = dynamic_shapes.general_model(build_general, error.inputs, self.options.sizes, self.target)
        given = dict(self.options.shapes)
        name = self.target.name
        return dynamic_shapes.DynamicShapesModel(build, error.inputs, given, name, general.model, general.reason)

    def _compare(self, model: Any, options: CompileOptions) -> None:
        """Note the error against the plain model in the manifest, where the model can be run and it is not there."""
        if options.is_plain or not self.target.compiles:
            return
        name = "precision" if options.precision != "f32" else "accuracy"
        entry = model._manifest.compile.get(name, {})
        if "data" in entry or not self.target.runs(options):
            return
        try:
            found = precision.error(model, lambda: self._cached(options.plain()), options.calibration)
        except UserError as error:
            if not options.symbolic:
                raise
            random = "random inputs of one size do not fit, calibration= gives inputs that do"
            why = random if options.calibration is None else "the calibration data does not fit"
            log.info("%s: the error is not measured: %s (%s)", name, why, error.message)
            return
        precision.note(model, {**entry, **found}, name)

    def _tuned(self, options: CompileOptions) -> CompileOptions:
        """The options whose kernels take the tiles that measured fastest."""
        from tilewright.compiler import tuning

        plain = replace(options, dump_ir=None)

        def build(choices: tuple[str, ...]) -> Any:
            return self._cached(replace(plain, choices=choices, threads=1))

        choices = tuning.tuned_choices(
            self._key(plain) + self.target.tuning_key(),
            tuning.candidates_of(self.text(replace(plain, stop_after="plan"))),
            build,
            options.tune,
        )
        return replace(options, choices=choices)

    def _cached(self, options: CompileOptions) -> Any:
        key = self._key(options)
        found = cache.find_model(key) if options.dump_ir is None else None
        if found is not None:
            try:
                return _load(found, options)
            except TilewrightError:
                cache.remove(found)  # damaged: build it anew
        return self._build(options, key)

    def _key(self, options: CompileOptions) -> str:
        parts = (self.target.name, self.target.code_key(), options.code_key(), _data_id(options.calibration))
        if options.dump_ir is not None:  # the same code, and a report that tells of each pass
            parts += ("dumped",)
        return cache.digest(self.source.content_id, *parts, cache.compiler_id())

    def _build(self, options: CompileOptions, key: str) -> Any:
        with cache.new_folder() as folder:
            work = Compilation(self.source, self.target, options, shares=self._shares)
            work.start = self._start if options.dump_ir is None else None  # dumps show all phases
            try:
                self._start = driver.build(work, folder).start
            except OSError as error:
                if error.errno not in _NO_SPACE:
                    raise
                place = "TILEWRIGHT_CACHE_DIR names" if config.cache.get() else "TMPDIR names"
                raise UserError(
                    f"cannot write the compiled model to {folder.parent}: {error.strerror}; {place} the folder"
                ) from None
            if config.cache.get():
                return _load(cache.publish_model(folder, key), options)
            kept = folder.rename(folder.with_name(folder.name.removeprefix(".new-")))
        model = _load(kept, options)
        weakref.finalize(model, cache.remove, kept)
        return model


def _load(path: Path, options: CompileOptions) -> Any:
    return load_numbers(path, threads=options.threads, emulate=options.emulate)


def _data_id(data: Any) -> str:
    """What identifies calibration data: one sample, or a list of them."""
    if data is None:
        return ""
    if isinstance(data, Mapping):
        return cache.digest("mapping", *(part for name in sorted(data) for part in (str(name), _data_id(data[name]))))
    if isinstance(data, list | tuple):
        return cache.digest(type(data).__name__, *map(_data_id, data))
    array = np.ascontiguousarray(data)
    return cache.digest(str(array.dtype), str(array.shape), array.tobytes())
