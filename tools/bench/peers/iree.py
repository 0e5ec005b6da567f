# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE: llvm-cpu for this host with data tiling, local-task with one worker per thread."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import iree.runtime
import numpy as np

from bench.peers import Peer

# Without the first limit BERT does not compile, without the stack of workers ViT crashes (in version 3.13).
COMPILE = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    "--iree-llvmcpu-stack-allocation-limit=262144",
)
_VERSION = importlib.metadata.version("iree-base-compiler")
WORKER_STACK = "--task_worker_stack_size=4194304"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["?"]
        raise RuntimeError(f"{Path(command[0]).name} failed: {lines[0]}")


def compiled(model: Path) -> Path:
    """The program for a model, kept beside it."""
    about = repr((model.name, COMPILE, _VERSION))
    file = model.with_name(f"iree-{hashlib.sha256(about.encode()).hexdigest()[:16]}.vmfb")
    if not file.exists():
        tools, text, part = Path(sys.executable).parent, file.with_suffix(".mlir"), file.with_suffix(".part")
        _run(str(tools / "iree-import-onnx"), str(model), "-o", str(text), "--opset-version", "17")
        _run(str(tools / "iree-compile"), str(text), "-o", str(part), *COMPILE)
        text.unlink()
        part.replace(file)
    return file


class Iree(Peer):
    """Inputs stay on the device; results are new buffers in each run (IREE has no preset outputs in Python)."""

    settings = f"{' '.join(COMPILE[2:])}, local-task, {WORKER_STACK}"

    def version(self) -> str:
        """The package's version."""
        return _VERSION

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Compile (or take the kept program) and load it."""
        file = compiled(model)
        iree.runtime.flags.parse_flags(WORKER_STACK, f"--task_topology_group_count={threads}")
        config = iree.runtime.Config("local-task")
        module = iree.runtime.VmModule.mmap(config.vm_instance, str(file))
        program = iree.runtime.load_vm_module(module, config)
        names = [name for name in module.function_names if not name.startswith("__") and "$async" not in name]
        self._call = getattr(program, names[0])
        self._inputs = [iree.runtime.asdevicearray(config.device, array) for array in inputs.values()]
        self.run()

    def run(self) -> None:
        """Invoke the function."""
        self._results = self._call(*self._inputs)

    def outputs(self) -> list[np.ndarray]:
        """The latest results, copied to the host."""
        results = self._results if isinstance(self._results, tuple | list) else [self._results]
        return [result.to_host() for result in results]


PEER = Iree
