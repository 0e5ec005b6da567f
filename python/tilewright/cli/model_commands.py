# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compile, run, bench, explain."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tilewright.cli import arguments
from tilewright.cli.peer import OnnxRuntime, differences, race
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.report import counts
from tilewright.report.gpu_kernels import predicted_on_gpu
from tilewright.report.measure import results_for
from tilewright.runtime.structure import flat

_REMARKS = 5  # shown by compile


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_compile(commands)
    _add_run(commands)
    _add_bench(commands)
    _add_explain(commands)


# compile ------------------------------------------------------------------------------------------------------------


def _add_compile(commands: Any) -> None:
    parser = commands.add_parser("compile", help="compile a model and save it", description="Compile a model.")
    arguments.add_model(parser, "an ONNX file, a layer-1 .mlir file, or with --start-from the IR of a later phase")
    parser.add_argument("-o", "--output", help="where to save it: a .tw or .zip file, or a folder (default: MODEL.tw)")
    parser.add_argument(
        "--tune", type=float, default=0.0, metavar="SECONDS", help="measure the best predicted tiles on this machine"
    )
    parser.add_argument("--opt-level", type=int, default=3, choices=range(4), help="LLVM's level (default 3)")
    parser.add_argument(
        "--start-from",
        metavar="PHASE",
        help="MODEL is IR behind this phase, as --dump-ir writes it, with decisions as they stand there",
    )
    parser.add_argument("--stop-after", metavar="PHASE", help="print the IR after this phase (to -o if given) and stop")
    parser.add_argument("--dump-ir", metavar="DIR", help="write the IR after each phase to this folder")
    parser.set_defaults(run=_compile)


def _compile(options: argparse.Namespace) -> int:
    if arguments.is_compiled(options.model):
        raise UserError(f"{options.model} is compiled already")
    start = time.perf_counter()
    more = {
        "opt_level": options.opt_level,
        "start_from": options.start_from,
        "stop_after": options.stop_after,
        "dump_ir": options.dump_ir,
        "tune": options.tune,
    }
    model = arguments.open_model(options, all_sizes=True, **more)
    seconds = time.perf_counter() - start
    if isinstance(model, str):
        if options.output:
            Path(options.output).write_text(model + "\n")
        else:
            print(model)
        return 0
    path = model.save(options.output or Path(options.model).with_suffix(".tw").name)
    _print_compiled(model, path, seconds)
    return 0


def _print_compiled(model: Any, path: Path, seconds: float) -> None:
    phases = model.report_data().get("phases", [])
    spent = sum(phase["seconds"] for phase in phases)
    if phases and spent <= seconds:
        print(" ".join(f"{phase['name']} {phase['seconds']:.2f}s" for phase in phases))
    else:
        print("from the cache")
    print(f"inputs   {', '.join(map(str, model.inputs))}")
    print(f"outputs  {', '.join(map(str, model.outputs))}")
    held = model.held_bytes
    kernels = f"{len(model.kernels)} kernel{'' if len(model.kernels) == 1 else 's'}"
    print(f"{kernels}, weights {held['weights'] / 1e6:.1f} MB, arena {held['arena'] / 1e6:.2f} MB")
    predicted = [predicted_on_gpu(kernel) for kernel in model.kernels]
    if any(predicted):
        device = model.report_data().get("device", {}).get("name", model.target)
        whole = sum(time or 0.0 for time in predicted)
        print(f"predicted {whole * 1e6:.1f} us on {device}: `tilewright explain` tells more")
    _print_remarks(model.report_data().get("remarks", []))
    print(f"{path} ({seconds:.2f} s)")


# run ----------------------------------------------------------------------------------------------------------------


def _print_remarks(remarks: list[dict[str, str]]) -> None:
    """The first few: what is slower than it looks, and why."""
    for remark in remarks[:_REMARKS]:
        where = remark["location"].strip('"')
        print(f"remark   {f'{where}: ' if where else ''}{remark['message']}")
    if len(remarks) > _REMARKS:
        print(f"         ... and {len(remarks) - _REMARKS} more: `tilewright explain` shows all")


