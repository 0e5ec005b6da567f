# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public functions: compile and load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core import config
from tilewright.core.errors import UserError
from tilewright.core.options import CompileOptions, shape_items
from tilewright.targets import registry
from tilewright.targets.rules import check

if TYPE_CHECKING:
    import numpy as np

    from tilewright.passes.pipeline import Pipeline


def compile(
    model: Any,
    target: str = "cpu",
    *,
    threads: int | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    sizes: str = "auto",
    dynamic_shapes: Any = None,
    weights: Mapping[str, np.ndarray] | None = None,
    pipeline: Pipeline | None = None,
    opt_level: int = 3,
    start_from: str | None = None,
    stop_after: str | None = None,
    dump_ir: str | Path | None = None,
    tune: float = 0.0,
    precision: str = "f32",
    calibration: Any = None,
    accuracy: str = "exact",
    emulate: bool | Mapping[str, Any] = False,
    cubin: bool = False,
    resident: bool = False,
    padded: str | None = None,
    checks: bool = True,
    append_in_place: bool = False,
) -> Any:
    """Compile a model and return it, ready to be called.

    Args:
        model: path of an ONNX file, its bytes, an onnx.ModelProto, a torch.nn.Module (with `example_inputs`), a
            torch.export.ExportedProgram, a torch.onnx.ONNXProgram, a program of nested lists
            (`tilewright.fractal.function`, with the lengths of its lists as `shapes`), or an MLIR module
            (text, or a .mlir file) of layer 1, or of layer 3: kernels and a @main that launches them. Text with one
            `tile.kernel` and no @main gives a :class:`tilewright.Kernel`, as :func:`tilewright.kernel` does.
        target: ``cpu`` (this machine), ``cpu:NAME`` (an x86 CPU by LLVM's name), ``cuda`` (this machine's GPU),
            ``cuda:sm_80`` or ``cuda:sm_90a`` (an NVIDIA GPU by its architecture), ``mesh:NAME`` (a simulated mesh of
            cores, e.g. ``mesh:wse2``), ``reference`` (the interpreter).
        threads: threads per call of the result (it can be changed later); default: all CPUs.
        example_inputs: for a torch module: a tuple of positional inputs, or a dict of inputs by name.
        shapes: sizes of symbolic dimensions, e.g. ``{"batch": 1}``, their ranges, e.g. ``{"batch": (1, 64)}``, or whole
            shapes by input name. For a sequence the shapes of its tensors; None for an optional that holds nothing. For
            a program of lists the lengths of their levels: ``{"xss": (16, 64)}``, or ``{"xss": (16, ("ragged", 64))}``
            where each list of a level has its own length, of at most 64; of a tree the largest numbers of nodes and of
            those on one way down: ``{"tree": (127, 7)}``.
        sizes: what dimensions that `shapes` leaves open get. ``general``: one compilation for all sizes, or an error
            that says why there is none. ``each``: one for each set of sizes, when a call brings it. ``auto``:
            ``general`` where it can be compiled, else ``each``; what is slow in it is said in the log and in remarks.
        dynamic_shapes: for a torch module: which sizes of its inputs stay open, as `torch.export.export` takes them.
        weights: arrays of the external globals of an MLIR module, by name.
        pipeline: phases of passes to run instead of the target's own.
        opt_level: LLVM's optimization level, 0 to 3.
        start_from: the phase behind which an MLIR module is IR, as `stop_after` and `dump_ir` write it: ``import``,
            ``normalize``, ``plan``, ``tile``, ``schedule`` or ``lower``. The phases behind it run, with what the IR
            decides, also by hand; weights are those of the file that the IR names, or of `weights`.
        stop_after: stop after this phase (import, normalize, plan, tile, schedule, lower) and return the IR as text.
        dump_ir: folder that receives the IR after each phase (default: TILEWRIGHT_DUMP_IR); forces a fresh compilation.
        tune: seconds to spend on measuring the best predicted tiles of each kernel on this machine (target ``cpu``, or
            a ``cuda`` target where such a GPU is); 0: take the predictions. The result is kept in the cache folder.
        precision: ``f32`` (exact as the model asks), ``bf16`` or ``int8``: products with weights get operands of that
            type (sums stay wide), all else stays as it is; on ``cuda`` targets convolutions do, too, and products of
            two activations (attention) in ``bf16``. ``tf32`` (``cuda`` targets): all products of f32 run on
            tensor cores, which read 10 bits of each operand's mantissa. ``fp8-fast`` (``cuda`` targets): sums of
            float8 stay in tensor cores, which add them with 13 bits of fraction, and are not promoted to f32 every 128
            terms. The error against f32 stands in the manifest and the report (for a ``cuda`` target with `emulate`,
            by the emulator).
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
        resident: for a ``mesh`` target, weights have to stay in the cores' memories from call to call: where these
            cannot hold them, an error says so, and nothing streams in.
        padded: name of an input [batch, tokens] that is zero where a sentence is padded (``"attention_mask"``). It says
            that no output at a real token depends on padding, as in an encoder whose attention masks it, and that
            outputs at padding are not read. On CPUs, what works token by token then works on real tokens alone, as many
            as a call has, and results at padding are zeros: those of the outputs, and those that other tokens meet. A
            remark says where nothing could be left out.
        checks: for kernels by hand: where a task would reach out of an argument is an error, and what no bound is
            known of beforehand is checked in the code (on CPUs; a remark says which). False: they run as they are.
        append_in_place: for a CPU, a result that is an input with rows behind it (a decoder's past with new keys) is
            written behind that input, where it was itself the result of such a call and nothing was appended to it
            since: the call writes new rows alone. It is then a view of memory with room, not contiguous; results stay
            as they are when more is appended. Anything else is copied into such memory first, as is what has no room.

    Returns:
        A :class:`tilewright.Model` (for a ``cuda`` target a :class:`~tilewright.runtime.gpu.gpu_model.GpuModel`);
        with `stop_after`, the IR as text. Where dimensions of the inputs are open, a
        :class:`~tilewright.compiler.dynamic_shapes.DynamicShapesModel`: one compilation serves all sizes, or (`sizes`;
        the log says why) it compiles for the sizes of each call. Results of a torch module whose results are a dict, a
        dataclass, or nested, have that form, in a loaded model too.

    Raises:
        UserError: no such model or target, or a malformed model.
        UnsupportedError: the model uses operators that have no lowering.
        InternalError: a pass, LLVM or the linker failed.
    """
    from tilewright.compiler.models import Models
    from tilewright.compiler.source import open_source
    from tilewright.runtime.cpu.model import checked_threads

    source = open_source(model, weights, example_inputs, shapes, dynamic_shapes)
    machine = registry.parse_target(target)
    folder = dump_ir or config.dump_ir.get()
    options = CompileOptions(
        threads=threads,
        precision=precision,
        calibration=calibration,
        accuracy=accuracy,
        tune=tune,
        opt_level=opt_level,
        shapes=shape_items(shapes),
        sizes=sizes,
        cubin=cubin,
        resident=resident,
        padded=padded or "",
        checks=checks,
        append_in_place=append_in_place,
        emulate=emulate,
        start_from=start_from,
        stop_after=None if stop_after == "emit" else stop_after,
        dump_ir=Path(folder) if folder else None,
        pipeline=pipeline,
    )
    check(machine, options)
    if start_from is not None and source.kind != "mlir":
        raise UserError(f"start_from= takes IR, as MLIR text or a .mlir file, and {source.name} is an ONNX model")
    if threads is not None:  # a model of open sizes would be compiled before it is asked
        checked_threads(threads)
    if stop_after is None and start_from is None and source.is_kernel_alone:
        from tilewright.kernels import Kernel, read_kernel

        if cubin:
            raise UserError("cubin= stores machine code in the artifact of a model, and a kernel alone has none")
        return Kernel(
            read_kernel(source.value), compile, target=machine.name, threads=threads, emulate=emulate, checks=checks
        )
    return Models(source, machine, options).result()
