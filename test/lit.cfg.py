"""How lit runs the .mlir tests: see tools/rationale/building.md."""

# lit executes this file with these names defined.
# ruff: noqa: F821
import os
import shutil
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).resolve().parent.parent
config.name = "tilewright"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
# Hand-written kernels and inputs of other tests, not tests themselves.
config.excludes = ["Inputs", "fixtures", "models", "e2e"]
config.test_source_root = str(root / "test")
config.test_exec_root = str(root / "build" / "test")


def llvm_tools() -> str:
    """The folder of FileCheck and `not`: LLVM_TOOLS_DIR, or Debian's."""
    return os.environ.get("LLVM_TOOLS_DIR", "/usr/lib/llvm-22/bin")


folders = [str(Path(sys.executable).parent), llvm_tools(), os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(folders)
for name in ("HOME", "TILEWRIGHT_CACHE_DIR", "LLVM_TOOLS_DIR", "TILEWRIGHT_HIDE_FEATURES"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["FILECHECK_OPTS"] = "--enable-var-scope"
# glibc fills memory that is freed: an operation that is used after its end then fails in each run, not in one of many.
config.environment["MALLOC_PERTURB_"] = "165"

# Debian names LLVM's tools with the version behind (FileCheck-22); elsewhere they stand without it.
if not shutil.which("FileCheck-22", path=config.environment["PATH"]):
    config.substitutions.append((r"\bFileCheck-22\b", "FileCheck"))
for tool in ("ptxas", "nvcc"):
    if shutil.which(tool):
        config.available_features.add(tool)
