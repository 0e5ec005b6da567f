# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of a packed ladder: rung after rung, each in a process of its own, until one fails."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu.far import child
from bench.gpu.far.ladder.device import Pack
from bench.gpu.far.ladder.rungs import RUNGS, Rung, chosen

#: The emulator's time is not a GPU's.
_EMULATED = 10


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="climb", description="Proves a GPU step by step; stops at the first rung that fails, and says why."
    )
    parser.add_argument("--list", action="store_true", help="list the rungs")
    parser.add_argument("--from", dest="first", metavar="RUNG", help="begin at this rung")
    parser.add_argument("--only", metavar="RUNG", help="this rung alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON per rung to FILE")
    parser.add_argument("--emulate", action="store_true", help="on the emulator: a pack of small sizes")
    parser.add_argument("--seed", type=int, help="with --emulate: order of warps and asynchronous work")
    parser.add_argument("--seconds", type=float, metavar="S", help="time limit of each rung, instead of its own")
    return parser


def main(root: Path, given: Sequence[str]) -> int:
    """Climb; returns 0 where every rung holds, 1 where one fails, 2 where it cannot begin."""
    arguments = _parser().parse_args(given)
    try:
        rungs = chosen(arguments.first, arguments.only)
        if not arguments.list:
            _check(Pack(root), arguments.emulate)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for rung in rungs:
        if arguments.list:
            print(f"{rung.name:16} {rung.proves}")
            continue
        line = climb(root, rung, arguments)
        print(told(line), flush=True)
        if arguments.json:
            with open(arguments.json, "a") as file:
                file.write(json.dumps(line) + "\n")
        if line["status"] not in ("ok", "skipped"):
            return 1
    return 0


def _check(pack: Pack, emulate: bool) -> None:
    """Raise ValueError where the ladder cannot begin here."""
    if emulate and not pack.entries["small"]:
        raise ValueError("this pack has the sizes of a GPU; make one for the emulator with pack --small")
    if not emulate:
        from tilewright.runtime.gpu import cuda

        reason = cuda.unavailable()
        if reason is not None:
            raise ValueError(f"{reason}\n(--emulate climbs with a small pack, without a GPU)")


def climb(root: Path, rung: Rung, arguments: argparse.Namespace) -> dict[str, Any]:
    """One rung in a process of its own: the line of JSON about it."""
    seconds = arguments.seconds or rung.seconds * (_EMULATED if arguments.emulate else 1)
    with tempfile.TemporaryDirectory(prefix="tilewright-ladder-") as folder:
        results = Path(folder) / "results.jsonl"
        command = [sys.executable, "-m", "bench.gpu.far.ladder.step", str(root), rung.name, str(results)]
        command += ["--emulate"] if arguments.emulate else []
        command += ["--seed", str(arguments.seed)] if arguments.seed is not None else []
        paths = {"PYTHONPATH": str(root)}
        outcome = child.run(command, seconds, results, environment=paths)
    checks = [line for line in outcome.lines if line["status"] not in ("started", "done")]
    line = {"rung": rung.name, "status": _status(outcome, checks), "seconds": round(outcome.seconds, 2)}
    line["text"] = rung.proves if line["status"] == "ok" else _why(rung, outcome, checks)
    return {**line, "checks": checks, "stderr": outcome.stderr_tail if line["status"] != "ok" else ""}


def _status(outcome: Any, checks: Sequence[Mapping[str, Any]]) -> str:
    """How the rung ended; checks decide where its process came to its end."""
    if outcome.status != "ok":
        return outcome.status
    if any(check["status"] == "wrong" for check in checks):
        return "failed"
    return "skipped" if all(check["status"] == "skipped" for check in checks) else "ok"


def _why(rung: Rung, outcome: Any, checks: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong, what it means, and where to look."""
    wrong = [f"{check['check']}: {check['text']}" for check in checks if check["status"] == "wrong"]
    if wrong:
        return "\n".join([*wrong[:4], *([f"and {len(wrong) - 4} more"] if len(wrong) > 4 else []), f"see {rung.hint}"])
    if outcome.status == "ok":
        return "; ".join(dict.fromkeys(check["text"] for check in checks))
    begun = [line["check"] for line in outcome.lines if line["status"] == "started"]
    last = begun[-1] if begun else "the start of the process"
    how = {"hang": f"did not end within {outcome.seconds:.0f} s", "lost": "lost the CUDA context"}
    said = outcome.stderr_tail.strip().splitlines()[-1:] if outcome.stderr_tail else []
    return "\n".join([f"{last}: {how.get(outcome.status, 'the process died')}", *said, f"see {rung.hint}"])


def told(line: Mapping[str, Any]) -> str:
    """A rung's line for people."""
    skipped = sum(check["status"] == "skipped" for check in line["checks"])
    proved = f"{len(line['checks']) - skipped} checks" + (f", {skipped} skipped" if skipped else "")
    text = line["text"].replace("\n", "\n" + " " * 26)
    return f"{line['status']:8} {line['rung']:16} {text}  ({proved}, {line['seconds']:.1f} s)"


__all__ = ["RUNGS", "climb", "main", "told"]
