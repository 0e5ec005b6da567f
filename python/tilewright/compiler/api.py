# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public functions: compile and load."""

from __future__ import annotations

import errno
import re
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.compiler.options import Choices, check
from tilewright.core import config
from tilewright.core.errors import OpenShapesError, TilewrightError, UserError
from tilewright.runtime import load_model

if TYPE_CHECKING:
    import numpy as np

    from tilewright.passes.pipeline import Pipeline


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def load(path: str | Path, threads: int | None = None, emulate: bool | Mapping[str, Any] = False) -> Any:
    """Load a compiled model.

    Args:
        path: a folder or archive that :meth:`Model.save` (or ``tilewright compile``) made.
        threads: threads per call; default: TILEWRIGHT_THREADS, else all CPUs that this process may use.
        emulate: run a model for GPUs on the emulator; True, or a mapping of the emulator's options (``seed``, ...).

    Returns:
        A :class:`tilewright.Model`; for a model for GPUs a :class:`~tilewright.runtime.gpu.gpu_model.GpuModel`.

    Raises:
        UserError: no such model, a damaged one, one of another version, or one that this CPU cannot run.
    """
    return load_model(path, threads=threads, emulate=emulate)


def compile(
    model: Any,
    target: str = "cpu",
    *,
    threads: int | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    weights: Mapping[str, np.ndarray] | None = None,
    pipeline: Pipeline | None = None,
    opt_level: int = 3,
    stop_after: str | None = None,
    dump_ir: str | Path | None = None,
    tune: float = 0.0,
    precision: str = "f32",
    calibration: Any = None,
    accuracy: str = "exact",
    emulate: bool | Mapping[str, Any] = False,
    cubin: bool = False,
) -> Any:
    """Compile a model and return it, ready to be called.

    Args:
        model: path of an ONNX file, its bytes, an onnx.ModelProto, a torch.nn.Module (with `example_inputs`), or an
            MLIR module (text, or a .mlir file) of layer 1, or of layer 3: kernels and a @main that launches them. Text
            with one `tile.kernel` and no @main gives a :class:`tilewright.Kernel`, as :func:`tilewright.kernel` does.
        target: ``cpu`` (this machine), ``cpu:NAME`` (an x86 CPU by LLVM's name), ``cuda`` (this machine's GPU),
            ``cuda:sm_80`` or ``cuda:sm_90a`` (an NVIDIA GPU by its architecture), ``reference`` (the interpreter).
        threads: threads per call of the result (it can be changed later); default: all CPUs.
        example_inputs: for a torch module: a tuple of positional inputs, or a dict of inputs by name.
        shapes: sizes of symbolic dimensions, e.g. ``{"batch": 1}``, their ranges, e.g. ``{"batch": (1, 64)}``, or whole
            shapes by input name. For a sequence the shapes of its tensors; None for an optional that holds nothing.
        weights: arrays of the external globals of an MLIR module, by name.
        pipeline: phases of passes to run instead of the target's own.
        opt_level: LLVM's optimization level, 0 to 3.
        stop_after: stop after this phase (import, normalize, plan, tile, schedule, lower) and return the IR as text.
        dump_ir: folder that receives the IR after each phase (default: TILEWRIGHT_DUMP_IR); forces a fresh compilation.
        tune: seconds to spend on measuring the best predicted tiles of each kernel on this machine (target ``cpu``, or
            a ``cuda`` target where such a GPU is); 0: take the predictions. The result is kept in the cache folder.
        precision: ``f32`` (exact as the model asks), ``bf16`` or ``int8``: products with weights get operands of that
            type (sums stay wide), all else stays as it is; on ``cuda`` targets convolutions do, too, and products of
            two activations (attention) in ``bf16``. ``tf32`` (``cuda`` targets): all products of f32 run on
            tensor cores, which read 10 bits of each factor's mantissa. The error against f32 stands in the manifest
            and the report (for a ``cuda`` target with `emulate`, by the emulator).
        calibration: for ``int8``, inputs that the ranges of activations are observed on: an array, a tuple, a dict by
            name, or a list of these.
        accuracy: ``exact`` (sums in f32 in some order), ``winograd`` (convolutions of three by three may be done by
            F(2, 3), with errors of the same size) or ``winograd4`` (also by F(4, 3), with errors some times larger);
            where it is predicted to be faster. ``fast`` (``cuda`` targets): exp, log, tanh, ... of f32 are the
            approximations of the special function unit as they are. The error against ``exact`` stands in the
            manifest and the report (for a ``cuda`` target with `emulate`, by the emulator).
        emulate: for a ``cuda`` target, run the code on the emulator instead of a GPU: slow, exact about what the code
            does, with checks that no GPU has. True, or a mapping of the emulator's options (``seed``, ``checks``, ...).
        cubin: for a ``cuda`` target, store machine code beside the PTX (ptxas makes it). A GPU of exactly this
            architecture loads it at once; any other one, and a driver that refuses it, assembles the PTX.

    Returns:
        A :class:`tilewright.Model` (for a ``cuda`` target a :class:`~tilewright.runtime.gpu.gpu_model.GpuModel`);
        with `stop_after`, the IR as text. Where dimensions of the inputs are open, a
        :class:`~tilewright.compiler.dynamic_shapes.FlexibleModel`: one compilation serves all sizes, where that is
        possible without slow code; otherwise (the log says why) it compiles for the sizes of each call.

    Raises:
        UserError: no such model or target, or a malformed model.
        UnsupportedError: the model uses operators that have no lowering.
        InternalError: a pass, LLVM or the linker failed.
    """
    from tilewright.compiler.driver import Options
    from tilewright.compiler.source import open_source
    from tilewright.runtime.cpu.model import checked_threads
    from tilewright.targets.target import check_target, present_arch

    source = open_source(model, weights, example_inputs)
    kind = check_target(target)
    target = f"cuda:{present_arch()}" if target == "cuda" else target
    check(Choices(target, pipeline, opt_level, tune, precision, calibration, accuracy, emulate, cubin))
    if threads is not None:  # a model of open sizes would be compiled before it is asked
        checked_threads(threads)
    run = Run(threads, emulate)
    if source.kind == "mlir" and stop_after is None and _is_kernel_alone(source.value):
        from tilewright.kernels import kernel

        if cubin:
            raise UserError("cubin= stores machine code in the artifact of a model, and a kernel alone has none")
        return kernel(source.value, target=target, threads=threads, emulate=emulate)
    folder = dump_ir or config.dump_ir.get()
    options = Options(
        shapes=_shape_items(shapes),
        stop_after=None if stop_after == "emit" else stop_after,
        dump_ir=Path(folder) if folder else None,
        pipeline=pipeline,
        opt_level=opt_level,
        cubin=cubin,
    )
    if precision != "f32":
        return _narrowed(source, target, options, run, Numbers(precision, calibration, accuracy))
    if accuracy != "exact":
        return _approximate(source, target, options, run, accuracy)
    return _compiled(source, target, kind, options, run, tune)


