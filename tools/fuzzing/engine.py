# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a campaign on several processes, survives their deaths, and gathers findings that look alike."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .campaign import Campaign

TOOLS = Path(__file__).resolve().parents[1]
_COMMAND = [sys.executable, "-m", f"{__package__}.worker"]
_CHUNK = 4000  # seeds that a process takes at once, so that memory it leaks is given back


_TAIL = 20000  # bytes of what a process that dies says: a report of a sanitizer is some thousands
_STARTING = 120  # seconds more until the first case: imports, reading what cases are made from
_UPSTREAM = "upstream: "  # how a campaign says that not our code is at fault


@dataclass(frozen=True)
class Finding:
    """One case on which something went wrong."""

    seed: int
    what: str
    upstream: bool = False

    def __str__(self) -> str:
        """One line."""
        return f"seed {self.seed}: {'(upstream) ' * self.upstream}{self.what}"

    @property
    def signature(self) -> str:
        """The text without what differs from case to case."""
        text = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", self.what)
        return f"{self.upstream} " + re.sub(r"0x[0-9a-f]+|-?\d+", "N", text)[:160]


def run(
    campaign: Campaign, start: int, count: int, jobs: int, report: Callable[[Finding], None] = lambda _: None
) -> list[Finding]:
    """Run the cases of seeds [start, start + count); the findings by seed, each reported at once too."""
    campaign.prepare()
    chunk = min(_CHUNK, -(-count // jobs))
    ranges = [(first, min(chunk, start + count - first)) for first in range(start, start + count, chunk)]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, ThreadPoolExecutor(jobs) as threads:
        progress = [Path(folder) / f"{i}" for i in range(len(ranges))]

        def part(seeds: tuple[int, int], path: Path) -> list[Finding]:
            findings = []
            for finding in _chunk(campaign, *seeds, path):
                report(finding)
                findings.append(finding)
            return findings

        parts = list(threads.map(part, ranges, progress))
    return sorted((finding for part in parts for finding in part), key=lambda f: f.seed)


def _chunk(campaign: Campaign, start: int, count: int, progress: Path) -> Iterator[Finding]:
    end = start + count
    while start < end:
        stopped, findings = _process(campaign, start, end - start, progress)
        yield from findings
        if stopped is None:
            return
        yield stopped
        start = stopped.seed + 1


def _process(campaign: Campaign, start: int, count: int, progress: Path) -> tuple[Finding | None, list[Finding]]:
    """Run one process; a finding for the case that killed it, if any, and those that it reported."""
    progress.write_bytes(b"")
    paths = [str(TOOLS), str(TOOLS.parent / "test/conformance"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **campaign.environment()}
    command = [*_COMMAND, campaign.name, str(start), str(count), str(progress)]
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as replies:
        child = subprocess.Popen(
            command, stdout=replies, stderr=errors, env=environment, stdin=subprocess.DEVNULL, cwd=TOOLS.parent
        )
        hung = _watch(child, progress, campaign.seconds)
        replies.seek(0)
        found = [_finding(**json.loads(line)) for line in replies.read().splitlines()]
        seed = int(progress.read_bytes() or start)
        if seed == -1 and child.returncode == 0:
            return None, found
        errors.seek(0)
        said = campaign.obituary(errors.read()[-_TAIL:].decode("utf-8", "replace"))
    what = f"no end after {campaign.seconds:.0f} s" if hung else f"the process died with status {child.returncode}"
    return Finding(seed, f"{what}: {said[:200]}", campaign.is_upstream(campaign.make(seed))), found


def _finding(seed: int, what: str) -> Finding:
    return Finding(seed, what.removeprefix(_UPSTREAM), what.startswith(_UPSTREAM))


def _watch(child: subprocess.Popen, progress: Path, seconds: float) -> bool:
    """Wait for the end; kill it where one case takes longer than `seconds`. The first includes the start."""
    seen, since = b"", time.monotonic()
    while True:
        try:
            child.wait(0.2)
            return False
        except subprocess.TimeoutExpired:
            now = progress.read_bytes()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > seconds + _STARTING * (seen == b""):
                child.kill()
                child.wait()
                return True


def grouped(findings: list[Finding]) -> list[tuple[Finding, int]]:
    """One finding of each kind, with how many there are, the most frequent first."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.signature, []).append(finding)
    return sorted(((group[0], len(group)) for group in kinds.values()), key=lambda pair: -pair[1])
