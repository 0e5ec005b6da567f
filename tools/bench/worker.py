# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A peer in a process of its own, driven by JSON lines: `python -m bench.worker PEER THREADS`.

A process per peer keeps thread pools, allocators and crashes apart. Between commands it waits in a read, so that an
idle peer takes no time from the one that is measured.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench import arrays
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
    """Do one command: load, outputs, name (of the process) or burst."""
    if command["do"] == "load":
        inputs = arrays.load(Path(command["inputs"]))
        start = time.perf_counter()
        peer.accuracy, peer.target = command.get("accuracy", "exact"), command.get("target", "cpu")
        peer.cover, peer.program = command.get("cover", ""), command.get("program", "")
        peer.without, peer.padded = tuple(command.get("without", ())), command.get("padded", "")
        peer.load(Path(command["model"]), inputs, threads, command.get("precision", "f32"))
        took = time.perf_counter() - start
        about = {"version": peer.version(), "settings": peer.settings, "expected": peer.expected}
        return {"seconds": took, **about}
    if command["do"] == "burst":
        return {"times": burst(peer, command["seconds"], command["least"])}
    if command["do"] == "name":
        rename(command["name"])
        return {}
    if command["do"] == "outputs":
        peer.run()
        arrays.save(Path(command["to"]), {str(i): array for i, array in enumerate(peer.outputs())})
        return {}
    raise ValueError(f"unknown command {command['do']!r}")


def rename(name: str) -> None:
    """Give the process a name that says what it is (on Linux; elsewhere nothing happens)."""
    try:
        ctypes.CDLL(None).prctl(15, name.encode()[:15], 0, 0, 0)  # 15 = PR_SET_NAME
    except (OSError, AttributeError):
        pass


def main() -> None:
    """Answer commands until the input ends. Replies use the original stdout; libraries that print go to stderr."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peer, threads = None, int(sys.argv[2])
    for line in sys.stdin:
        try:
            peer = peer or make(sys.argv[1])
            reply = handle(peer, json.loads(line), threads)
        except ModuleNotFoundError as error:
            reply = {"missing": str(error)}
        except Exception as error:  # reported to the parent, which decides
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