def _compiled(source: Any, target: str, kind: str, options: Any, run: Run, tune: float) -> Any:
    if options.stop_after is not None:
        if kind == "reference" and options.stop_after != "import":
            raise UserError("target 'reference' interprets what phase import makes: stop_after can only be 'import'")
        return _lowered(source, target, options)
    try:
        return _model(source, target, kind, options, run, tune)
    except OpenShapesError as error:
        from tilewright.compiler.dynamic_shapes import FlexibleModel, general_model

        def build(shapes: Mapping[str, Any]) -> Any:
            return _model(source, target, kind, replace(options, shapes=_shape_items(shapes)), run, tune)

        def build_general() -> Any:
            return _cached(source, target, replace(options, symbolic=True), run)

        general = general_model(build_general, error.inputs) if kind != "reference" else None
        return FlexibleModel(build, error.inputs, dict(options.shapes), target, general)


def _narrowed(source: Any, target: str, options: Any, run: Run, numbers: Numbers) -> Any:
    """The model with narrow products, and its error against f32 in the manifest."""
    from tilewright.compiler import precision as narrow

    name = numbers.precision
    try:
        cores = target.startswith("cuda")  # instructions of a CPU take no windows
        spec, count = narrow.narrowing(source, dict(options.shapes) or None, name, numbers.calibration, cores)
    except OpenShapesError:
        raise UserError(f"precision={name!r} needs fixed sizes: give shapes=") from None
    chosen = replace(options, pipeline=narrow.with_pass(_own_pipeline(target, numbers.accuracy), spec))
    if options.stop_after is not None:
        return _lowered(source, target, chosen)
    model = _cached(source, target, chosen, run)
    if "precision" not in model._manifest.compile:
        found = {}
        if _runs(target, run):
            found = narrow.error(model, lambda: _cached(source, target, options, run), numbers.calibration)
        narrow.note(model, {"name": name, "products": count, **found})
    return model


