# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A peer in a process of its own, driven by JSON lines: `python -m bench.worker PEER THREADS`.

A process per peer keeps thread pools, allocators and crashes apart. Between commands it waits in a read, so that an
idle peer takes no time from the one that is measured.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers import Peer, make


def burst(peer: Peer, seconds: float, least: int) -> list[float]:
    """Seconds per run: `least` runs or as many as fit in `seconds`, after one run that is not counted."""
    peer.run()  # wakes threads and fetches what the other peer evicted
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        peer.run()
        times.append(time.perf_counter() - start)
    return times


def handle(peer: Peer, command: dict[str, Any], threads: int) -> dict[str, Any]:
    """Do one command: load, burst or outputs."""
    if command["do"] == "load":
        inputs = dict(np.load(command["inputs"]))
        start = time.perf_counter()
        peer.load(Path(command["model"]), inputs, threads)
        return {"seconds": time.perf_counter() - start, "version": peer.version()}
    if command["do"] == "burst":
        return {"times": burst(peer, command["seconds"], command["least"])}
    if command["do"] == "outputs":
        peer.run()
        np.savez(command["to"], *peer.outputs())
        return {}
    raise ValueError(f"unknown command {command['do']!r}")


def main() -> None:
    """Answer commands until the input ends. Replies use the original stdout; libraries that print go to stderr."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peer, threads = None, int(sys.argv[2])
    for line in sys.stdin:
        try:
            peer = peer or make(sys.argv[1])
            reply = handle(peer, json.loads(line), threads)
        except Exception as error:  # reported to the parent, which decides
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
