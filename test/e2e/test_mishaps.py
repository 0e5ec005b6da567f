# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full disks, killed processes, processes that share a cache, too little memory: an error, and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import models
import tilewright as tw

ROOT = Path(__file__).resolve().parents[2]
MODEL = "mlp_tiny"


def start(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Run code in a fresh process."""
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'test'}", **environment}
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)


COMPILE = """
    import sys, tilewright as tw
    model = tw.compile(sys.argv[1], threads=1)
    model.save(sys.argv[2])
    print("done", flush=True)
"""


@pytest.mark.slow
def test_processes_that_share_a_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    names = [tmp_path / f"{i}.tw" for i in range(4)]
    children = [start(COMPILE, models.path(MODEL), name, TILEWRIGHT_CACHE_DIR=str(cache)) for name in names]
    for child in children:
        output, errors = child.communicate(timeout=120)
        assert output == "done\n", errors
    assert len({name.read_bytes() for name in names}) <= 4
    assert len([path for path in (cache / "compiled").iterdir() if not path.name.startswith(".")]) == 1
    assert not list((cache / "compiled").glob(".*")) and not list((cache / "kernels").glob(".*"))
    inputs = [np.ones(spec.shape, np.float32) for spec in tw.load(names[0]).inputs]
    first, *rest = [tw.load(name)(*inputs)[0] for name in names]
    assert all(np.array_equal(first, other) for other in rest)


AGAIN = """
    import sys, shutil, tilewright as tw
    model = tw.compile(sys.argv[1], threads=1)
    print("ready", flush=True)
    while True:
        model.save(sys.argv[2])
        model.save(sys.argv[3])
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.05])
def test_a_process_killed_while_it_saves(delay: float, tmp_path: Path) -> None:
    """What stands under the name afterwards is whole."""
    archive, folder = tmp_path / "model.tw", tmp_path / "model"
    child = start(AGAIN, models.path(MODEL), archive, folder)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    time.sleep(0.05 + delay)
    child.kill()
    child.communicate()
    for path in (archive, folder):
        if path.exists() and not (path == folder and not (folder / "manifest.json").exists()):
            tw.load(path)


@pytest.mark.parametrize("delay", [0.3, 0.6, 0.75])
def test_a_process_killed_while_it_compiles(delay: float, tmp_path: Path) -> None:
    """The cache it leaves serves the next process."""
    cache = {"TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    child = start(COMPILE, models.path(MODEL), tmp_path / "a.tw", **cache)
    time.sleep(delay)
    child.kill()
    child.communicate()
    output, errors = start(COMPILE, models.path(MODEL), tmp_path / "b.tw", **cache).communicate(timeout=120)
    assert output == "done\n", errors


FULL = """
    import resource, signal, sys, tilewright as tw
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if sys.argv[3] == "save":
        model = tw.compile(sys.argv[1], threads=1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    try:
        (model.save(sys.argv[2]) if sys.argv[3] == "save" else tw.compile(sys.argv[1], threads=1))
    except tw.UserError as error:
        print(error)
"""


@pytest.mark.parametrize("what", ["save", "compile"])
def test_a_full_disk(what: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for it."""
    cache = tmp_path / "cache"
    child = start(FULL, models.path(MODEL), tmp_path / "model.tw", what, TILEWRIGHT_CACHE_DIR=str(cache))
    output, errors = child.communicate(timeout=120)
    assert "File too large" in output, errors
    assert not list(tmp_path.glob("*.tw")) and not list(tmp_path.glob(".model*"))
    assert not list((cache / "compiled").glob(".*")) and not list((cache / "kernels").glob(".*"))


MEMORY = """
    import resource, sys, numpy as np, tilewright as tw
    model = tw.compile(sys.argv[1], threads=1)
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
    try:
        model(np.ones(1, np.float32))
    except (tw.UserError, MemoryError) as error:
        print(type(error).__name__, error)
"""


def test_too_little_memory(tmp_path: Path) -> None:
    """An arena of gigabytes that cannot be had."""
    text = """
        #id = affine_map<(i, j) -> (i, j)>
        #row = affine_map<(i, j) -> (i)>
        func.func @main(%x: tensor<1xf32>) -> tensor<40000xf32> {
          %zero = arith.constant 0.0 : f32
          %e = tensor.empty() : tensor<40000x40000xf32>
          %big = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0)>, #id],
              iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1xf32>) outs(%e : tensor<40000x40000xf32>) {
          ^bb0(%a: f32, %o: f32):
            %j = linalg.index 1 : index
            %k = arith.index_cast %j : index to i32
            %f = arith.sitofp %k : i32 to f32
            %s = arith.addf %a, %f : f32
            linalg.yield %s : f32
          } -> tensor<40000x40000xf32>
          %t = tensor.extract_slice %big[0, 7] [40000, 1] [1, 1] : tensor<40000x40000xf32> to tensor<40000xf32>
          return %t : tensor<40000xf32>
        }
    """
    (tmp_path / "large.mlir").write_text(textwrap.dedent(text))
    output, errors = start(MEMORY, tmp_path / "large.mlir", 3 << 30).communicate(timeout=120)
    assert output.startswith(("UserError", "MemoryError")), (output, errors)