def _runs(target: str, run: Run) -> bool:
    """Whether a model can be run to see its error: code for a GPU on the emulator only."""
    return not target.startswith("cuda") or bool(run.emulate)


def _own_pipeline(target: str, accuracy: str) -> Pipeline:
    """The target's own pipeline, with the accuracy that was asked for."""
    from tilewright import devices
    from tilewright.compiler.accuracy import with_winograd
    from tilewright.pipelines import cpu, cuda
    from tilewright.targets.target import parse_target

    if target.startswith("cuda"):
        device = parse_target(target).device
        assert device is not None
        return cuda.pipeline(device, fast=accuracy == "fast")
    return with_winograd(cpu.pipeline(devices.get(target)), devices.get(target), accuracy)


def _approximate(source: Any, target: str, options: Any, run: Run, accuracy: str) -> Any:
    """The model with convolutions by Winograd's filtering, or approximate functions; its error in the manifest."""
    from tilewright.compiler.precision import error, note

    chosen = replace(options, pipeline=_own_pipeline(target, accuracy))
    model = _compiled(source, target, target.partition(":")[0], chosen, run, 0.0)
    fixed = getattr(model, "_manifest", None)  # none of a model whose sizes are open
    if fixed is not None and "accuracy" not in fixed.compile:
        found = error(model, lambda: _cached(source, target, options, run), None) if _runs(target, run) else {}
        note(model, {"name": accuracy, **found}, "accuracy")
    return model


@dataclass(frozen=True)
class Numbers:
    """How a model may round: types of products, what their ranges are seen on, functions."""

    precision: str = "f32"
    calibration: Any = None
    accuracy: str = "exact"


@dataclass(frozen=True)
class Run:
    """How the result is run: threads per call, and whether code for a GPU runs on the emulator."""

    threads: int | None = None
    emulate: bool | Mapping[str, Any] = False


def _is_kernel_alone(text: str) -> bool:
    """Whether MLIR text has kernels, but nothing that launches them."""
    return "tile.kernel" in text and not re.search(r'@main\b|sym_name = "main"', text)


def _model(source: Any, target: str, kind: str, options: Any, run: Run, tune: float) -> Any:
    if kind == "reference":
        from tilewright.targets.reference import ReferenceModel

        return ReferenceModel(source, dict(options.shapes) or None)
    if tune:
        options = _tuned(source, target, options, tune)
    return _cached(source, target, options, run)


def _tuned(source: Any, target: str, options: Any, seconds: float) -> Any:
    """The options with a pipeline whose kernels take the tiles that measured fastest."""
    from tilewright.compiler import tuning

    def with_choices(choices: tuple[str, ...]) -> Any:
        return replace(options, pipeline=_choosing_pipeline(target, choices)) if choices else options

    plain = replace(options, dump_ir=None)
    text = _lowered(source, target, replace(plain, stop_after="plan"))
    choices = tuning.tuned_choices(
        _key(source, target, plain) + _gpu_name(target),
        tuning.candidates_of(text),
        lambda choices: _cached(source, target, replace(with_choices(choices), dump_ir=None), Run(1)),
        seconds,
    )
    return with_choices(choices)


