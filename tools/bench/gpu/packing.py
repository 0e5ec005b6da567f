# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs the GPU suite: compiles each case here, and puts it into a folder with all that runs it elsewhere.

::

    suite.json         cases: graphs, descriptions of tensors, goals, why one could not be built
    models/NAME/       compiled models: PTX, machine code where ptxas is here, host program, manifest
    weights/*.safetensors   real weights (MiniLM)
    tilewright/ bench/ what runs them: pure Python
    run                the command
    ladder             the bring-up ladder's; what belongs to it: ladder/building.py
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import models
import tilewright
from bench.gpu.cases import CASES, Case
from bench.gpu.ladder import building
from bench.gpu.portable import Portable, portable
from tilewright.core import safetensors
from tilewright.core.errors import TilewrightError
from tilewright.targets.cuda import ptxas

ROOT = Path(__file__).resolve().parents[3]
#: What a pack may weigh.
LIMIT = 60 << 20
_HEADER = "\n".join(Path(__file__).read_text().splitlines()[:3])
_RUN = f'''#!/usr/bin/env python3
{_HEADER}
"""Checks and times the kernels of this pack; --help tells how."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from bench.gpu.far.main import main  # noqa: E402 (needs the path)

sys.exit(main(HERE, sys.argv[1:]))
'''
_LADDER = _RUN.replace("Checks and times the kernels of this pack", "Proves this GPU step by step").replace(
    "far.main", "far.ladder.main"
)
_PACKAGE = f'{_HEADER}\n"""Tilewright\'s run-time, as a pack needs it."""\n'
_REAL_WEIGHTS = ("minilm",)


def described(case: Case, small: bool) -> Portable:
    """The case's model with open weights."""
    model = case.build(small)
    return portable(model, _inputs(model), case.model in _REAL_WEIGHTS)


def _inputs(model: onnx.ModelProto) -> dict[str, Any]:
    """Integers as they are to be; of floats the type and sizes alone, as they are made on the other side."""
    kinds = {i.name: i.type.tensor_type for i in model.graph.input}
    dtypes = {name: onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type) for name, kind in kinds.items()}
    drawn = models.random_inputs(model) if any(d.kind in "iu" for d in dtypes.values()) else {}
    shapes = {name: [d.dim_value for d in kind.shape.dim] for name, kind in kinds.items()}
    return {n: drawn[n] if d.kind in "iu" else np.broadcast_to(d.type(0), shapes[n]) for n, d in dtypes.items()}


def pack(
    folder: Path,
    arch: str,
    small: bool,
    names: Sequence[str] = (),
    workers: int = 1,
    rungs: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Make a pack.

    Args:
        folder: that receives it; what it holds is removed.
        arch: of the GPU, e.g. ``sm_90a``.
        small: the small sizes of each case, and the emulator with them.
        names: cases; all where none is given.
        workers: cases that are compiled at once.
        rungs: of the ladder; all where there are none in it; None: the suite alone.

    Returns:
        What suite.json holds.

    Raises:
        UserError: the pack weighs more than it may.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "models").mkdir(parents=True)
    (folder / "weights").mkdir()
    cases = [case for case in CASES if not names or case.name in names]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        entries = list(pool.map(lambda case: _entry(folder, case, arch, small), cases))
    suite = {"version": 1, "arch": arch, "small": small, "about": _about(), "cases": entries}
    (folder / "suite.json").write_text(json.dumps(suite))
    _copy_code(folder, small)
    if rungs is not None:
        building.build(folder, arch, small, rungs)
        _command(folder / "ladder", _LADDER)
    check_size(folder)
    return suite


def check_size(folder: Path) -> int:
    """Return the bytes of a pack. UserError where they are too many."""
    files = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    total = sum(files.values())
    if total > LIMIT:
        largest = sorted(files, key=files.__getitem__)[-3:]
        raise tilewright.UserError(
            f"the pack weighs {total / 2**20:.1f} MiB, more than {LIMIT >> 20}; its largest files are "
            + ", ".join(f"{path.relative_to(folder)} ({files[path] / 2**20:.1f})" for path in largest)
        )
    return total


def _entry(folder: Path, case: Case, arch: str, small: bool) -> dict[str, Any]:
    start = time.monotonic()
    it = described(case, small)
    place = f"models/{case.name}"
    entry = {key: value for key, value in asdict(case).items() if key not in ("model", "sizes", "small")}
    entry |= {"folder": place, "failure": None, "fewer_ctas": [], "graph": it.graph, "tensors": it.tensors}
    entry["weights"] = _write_weights(folder / "weights", it.weights)
    try:
        model = tilewright.compile(it.model, target=f"cuda:{arch}", emulate=True, cubin=ptxas.find() is not None)
        model.save(folder / place)
        entry["fewer_ctas"] = fewer_than_planned(model)
        (folder / place / "report.json.gz").unlink(missing_ok=True)
        for kind in ("ptx", "cubin"):
            entry[f"{kind}_bytes"] = sum(f.stat().st_size for f in (folder / place / "code").glob(f"*.{kind}"))
    except Exception as error:
        if not isinstance(error, TilewrightError):
            traceback.print_exc()
        shutil.rmtree(folder / place, ignore_errors=True)
        entry["folder"] = None
        entry["failure"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    entry["compile_seconds"] = round(time.monotonic() - start, 2)
    told = "; ".join([entry["failure"] or "ok", *entry["fewer_ctas"]])
    print(f"{case.name:24} {entry['compile_seconds']:6.1f} s  {told}", file=sys.stderr, flush=True)
    return entry


def fewer_than_planned(model: Any) -> list[str]:
    """The kernels of which a multiprocessor holds fewer CTAs, by ptxas's registers, than their plan counts on."""
    found = []
    for kernel in model.kernels:
        planned, held = kernel.details.get("plan", {}).get("occupancy", 0), kernel.details.get("resident_ctas")
        if held is not None and held < planned:
            registers = kernel.details["registers"]
            found.append(f"{kernel.symbol}: {held} CTAs of {registers} registers, planned {planned}")
    return found


def _write_weights(folder: Path, weights: dict[str, np.ndarray]) -> str | None:
    """A file named by content: cases of one model share it."""
    if not weights:
        return None
    total = hashlib.sha256()
    for name, array in weights.items():
        total.update(name.encode() + array.tobytes())
    name = f"{total.hexdigest()[:16]}.safetensors"
    if not (folder / name).exists():
        with open(folder / name, "wb") as file:
            safetensors.write(file, weights)
    return name


def _about() -> dict[str, Any]:
    return {"tilewright": tilewright.__version__, "packed": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())}


def _copy_code(folder: Path, small: bool) -> None:
    source, package = ROOT / "python" / "tilewright", folder / "tilewright"
    ignore = shutil.ignore_patterns("__pycache__", "lib", "*.so")
    for name in ("core", "runtime", *(["sim"] if small else [])):
        shutil.copytree(source / name, package / name, ignore=ignore)
    (package / "__init__.py").write_text(_PACKAGE)
    tools, bench = ROOT / "tools" / "bench", folder / "bench"
    shutil.copytree(tools / "gpu" / "far", bench / "gpu" / "far", ignore=ignore)
    for name in ("__init__.py", "torch_graph.py", "gpu/__init__.py"):
        shutil.copy(tools / name, bench / name)
    _command(folder / "run", _RUN)


def _command(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def main(given: Sequence[str]) -> int:
    """The command line of tools/bench/gpu/pack; returns 1 where a case could not be built and --strict is given."""
    parser = argparse.ArgumentParser(prog="tools/bench/gpu/pack", description="Pack the GPU suite into a folder.")
    parser.add_argument("folder", type=Path, help="receives the pack; what it holds is removed")
    parser.add_argument("--arch", default="sm_90a", help="architecture of the GPU (sm_90a)")
    parser.add_argument("--small", action="store_true", help="small sizes, and the emulator with them")
    parser.add_argument("--case", default="", metavar="A,B", help="only these cases")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="cases that are compiled at once")
    parser.add_argument("--rung", metavar="A,B", help="only these rungs of the ladder; none of it: --rung none")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a case could not be built")
    arguments = parser.parse_args(given)
    names = [n for n in arguments.case.split(",") if n]
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(case.name for case in CASES)}")
    rungs = None if arguments.rung == "none" else [r for r in (arguments.rung or "").split(",") if r]
    suite = pack(arguments.folder, arguments.arch, arguments.small, names, arguments.workers, rungs)
    built = [case for case in suite["cases"] if case["folder"]]
    size = check_size(arguments.folder) / 2**20
    print(f"{len(built)} of {len(suite['cases'])} cases, {size:.1f} MiB: {arguments.folder}/run")
    return int(arguments.strict and len(built) < len(suite["cases"]))
