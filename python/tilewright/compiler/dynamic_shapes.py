# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with symbolic dimensions that `shapes=` left open: one compilation for all sizes, or one for each set."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.core.errors import SIZES_OF_THEIR_OWN, InternalError, TilewrightError, UserError
from tilewright.runtime.binding import Signature
from tilewright.runtime.interop import to_numpy
from tilewright.runtime.manifest import TensorSpec

if TYPE_CHECKING:
    from tilewright.targets.base import Target

log = logging.getLogger("tilewright")

Shapes = dict[str, Any]
Dims = tuple[Any, ...]  # of ints, and of names for dimensions without a size


@dataclass(frozen=True)
class General:
    """What became of the model for all sizes.

    Attributes:
        model: it; None where there is none.
        reason: why there is none, as the end of a sentence.
    """

    model: Any = None
    reason: str = ""


def general_model(
    build: Callable[[], Any], inputs: Sequence[tuple[str, str, Dims | None]], sizes: str, target: Target
) -> General:
    """The model for all sizes, or why there is none.

    What is slow in it (scalar loops on the host) is said in the log; it never costs the rest.

    Args:
        build: compiles it.
        inputs: see DynamicShapesModel.
        sizes: of the user's options: ``general``: there has to be one; ``each``: none is wanted.
        target: what it is for.

    Raises:
        UserError: none can be compiled, and `sizes` asks for it.
        InternalError: the same, by a fault of the compiler.
    """
    found = General(reason="sizes='each' asks for code for each set of sizes")
    if sizes != "each":
        found = _general(build, inputs, target, wanted=sizes == "general")
    if found.model is None and sizes == "general":
        raise UserError(f"sizes='general': there is no code for all sizes at once: {found.reason}")
    return found


def _general(
    build: Callable[[], Any], inputs: Sequence[tuple[str, str, Dims | None]], target: Target, wanted: bool
) -> General:
    if not target.compiles:
        return General(reason=f"target {target.name} compiles nothing")
    if any(dims is None for _, _, dims in inputs) or not inputs:
        log.info("compiling for each set of sizes: the number of dimensions of an input is open")
        return General(reason="the number of dimensions of an input is open; give its shape with shapes=")
    try:
        model = build()
    except InternalError as error:  # no fault of the model: told whole, so that it can be reported
        if wanted:
            raise
        log.warning("compiling for each set of sizes: code for all sizes met an internal error: %s", error)
        return General(reason=f"an internal error ({error.message})")
    except TilewrightError as error:
        log.warning("compiling for each set of sizes: sizes must be known for this model (%s)", error.message)
        return General(reason=f"sizes must be known for this model ({error.message})")
    slow = model.report_data().get("open_loops", ())
    if slow:
        more = f", and {len(slow) - 1} more" if len(slow) > 1 else ""
        log.warning(
            "%s: runs as scalar loops on the host, since sizes are open: %s%s; sizes='each' compiles for each set of "
            "sizes instead",
            slow[0]["location"],
            slow[0]["reason"],
            more,
        )
    return General(model)