def _choosing_pipeline(target: str, choices: tuple[str, ...]) -> Pipeline:
    """The target's own pipeline, in which some kernels take other candidates than the first."""
    from tilewright import devices
    from tilewright.pipelines import cpu, cuda_plan

    if target.startswith("cuda"):
        return cuda_plan.with_choices(_own_pipeline(target, "exact"), choices)
    return cpu.pipeline(devices.get(target), choices)


def _gpu_name(target: str) -> str:
    """What tells GPUs of one architecture apart, in the name of a file: times of one say nothing of another."""
    if not target.startswith("cuda"):
        return ""
    from tilewright.core import cache
    from tilewright.runtime.gpu.cuda import CudaDevice

    with CudaDevice() as device:
        return "-" + cache.digest(device.name)


def _shape_items(shapes: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    try:
        items = [(str(k), _frozen(v)) for k, v in (shapes or {}).items()]
    except (TypeError, ValueError, AttributeError):
        raise UserError(f"shapes must map names to sizes, as in {{'batch': 1}}, got {shapes!r}") from None
    return tuple(sorted(items, key=lambda item: item[0]))


def _frozen(size: Any) -> Any:
    """A size, a shape, the shapes of a sequence's tensors, or None for an optional that holds nothing."""
    if size is None:
        return None
    if isinstance(size, str):
        raise TypeError("a size is a number")
    return tuple(map(_frozen, size)) if hasattr(size, "__iter__") else int(size)


def _lowered(source: Any, target: str, options: Any) -> str:
    from tilewright.compiler.driver import Compilation, lower
    from tilewright.targets.target import parse_target

    try:
        text = lower(Compilation(source, parse_target(target), options))
    except OpenShapesError:
        text = lower(Compilation(source, parse_target(target), replace(options, symbolic=True)))
    if text is None:
        raise UserError(f"the pipeline has no phase {options.stop_after!r}")
    return text


def _cached(source: Any, target: str, options: Any, run: Run) -> Any:
    from tilewright.core import cache

    key = _key(source, target, options)
    found = cache.find_model(key) if options.dump_ir is None else None
    if found is not None:
        try:
            return load_model(found, threads=run.threads, emulate=run.emulate)
        except TilewrightError:
            cache.remove(found)  # damaged: build it anew
    return _build(source, target, options, run, key)


def _key(source: Any, target: str, options: Any) -> str:
    from tilewright.core import cache
    from tilewright.targets.target import HOST

    host = "".join([cache.host_id(), *_measured()]) if target in HOST else ""
    if target.endswith(".toml"):
        from tilewright import devices

        host = repr(devices.get(target))
    choices = repr((options.shapes, options.symbolic, options.opt_level, options.cubin, str(options.pipeline)))
    return cache.digest(source.content_id, target, host, choices, cache.compiler_id())


def _measured() -> list[str]:
    """The numbers that `tilewright devices --measure` kept, if any: plans follow from them."""
    from tilewright.devices import measured

    path = measured.find()
    return [path.read_text()] if path is not None else []


def _build(source: Any, target: str, options: Any, run: Run, key: str) -> Any:
    from tilewright.compiler.driver import Compilation, build
    from tilewright.core import cache
    from tilewright.targets.target import parse_target

    with cache.new_folder() as folder:
        try:
            build(Compilation(source, parse_target(target), options), folder)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            place = "TILEWRIGHT_CACHE_DIR names" if config.cache.get() else "TMPDIR names"
            raise UserError(
                f"cannot write the compiled model to {folder.parent}: {error.strerror}; {place} the folder"
            ) from None
        if config.cache.get():
            return load_model(cache.publish_model(folder, key), threads=run.threads, emulate=run.emulate)
        kept = folder.rename(folder.with_name(folder.name.removeprefix(".new-")))
    model = load_model(kept, threads=run.threads, emulate=run.emulate)
    weakref.finalize(model, cache.remove, kept)
    return model
