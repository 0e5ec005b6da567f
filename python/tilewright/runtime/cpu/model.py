# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled model, ready to be called."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewright.core import config
from tilewright.core.dtypes import make_canonical, to_numpy
from tilewright.core.errors import UserError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.binding import aligned
from tilewright.runtime.compiled import CompiledModel
from tilewright.runtime.cpu import library, memory
from tilewright.runtime.cpu.context import Context
from tilewright.runtime.cpu.direct import Direct, OpenDirect
from tilewright.runtime.cpu.rooms import Rooms
from tilewright.runtime.result import Outputs

_MAX_RECORDS = 1 << 16


def checked_threads(value: Any) -> int:
    """A number of threads as a user gave it.

    Raises:
        UserError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UserError(f"threads must be a whole number >= 1, got {value!r}")
    return int(value)


class Model(CompiledModel):
    """A compiled model. Call it with its inputs, by position or by name.

    ``model(ids, mask)`` or ``model(ids=ids, mask=mask)`` returns :class:`Outputs`, a tuple with names. Inputs are NumPy
    arrays, torch tensors, or anything with DLPack, of exactly the dtypes and shapes of :attr:`inputs`; the results are
    of the same kind. Arrays that are not C-contiguous are copied first; all others are used in place.
    ``model(..., out=[a, b])`` (or ``out={"name": a}`` with all outputs) writes into given NumPy arrays. A result whose
    size follows from the inputs' is made by the code and copied there. Of a model that appends in place, results that
    continue inputs are views of memory with room (`runtime/cpu/rooms.py`), not to be written.

    Safe to call from several threads at once: each running call has an arena of its own.

    Raises (when called):
        UserError: an input is missing, unknown, or of the wrong dtype or shape; `out` does not fit; the model found
            at run time that it cannot go on (a size that does not fit, no memory).
    """

    def __init__(self, artifact: Artifact, threads: int | None = None) -> None:
        super().__init__(artifact)
        manifest = artifact.manifest
        if manifest.runtime_abi != library.ABI_VERSION:
            raise UserError(
                f"{artifact.path} was built for run-time ABI {manifest.runtime_abi}, this is {library.ABI_VERSION}: "
                "compile the model again"
            )
        self._slots = self._signature.inputs
        self._out_slots = self._signature.outputs
        self._out_names = self._signature.output_names
        self._copied = False
        self._weights = self._load_weights()
        self._constants = [array.__array_interface__["data"][0] for array in self._weights]
        self._code = library.load_code(artifact.code_path())
        self._entry = library.address(self._code, manifest.entry)
        if self._entry is None:
            raise UserError(f"{artifact.path}: the code has no symbol {manifest.entry}; compile the model again")
        self._call = library.libtwrt().twrt_call
        self._free: list[Context] = []
        plain = Direct.suits((*self._slots, *self._out_slots)) and not self._signature.lengths.any
        self._direct = Direct(self._slots, self._out_slots) if plain else None
        made = OpenDirect.suits(self._slots, self._out_slots) and not self._signature.lengths.any
        self._open = OpenDirect(self._slots) if made and not manifest.appends else None
        self._names = [slot.name for slot in self._slots]
        self._small = [i for i, slot in enumerate(self._out_slots) if slot.is_small]
        self._rooms = Rooms(manifest.appends, self._out_names)
        appended = {place.output for place in self._rooms.places}
        self._made = [i for i, slot in enumerate(self._out_slots) if not slot.is_static and i not in appended]
        self.threads = threads

    def _load_weights(self) -> list[np.ndarray]:
        arrays = self._artifact.weights()
        for spec in self._manifest.weights:
            array = arrays.get(spec.name)
            if array is None or array.shape != spec.shape or array.dtype != to_numpy(spec.dtype):
                raise UserError(f"{self._artifact.path}: the weights do not match the manifest at {spec}")
        weights = [arrays[spec.name] for spec in self._manifest.weights]
        # A mapped weight ends where the next one begins; memory of its own ends with it.
        if config.sanitize.get():
            return [array.copy() for array in weights]
        copies = memory.in_huge_pages(weights) if config.huge_weights.get() else None
        self._copied = copies is not None
        return weights if copies is None else copies

    @property
    def threads(self) -> int:
        """Threads that a call uses (settable). The results do not depend on it, to the bit."""
        return self._threads

    @threads.setter
    def threads(self, value: int | None) -> None:
        self._threads = library.default_threads() if value is None else checked_threads(value)

    @property
    def held_bytes(self) -> dict[str, int]:
        """Bytes that the model holds: ``weights`` (mapped), ``arena`` (of each concurrent call).

        ``copied``: those of the weights that this process holds for itself, in huge pages.
        """
        weights = sum(array.nbytes for array in self._weights)
        copied = {"copied": weights} if self._copied else {}
        return {"weights": weights, "arena": self._manifest.arena_bytes} | copied

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Outputs:
        """Run the model; see the class."""
        plain = self._run_plain(self._in_order(args, named), out)
        if plain is not None:
            return Outputs(plain, self._out_names)
        values: Sequence[Any] = args
        if named or len(args) != len(self._slots):
            values = self._signature.bind(args, named)
        export = None
        arrays = []
        for i, (slot, value) in enumerate(zip(self._slots, values, strict=True)):
            if (
                slot.is_small
                or type(value) is not np.ndarray
                or value.dtype != slot.dtype
                or value.shape != slot.shape
                or not (value.flags.c_contiguous and value.flags.aligned)
            ):
                value, made = self._signature.convert(slot, value, partial(self._rooms.holds, i))
                export = export or made
            arrays.append(value)
        self._signature.lengths.check(arrays)
        results = self._blank() if out is None else self._signature.check_out(out, arrays)
        self._run(arrays, results)
        for i in self._small:
            make_canonical(results[i])
        if export is not None and out is None:
            results = [export(array) for array in results]
        return Outputs(results, self._out_names)

    def _in_order(self, args: Sequence[Any], named: dict[str, Any]) -> Sequence[Any]:
        """The inputs in order, where they are given all by position or all by name; else none."""
        if not named:
            return args
        if args or len(named) != len(self._names):
            return ()
        try:
            return [named[name] for name in self._names]
        except KeyError:
            return ()

    def _run_plain(self, inputs: Sequence[Any], out: Any) -> list[Any] | None:
        """Run the code on arrays that it takes as they are; None where one needs a look."""
        if self._direct is not None:
            results = self._blank() if out is None else out
            addresses = self._direct.addresses(inputs, results)
            if addresses is None:
                return None
            self._run_at(addresses)
            return results
        if self._open is None or out is not None:
            return None
        context = self._context()
        if self._open.point(context, inputs):
            return self._run_in(context, inputs, self._blank())
        self._free.append(context)
        return None

    def _run_in(self, context: Context, inputs: Sequence[Any], results: list[Any]) -> list[Any]:
        """Run the code on inputs that the context knows; `results` get the arrays that it makes."""
        for number, array in enumerate(results, len(inputs)):
            if array is not None:
                context.set_input(number, array.__array_interface__["data"][0], array.shape)
        done = self._call(self._entry, context.pointers, self._threads)
        error = library.last_error() if done < 0 else None
        if error is None:
            for i in self._made:
                results[i] = context.take(i, self._out_slots[i])
        self._free.append(context)
        if error is not None:
            raise UserError(self._signature.with_shapes(error, [array.shape for array in inputs]))
        return results

    def _blank(self) -> list[Any]:
        """Arrays for the outputs; None where the run makes one."""
        return [memory.empty(slot.shape, slot.dtype) if slot.is_static else None for slot in self._out_slots]

    def _context(self) -> Context:
        try:
            return self._free.pop()
        except IndexError:
            return Context(self._slots, self._out_slots, self._constants, self._manifest.arena_bytes)

    def _run_at(self, addresses: list[int]) -> None:
        """Run the code on inputs and outputs of known sizes."""
        context = self._context()
        context.pointers[: len(addresses)] = addresses
        done = self._call(self._entry, context.pointers, self._threads)
        error = library.last_error() if done < 0 else None
        self._free.append(context)
        if error is not None:
            raise UserError(error)

    def _run(self, arrays: list[np.ndarray], results: list[Any], records: Any = None) -> int:
        """Run the code; `results` get the arrays that it makes."""
        context = self._context()
        written = [
            aligned(array) if slot.is_static and array is not None else None
            for slot, array in zip(self._out_slots, results, strict=True)
        ]
        done, error, appended = self._enter(context, arrays, written, records)
        for array, other in zip(results, written, strict=True) if error is None else ():
            if other is not array and other is not None:
                np.copyto(array, other)
        made = [(i, context.take(i, self._out_slots[i])) for i in (self._made if error is None else ())] + appended
        self._free.append(context)
        if error is not None:
            raise UserError(self._signature.with_shapes(error, [array.shape for array in arrays]))
        for i, array in made:
            if results[i] is None:
                results[i] = array
            else:
                self._signature.fill(self._out_slots[i], results[i], array)
        return done

    def _enter(
        self, context: Context, arrays: list[np.ndarray], written: list[np.ndarray | None], records: Any
    ) -> tuple[int, str | None, list[tuple[int, np.ndarray]]]:
        """Run the code; what it returned, why it failed, and the outputs that continue inputs."""
        rooms = self._rooms.claim(arrays) if self._rooms.places else []
        while True:
            context.set(arrays + written)
            for place, room in zip(self._rooms.places, rooms, strict=True):
                context.set_room(place.output, room)
            if records is None:
                done = self._call(self._entry, context.pointers, self._threads)
            else:
                profiled = library.libtwrt().twrt_call_profiled
                done = profiled(self._entry, context.pointers, self._threads, records, len(records))
            error = library.last_error() if done < 0 else None
            if error is None or not self._rooms.grow(error, rooms, arrays):
                break
        if error is not None:
            self._rooms.release(rooms)
            return done, error, []
        shapes = [context.shape(place.output) for place in self._rooms.places]
        views = self._rooms.results(rooms, shapes) if rooms else []
        return done, None, [(place.output, view) for place, view in zip(self._rooms.places, views, strict=True)]

    def profile(self, *args: Any, out: Any = None, **named: Any) -> list[tuple[str, int, int]]:
        """Run the model once and return (kernel, tasks, nanoseconds) of each launch, in order.

        Takes inputs and `out` as a call does; without `out` the first touch of new results counts as well.
        """
        arrays, _ = self._signature.arrays(args, named)
        records = (library.Record * _MAX_RECORDS)()
        results = self._blank() if out is None else self._signature.check_out(out, arrays)
        count = self._run(arrays, results, records)
        names = {library.address(self._code, kernel.symbol): kernel.name for kernel in self.kernels}
        names.pop(None, None)
        return [(names.get(r.kernel, hex(r.kernel or 0)), r.tasks, r.nanoseconds) for r in records[:count]]

    def __repr__(self) -> str:
        """Return the signature."""
        return f"<tilewright.Model {self._signature_text()}, {self._threads} threads>"
