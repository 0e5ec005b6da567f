# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pool of compile workers: persistent processes that turn kernels into object code, or PTX.

They start while the front end still works, so that their imports cost no time; they live as long as the process. When
LLVM aborts in one, the kernel's job fails with an :class:`InternalError` and the worker is started anew.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tilewright.core import config
from tilewright.core.errors import InternalError
from tilewright.core.protocol import receive, send

#: What is told the name and the code of each job that is done.
Ready = Callable[[str, bytes], None]

_STDERR_TAIL = 4000
_MOST_WORKERS = 32


@dataclass(frozen=True)
class Job:
    """One compilation: a module of the LLVM dialect, for a CPU or GPU; `code` is one of `worker.CODES`."""

    name: str
    module: bytes
    cpu: str
    features: str
    opt_level: int = 3
    code: str = "object"


class Worker:
    """One worker process. Used by one thread at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen | None = None
        self._errors: IO[bytes] | None = None

    def start(self) -> None:
        """Start the process if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._errors = tempfile.TemporaryFile()
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # The folder that the user is in must not shadow modules.
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        )

    def run(self, job: Job) -> bytes:
        """Compile one job.

        Raises:
            InternalError: LLVM refused the kernel, or the worker died of it.
        """
        header = {"cpu": job.cpu, "features": job.features, "opt_level": job.opt_level, "code": job.code}
        answer = self.ask(header, job.module)
        if answer is None:
            raise _failure(job, f"the compile worker died ({self._obituary()})")
        if not answer[0]["ok"]:
            raise _failure(job, answer[0]["error"])
        return answer[1]

    def survives(self, text: bytes) -> str | None:
        """Parse a module: None, or how the process died of it."""
        return None if self.ask({"only": "parse"}, text) is not None else self._obituary()

    def ask(self, header: dict, payload: bytes) -> tuple[dict, bytes] | None:
        """The answer, or None where the process died of the request."""
        answer = self._ask_once(header, payload)
        if answer is None and self._ended_in_peace():
            answer = self._ask_once(header, payload)  # it had just left, idle for too long
        return answer

    def _ask_once(self, header: dict, payload: bytes) -> tuple[dict, bytes] | None:
        self.start()
        assert self._process is not None
        try:
            send(self._process.stdin, header, payload)
            return receive(self._process.stdout)
        except OSError:
            return None

    def _ended_in_peace(self) -> bool:
        assert self._process is not None
        return self._process.wait() == 0

    def _obituary(self) -> str:
        assert self._process is not None and self._errors is not None
        code = self._process.wait()
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _STDERR_TAIL))
        words = self._errors.read().decode(errors="replace").strip()
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{cause}; it said: {words}" if words else cause

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            for stream in filter(None, (self._process.stdin, self._process.stdout)):
                with contextlib.suppress(OSError):  # it died with a request half sent
                    stream.close()
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None


class WorkerPool:
    """Workers, and the threads that talk to them.

    Args:
        count: number of processes.
        command: how a worker is started.
    """

    def __init__(self, count: int, command: Sequence[str] | None = None) -> None:
        command = command or [sys.executable, "-m", "tilewright.core.worker"]
        self._workers = [Worker(command) for _ in range(count)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="tilewright-compile")

    def warm_up(self) -> None:
        """Start the processes; does not wait for them."""
        for worker in self._workers:
            worker.start()

    def compile(self, jobs: Sequence[Job], ready: Ready | None = None) -> list[bytes]:
        """Compile all jobs, largest first, and return the object codes in the order of `jobs`.

        Args:
            jobs: what to compile.
            ready: called with the name and the code of each job as soon as it is done, in this thread.

        Raises:
            InternalError: the first job (in order) that failed.
        """
        order = sorted(range(len(jobs)), key=lambda i: -len(jobs[i].module))
        futures = {i: self._threads.submit(self._run, jobs[i]) for i in order}
        if ready is not None:
            names = {future: jobs[i].name for i, future in futures.items()}
            for future in as_completed(names):
                if future.exception() is None:
                    ready(names[future], future.result())
        return [futures[i].result() for i in range(len(jobs))]

    def survives(self, text: bytes) -> str | None:
        """Whether MLIR's parser survives a module: None, or how it died of it in another process."""
        with self._one() as worker:
            return worker.survives(text)

    def ask(self, header: dict, payload: bytes) -> tuple[dict, bytes] | None:
        """A worker's answer to a request, or None where it died of it; see worker.py."""
        with self._one() as worker:
            return worker.ask(header, payload)

    def _run(self, job: Job) -> bytes:
        with self._one() as worker:
            return worker.run(job)

    @contextlib.contextmanager
    def _one(self) -> Iterator[Worker]:
        worker = self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End all processes."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()


_lock = threading.Lock()
_pool: tuple[int, WorkerPool] | None = None


def shared_pool() -> WorkerPool:
    """Return this process's pool; its workers are started. After a fork the child makes its own."""
    global _pool
    with _lock:
        if _pool is None or _pool[0] != os.getpid():
            count = config.compile_workers.get() or min(_MOST_WORKERS, len(os.sched_getaffinity(0)))
            _pool = (os.getpid(), WorkerPool(count))
            atexit.register(_close, *_pool)
        _pool[1].warm_up()
        return _pool[1]


def _close(pid: int, pool: WorkerPool) -> None:
    if pid == os.getpid():
        pool.close()


def _failure(job: Job, message: str) -> InternalError:
    """Leave the kernel's IR in a file, so that one command shows the failure again."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-failed-"))
    file = folder / "kernel.mlir"
    file.write_bytes(job.module)
    command = [sys.executable, "-m", "tilewright.core.worker", "--code", job.code, "--cpu", job.cpu]
    command.append(f"--features={job.features}")
    return InternalError(
        f"no code for kernel '{job.name}': {message}",
        location=job.name,
        ir=job.module.decode(errors="replace"),
        command=shlex.join([*command, str(file)]),
    )
