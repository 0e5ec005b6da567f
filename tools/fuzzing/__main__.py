# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Feed our readers and compilers with random input: mutated ONNX files, mutated IR, random tensor programs.

Exit status 1 where something crashed, hung, failed as a bug, or disagreed with the reference.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import engine
from .campaign import Campaign
from .worker import CAMPAIGNS, campaign


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/fuzz", description=__doc__)
    parser.add_argument("campaign", choices=sorted(CAMPAIGNS))
    parser.add_argument("--start", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=1000, help="number of seeds (default: 1000)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--one", type=int, metavar="SEED", help="run this seed in this process")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the cases of findings (or of --one) there")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print what was found."""
    options = parse(arguments)
    work = campaign(options.campaign)
    if options.one is not None:
        return _one(work, options.one, options.write)
    start = time.monotonic()
    findings = engine.run(work, options.start, options.count, options.jobs, _Reports(work, options.write))
    hours = (time.monotonic() - start) / 3600
    groups = engine.grouped(findings)
    for finding, count in groups:
        print(f"{count} x {finding}")
    last = options.start + options.count - 1
    upstream = sum(finding.upstream for finding in findings)
    print(
        f"{work.name}: seeds {options.start} to {last}, {options.jobs} processes, {hours:.2f} hours: "
        f"{len(findings) - upstream} findings, {upstream} upstream"
    )
    return 1 if len(findings) > upstream else 0


class _Reports:
    """Tells of the first finding of each kind while the campaign runs, and writes its case."""

    def __init__(self, work: Campaign, folder: Path | None) -> None:
        self._work = work
        self._folder = folder
        self._seen: set[str] = set()

    def __call__(self, finding: engine.Finding) -> None:
        """A finding was made."""
        if finding.signature in self._seen:
            return
        self._seen.add(finding.signature)
        print(finding, file=sys.stderr, flush=True)
        if self._folder is not None:
            _write(self._work, finding.seed, self._folder)


def _one(work: Campaign, seed: int, folder: Path | None) -> int:
    if any(os.environ.get(name) != value for name, value in work.environment().items()):
        command = [sys.executable, "-m", __package__, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **work.environment()})
    work.prepare()
    if folder is not None:
        print(_write(work, seed, folder), flush=True)
    found = work.execute(work.make(seed))
    print(found or "nothing found")
    return 1 if found else 0


def _write(work: Campaign, seed: int, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{work.name}-{seed}{work.suffix}"
    path.write_bytes(work.make(seed))
    return path


if __name__ == "__main__":
    sys.exit(main())