class _Compiled:
    """The model for one set of sizes, None until it is built. The lock is held while it is."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.model: Any = None


class DynamicShapesModel:
    """A model with open dimensions; called like :class:`tilewright.Model`, whose other attributes it has too.

    Where one compilation serves all sizes (`general`), calls run that. Other sizes are compiled when a call brings
    them, each set once, kept here and in the cache, and said in the log (logger ``tilewright``).
    Safe to call from several threads at once. Without `general` it cannot be saved: fix the sizes with ``shapes=``;
    `reason` says why there is none.

    Args:
        build: makes the model for the given sizes.
        inputs: the signature; dimensions without a size are names, or None where the model has no name for them.
        given: the sizes that the user fixed, and ranges (low, high).
        target: the target's name.
        general: the model for all sizes, or for some ranges of them (`ranges` in what its manifest says of it).
        reason: why there is none, if so.
    """

    def __init__(
        self,
        build: Callable[[Shapes], Any],
        inputs: Sequence[tuple[str, str, Dims | None]],
        given: Mapping[str, Any],
        target: str,
        general: Any = None,
        reason: str = "",
    ) -> None:
        self.general = general
        self.reason = reason
        self._build = build
        self._ranges = {name: size for name, size in given.items() if _is_range(name, size, inputs)}
        self._given = {name: size for name, size in given.items() if name not in self._ranges}
        self._dims = {name: dims for name, _, dims in inputs}
        shown = [TensorSpec(name, dtype, _shown(dims)) for name, dtype, dims in inputs]
        self._signature = Signature(shown, ())
        self._compiled: dict[tuple, _Compiled] = {}
        self._lock = threading.Lock()
        self._latest: Any = None
        self.inputs = tuple(shown)
        self.target = target

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and shape of each output; where there is no model for all sizes, those of the last call.

        Raises:
            UserError: there was no call yet.
        """
        return self._of_last_call().outputs

    @property
    def sizes(self) -> list[Shapes]:
        """The sets of sizes that were compiled, in order."""
        return [dict(key) for key, compiled in list(self._compiled.items()) if compiled.model is not None]

    @property
    def dims(self) -> dict[str, tuple[int | str, ...]]:
        """For each input its sizes, with a name for each that a call brings; `("...",)` for an open rank."""
        if self.general is not None:
            return self.general.dims
        return {name: _named(name, dims) for name, dims in self._dims.items()}

    def for_inputs(self, *args: Any, **named: Any) -> Any:
        """The model that serves inputs of these sizes: the one for all, or their own, compiled where it is new.

        Raises:
            UserError: the inputs do not fit.
        """
        values = self._signature.bind(args, named)
        if self.general is not None and self._is_served(values, {}):
            return self.general
        return self._model(self._sizes(self._shapes(values)))

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run the model for the sizes of these inputs, compiling it first where they need it and are new."""
        if self.general is not None:
            try:
                return self.general(*args, out=out, **named)
            except UserError as error:
                if SIZES_OF_THEIR_OWN not in str(error) and self._is_served(args, named):
                    raise error
        return self._call_special(args, out, named)

    def _is_served(self, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether the sizes of these inputs, which must be valid, are those that the general model is for."""
        sizes = self._sizes(self._shapes(self._signature.bind(args, named)))
        ranges = self.general.ranges.items()
        known = [(_size_of(name, sizes), *limits) for name, limits in ranges]
        return all(size is None or (low <= size and (high is None or size <= high)) for size, low, high in known)

    def _shapes(self, values: Sequence[Any]) -> dict[str, tuple[int, ...]]:
        from tilewright.runtime.gpu.gpu_interop import is_on_gpu, shape_of

        pairs = zip(self._signature.inputs, values, strict=True)
        return {s.name: shape_of(v) if is_on_gpu(v) else to_numpy(v, s.name, s.dtype)[0].shape for s, v in pairs}

    def _call_special(self, args: Sequence[Any], out: Any, named: Mapping[str, Any]) -> Any:
        values = self._signature.bind(args, named)
        model = self._model(self._sizes(self._shapes(values)))
        return model(*values, out=out) if out is not None else model(*values)

    def _sizes(self, shapes: Mapping[str, tuple[int, ...]]) -> Shapes:
        """The size of each name, from the shapes of the inputs."""
        sizes: Shapes = {}
        for name, shape in shapes.items():
            dims = self._dims[name]
            if dims is None or None in dims:
                sizes[name] = tuple(shape)
                continue
            if len(dims) != len(shape):
                raise UserError(f"input {name} must have {len(dims)} dimensions ({_text(dims)}), got {list(shape)}")
            for axis, (dim, size) in enumerate(zip(dims, shape, strict=True)):
                self._one(sizes, name, axis, dim, size)
        return sizes

    def _one(self, sizes: Shapes, name: str, axis: int, dim: Any, size: int) -> None:
        wanted = self._given.get(dim, dim) if isinstance(dim, str) else dim
        wanted = sizes.setdefault(dim, size) if isinstance(wanted, str) else wanted
        if wanted != size:
            _refuse(name, axis, dim, str(wanted), size)
        low, high = self._ranges.get(dim, (size, size))
        if not low <= size <= high:
            _refuse(name, axis, dim, f"between {low} and {high}", size)

    def _model(self, sizes: Shapes) -> Any:
        key = tuple(sorted(sizes.items()))
        with self._lock:
            compiled = self._compiled.setdefault(key, _Compiled())
        with compiled.lock:  # a second thread with the same sizes waits for the first one's model; others go on
            if compiled.model is None:
                start = time.perf_counter()
                compiled.model = self._build({**self._given, **sizes})
                text = ", ".join(f"{name}={size}" for name, size in key)
                log.warning("compiled for %s in %.2f s; shapes= fixes sizes ahead", text, time.perf_counter() - start)
        self._latest = compiled.model
        return compiled.model

    def _of_last_call(self) -> Any:
        if self._latest is None and self.general is not None:
            return self.general
        if self._latest is None:
            raise UserError("this model has no fixed sizes yet: call it once, or give shapes= to compile()")
        return self._latest

    def save(self, path: Any) -> Any:
        """Save the model for all sizes; see :meth:`tilewright.Model.save`.

        Raises:
            UserError: there is none.
        """
        if self.general is not None:
            return self.general.save(path)
        example = ", ".join(f'"{name}": 1' for name in self._open() or ["x"])
        raise UserError(
            f"a model that is compiled for each set of sizes cannot be saved; fix them: compile(..., "
            f"shapes={{{example}}}). There is no code for all sizes: {self.reason}"
        )

    def _open(self) -> list[str]:
        names = {d for dims in self._dims.values() for d in dims or () if isinstance(d, str)}
        return sorted(names - set(self._given))

    @property
    def example(self) -> str:
        """A dimension that is open, with a size: ``batch=1``."""
        name = next(iter(self._open()), None)
        return f"{name}=1" if name else f"{self.inputs[0].name}=1,2,3"

    def explain(self, path: Any = None, *, measure: bool = True) -> str:
        """Explain the model for all sizes, or that of the last call; see :meth:`tilewright.Model.explain`.

        Raises:
            UserError: there was no call yet.
        """
        return self._of_last_call().explain(path, measure=measure)

    def __repr__(self) -> str:
        """Return the signature."""
        return f"<tilewright.DynamicShapesModel ({', '.join(map(str, self.inputs))}), target {self.target}>"

    def __getattr__(self, name: str) -> Any:
        """Attributes of the model for all sizes."""
        general = self.__dict__.get("general")
        if general is None or name.startswith("_"):
            raise AttributeError(f"a {type(self).__name__} without a model for all sizes has no attribute {name!r}")
        return getattr(general, name)


