# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine's limits: all of them once, and one of them again and again beside what is set against it.

Memory that others use, too, has another bandwidth each minute. So a row that must reach a part of a limit has it
measured in the bursts of its own run, in alternation.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from bench.hold import Hold


class Meter:
    """Measures one limit whenever it is asked to. Use as a context manager: it ends the process."""

    def __init__(self, program: Path, threads: int, name: str) -> None:
        self._process = subprocess.Popen(
            [program, str(threads), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    @property
    def pid(self) -> int:
        """The id of the process that measures."""
        return self._process.pid

    def seconds(self) -> float:
        """The least time of 10^9 operations, or bytes. Raises OSError where the process died."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\n")
        words = self._process.stdout.readline().split()
        if not words:
            raise OSError(f"bench-peak died with exit code {self._process.wait()}")
        return 1 / float(words[1])

    def __enter__(self) -> Meter:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Limits:
    """Builds peak.c for as long as the context lasts, and measures everything once.

    Attributes:
        rates: per number of threads: {"fma_f32": GFLOP/s, "copy_...": GB/s}; or {"skipped": why}.
    """

    def __init__(self, threads: Iterable[int], hold: Sequence[str] = (), march: str = "native") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-peak-")
        self.rates: dict[str, object] = {}
        program = build_peak(Path(self._folder.name), march)
        if isinstance(program, str):
            self._program, self.rates["skipped"] = None, program
            return
        self._program = program
        for count in threads:
            with Hold(hold):
                text = subprocess.run([program, str(count)], capture_output=True, text=True, check=True).stdout
            self.rates[str(count)] = {name: float(value) for name, value, _ in map(str.split, text.splitlines())}

    def __enter__(self) -> Limits:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the program."""
        self._folder.cleanup()

    def rate(self, name: str, threads: int) -> float | None:
        """The limit as measured at the start."""
        rates = self.rates.get(str(threads))
        return rates.get(name) if isinstance(rates, dict) else None

    def meter(self, name: str, threads: int) -> Meter | None:
        """What measures the limit again; None where it could not be measured at the start."""
        return Meter(self._program, threads, name) if self._program and self.rate(name, threads) else None


def build_peak(folder: Path, march: str = "native") -> Path | str:
    """Compile peak.c there, for a CPU by its name; a string says why it could not be done."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang-22", "clang"))), None)
    if compiler is None:
        return "no C compiler found (cc, gcc, clang-22, clang)"
    program = folder / "bench-peak"  # as the workers are named while they are timed
    source = str(Path(__file__).with_name("peak.c"))
    flags = ["-O3", f"-march={march}", "-ffp-contract=fast", "-pthread"]
    done = subprocess.run([compiler, *flags, source, "-o", str(program)], capture_output=True, text=True)
    return program if done.returncode == 0 else f"{compiler} failed: {done.stderr.strip().splitlines()[:1]}"
