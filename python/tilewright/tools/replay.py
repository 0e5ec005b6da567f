# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``replay``: whether IR written at the borders of phases leads `tile-opt` to the code that `tilewright.compile` makes.

A model is compiled once, with its IR written after each phase. From each border `tile-opt` then goes on in a process of
its own, to machine code or PTX, which must have the same bytes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.core.errors import InternalError, TilewrightError
from tilewright.core.options import PHASES
from tilewright.targets.cuda.ptxas import ROOM

BORDERS = PHASES[:-1]
"""Phases that IR is written after, from which the rest can be replayed."""

_PASSES = {"cpu": "tile-emit-cpu=format=object output={}", "cuda": "tile-emit-ptx=output={}"}
_ENDINGS = {"cpu": ".o", "cuda": ".ptx"}


def compiled(model: Any, target: str, folder: Path, shapes: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """Compile a model, with its IR written to `folder`; return the code of each symbol.

    Args:
        model: as `tilewright.compile` takes it.
        target: a target string of a kind in the pipelines.
        folder: receives ``NUMBER-PHASE.mlir`` and the weights.
        shapes: sizes of open dimensions.
    """
    import tilewright as tw
    from tilewright.core.workers import Job, shared_pool
    from tilewright.targets.registry import parse_target

    tw.compile(model, target=target, dump_ir=folder, shapes=shapes)
    machine = parse_target(target)
    emitted = folder / f"{PHASES.index('emit')}-emit"
    if machine.kind != "cpu":
        return {file.stem: _as_generated(file) for file in sorted(emitted.glob("*.ptx"))}
    # What the compile workers got, through a worker again: objects are linked, and not kept.
    units = sorted(emitted.glob("*.mlir"))
    jobs = [Job(file.stem, file.read_bytes(), machine.cpu, machine.features) for file in units]
    return {file.stem: code for file, code in zip(units, shared_pool().compile(jobs), strict=True)}


def replayed(folder: Path, border: str, kind: str, output: Path) -> dict[str, bytes]:
    """Let `tile-opt` go on from the IR after a phase, in a new process; return the code of each symbol.

    Args:
        folder: what :func:`compiled` wrote to.
        border: one of :data:`BORDERS`.
        kind: ``cpu`` or ``cuda``.
        output: folder for the code.

    Raises:
        InternalError: `tile-opt` failed.
    """
    file = folder / f"{PHASES.index(border)}-{border}.mlir"
    rest = BORDERS[BORDERS.index(border) + 1 :]
    passes = [*(f"--tile-{kind}-{phase}" for phase in rest), "--" + _PASSES[kind].format(output)]
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", str(file), *passes, "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InternalError(f"tile-opt failed from the border after {border}: {done.stderr.strip()[-2000:]}")
    read = Path.read_bytes if kind == "cpu" else _as_generated
    return {code.stem: read(code) for code in sorted(output.glob(f"*{_ENDINGS[kind]}"))}


def _as_generated(file: Path) -> bytes:
    """PTX without the line by which a kernel may have more registers: only who calls ptxas adds it."""
    return re.sub(rb"%b \d+\n" % re.escape(ROOM), b"", file.read_bytes())


def differences(expected: Mapping[str, bytes], found: Mapping[str, bytes]) -> list[str]:
    """Return the symbols whose code differs, or that only one side has."""
    return sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay a model from borders; prints a line for each, and returns 1 where code differs."""
    parser = argparse.ArgumentParser(prog="tools/replay", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model", help="an ONNX file, or a .mlir file of layer 1")
    parser.add_argument("--target", default="cpu", help="cpu, cpu:NAME, cpu:FILE.toml, cuda:sm_80 or cuda:sm_90a")
    parser.add_argument("--phases", default=",".join(BORDERS), help=f"borders, of {', '.join(BORDERS)}")
    options = parser.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="tilewright-replay-") as temporary:
        folder = Path(temporary)
        try:
            expected = compiled(options.model, options.target, folder / "ir")
            for border in options.phases.split(","):
                found = replayed(folder / "ir", border, options.target.partition(":")[0], folder / border)
                wrong = differences(expected, found)
                bad += bool(wrong)
                what = f"differs: {', '.join(wrong)}" if wrong else "same"
                print(f"{border}: {len(found)} symbols, {what}", flush=True)
        except (TilewrightError, ValueError) as error:
            print(f"replay: error: {error}", file=sys.stderr)
            return 2
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