def _add_run(commands: Any) -> None:
    parser = commands.add_parser("run", help="run a model once", description="Run a model, compiling it if need be.")
    arguments.add_model(parser)
    arguments.add_inputs(parser)
    arguments.add_sizes(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the outputs to an .npz file")
    parser.add_argument("--compare", choices=["onnxruntime"], help="compare the outputs; exit code 1 if they differ")
    parser.add_argument("--onnx", metavar="FILE", help="the ONNX file of a compiled model, for --compare")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative tolerance (default 1e-3)")
    parser.add_argument("--atol", type=float, default=1e-4, help="absolute tolerance (default 1e-4)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    model, inputs = _with_inputs(options)
    start = time.perf_counter()
    outputs = flat(model)(**inputs)
    seconds = time.perf_counter() - start
    for name, value in outputs.items():
        print(f"{name}: {_described(value)}")
    print(f"first run {seconds * 1e3:.2f} ms, {model.runs_on}")
    if options.output:
        np.savez(options.output, **{name: _kept(name, value) for name, value in outputs.items()})
    if options.compare is None:
        return 0
    if any(not isinstance(value, np.ndarray) or value.dtype == object for value in outputs):
        raise UserError("--compare compares numbers, and this model gives strings or dicts; compare it in Python")
    return _compare(options, model, inputs, dict(outputs.items()))


def _with_inputs(options: argparse.Namespace) -> tuple[Any, dict[str, np.ndarray]]:
    """The model that serves the sizes of this run, and its inputs."""
    model = arguments.open_model(options, all_sizes=True, each_size=True)
    inputs = arguments.make_inputs(model, options.input, options.seed, options.size)
    return (model.for_inputs(**inputs) if hasattr(model, "for_inputs") else model), inputs


def _described(value: Any) -> str:
    """A result in one line: numbers, strings, or dicts."""
    if isinstance(value, list):
        return f"{len(value)} dicts  {value[0] if value else ''}"
    if value.dtype != object:
        return f"{list(value.shape)} {value.dtype}  {_summary(value)}"
    flat = value.reshape(-1).tolist()
    return f"{list(value.shape)} string  [{', '.join(flat[:4])}{', ...' if len(flat) > 4 else ''}]"


def _kept(name: str, value: Any) -> np.ndarray:
    """A result as an .npz file holds it."""
    if isinstance(value, list):
        raise UserError(f"output {name} gives dicts, which no .npz file holds: run the model from Python")
    return value.astype(str) if value.dtype == object else value


def _summary(value: np.ndarray) -> str:
    if value.size == 0:
        return "empty"
    flat = value.reshape(-1)
    head = ", ".join(f"{number:.5g}" for number in flat[:4].astype(np.float64))
    low, mean, high = (float(part) for part in (flat.min(), flat.mean(), flat.max()))
    return f"[{head}{', ...' if flat.size > 4 else ''}]  min {low:.5g} mean {mean:.5g} max {high:.5g}"


def _onnx_file(options: argparse.Namespace) -> str:
    if not arguments.is_compiled(options.model) and not options.model.endswith(".mlir"):
        return options.model
    if not options.onnx:
        raise UserError("to compare a compiled model, name its ONNX file with --onnx FILE")
    return options.onnx


def _compare(options: argparse.Namespace, model: Any, inputs: dict, outputs: dict) -> int:
    theirs = OnnxRuntime(_onnx_file(options), model.threads)(inputs)
    rows = differences(outputs, theirs, options.rtol, options.atol)
    for name, worst, share, good in rows:
        verdict = "same" if good else "DIFFERENT"
        print(f"{name}: largest difference {worst:.3g}, {share:.3g} of the tolerance: {verdict}")
    return 0 if all(good for *_, good in rows) else 1


# bench --------------------------------------------------------------------------------------------------------------


def _add_bench(commands: Any) -> None:
    text = "Measure the latency of a model, alternating in bursts with ONNX Runtime if asked."
    parser = commands.add_parser("bench", help="measure a model's latency", description=text)
    arguments.add_model(parser)
    arguments.add_inputs(parser)
    arguments.add_sizes(parser)
    parser.add_argument("--against", choices=["onnxruntime"], help="measure this one beside it")
    parser.add_argument("--onnx", metavar="FILE", help="the ONNX file of a compiled model, for --against")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to measure (default 4)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file")
    parser.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    model, inputs = _with_inputs(options)
    if getattr(model, "emulated", False):
        raise UnsupportedError(
            "the emulator has no clock: its time says nothing of a GPU's; `tilewright explain` shows what is predicted"
        )
    values = list(inputs.values())
    out = results_for(model, values)
    runs = {"tilewright": lambda: model(*values, out=out)}
    if options.against:
        peer = OnnxRuntime(_onnx_file(options), model.threads)
        runs["onnxruntime"] = peer.bound(inputs)
    times = race(runs, options.seconds)
    for name, bursts in times.items():
        print(f"{name:<12} {median(bursts) * 1e3:9.3f} ms   best {min(bursts) * 1e3:9.3f} ms   ({len(bursts)} bursts)")
    figures: dict[str, Any] = {name: {"median": median(b), "best": min(b)} for name, b in times.items()}
    if options.against:
        ratio = median(b / a for a, b in zip(times["tilewright"], times["onnxruntime"], strict=True))
        figures["speedup"] = ratio
        print(f"{ratio:.2f}x the speed of ONNX Runtime, {model.threads} thread(s)")
    if options.json:
        Path(options.json).write_text(json.dumps({"threads": model.threads, **figures}, indent=1))
    return 0


# explain ------------------------------------------------------------------------------------------------------------


def _add_explain(commands: Any) -> None:
    text = "Write one HTML page: what was compiled, how, why, and how long each kernel takes."
    parser = commands.add_parser("explain", help="write a report about a model", description=text)
    arguments.add_model(parser)
    parser.add_argument("-o", "--output", default="report.html", help="the page (default report.html)")
    parser.add_argument("--no-measure", action="store_true", help="do not run the model to time its kernels")
    parser.add_argument("--each-pass", action="store_true", help="count launches and bytes after each pass, not phase")
    parser.add_argument("--json", metavar="FILE", help="write launches and bytes after each phase to a file")
    parser.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    if options.each_pass and arguments.is_compiled(options.model):
        raise UserError(f"--each-pass: {options.model} is compiled already; name the model that it was made from")
    with contextlib.ExitStack() as stack:
        dumped = stack.enter_context(tempfile.TemporaryDirectory()) if options.each_pass else None
        model = arguments.open_model(options, all_sizes=True, **({"dump_ir": dumped} if dumped else {}))
    model.explain(options.output, measure=not options.no_measure)
    if options.json:
        Path(options.json).write_text(json.dumps(counts.as_json(model), indent=1) + "\n")
    print("\n".join(filter(None, (counts.as_text(model.report_data()), options.output))))
    return 0