def _size_of(name: str, sizes: Shapes) -> int | None:
    """The size of a dimension: by its own name, or that of its input and its number, "x[0]"; None where it has neither.

    Dimensions that only the code inside has (`runtime.text`) have neither, and no limits.
    """
    given, _, axis = name.rpartition("[")
    if name not in sizes and given not in sizes:
        return None
    return sizes[name] if name in sizes else sizes[given][int(axis.removesuffix("]"))]


def _is_range(name: str, size: Any, inputs: Sequence[tuple[str, str, Dims | None]]) -> bool:
    return isinstance(size, tuple) and name not in {known for known, _, _ in inputs}


def _refuse(name: str, axis: int, dim: Any, wanted: str, size: int) -> NoReturn:
    called = f" ({dim})" if isinstance(dim, str) else ""
    raise UserError(f"dimension {axis} of input {name}{called} must be {wanted}, got {size}")


def _shown(dims: Dims | None) -> tuple:
    return ("...",) if dims is None else tuple("?" if d is None else d for d in dims)


def _named(name: str, dims: Dims | None) -> tuple[int | str, ...]:
    return ("...",) if dims is None else tuple(f"{name}[{i}]" if d is None else d for i, d in enumerate(dims))


def _text(dims: Dims) -> str:
    return ", ".join(map(str, dims))
