# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environments of the frameworks: `build/zoo-NAME`, made by `tools/zoo setup`, or others that exist already."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "torch": [
        "torch", "torchvision", "transformers", "timm", "onnx", "onnxscript", "onnxruntime", "scikit-learn", "skl2onnx",
        "onnxmltools", "lightgbm", "xgboost",
    ],
    "jax": ["jax", "jax2onnx", "flax", "equinox", "onnx", "onnxruntime"],
    "keras": ["tensorflow-cpu", "keras", "tf2onnx", "onnx", "onnxruntime"],
}  # fmt: skip


def places(given: Sequence[str]) -> dict[str, Path]:
    """The folder of each environment. `given`: NAME=FOLDER of those that are elsewhere.

    Raises:
        ValueError: no environment has this name.
    """
    found = {name: ROOT / f"build/zoo-{name}" for name in PACKAGES}
    for text in given:
        name, _, folder = text.partition("=")
        if name not in found or not folder:
            raise ValueError(f"--env {text}: not NAME=FOLDER with a NAME of {', '.join(found)}")
        found[name] = Path(folder)
    return found


def setup(names: Sequence[str], found: Mapping[str, Path]) -> None:
    """Make the environments that are not there, with pip."""
    for name in names or PACKAGES:
        if not (found[name] / "bin/python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(found[name])], check=True)
        pip = [str(found[name] / "bin/python"), "-m", "pip", "install", "-q", *PACKAGES[name]]
        subprocess.run(pip, check=True)
