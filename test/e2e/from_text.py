# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Job for a fresh process: `from_text.py FOLDER` compiles FOLDER/kernels.mlir with FOLDER/weights.npz, and runs it.

There is no model: `onnx` and the front end cannot be imported. Results go to FOLDER/outputs.npz.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    """Compile the text, run it on FOLDER/inputs.npz."""
    sys.modules["onnx"] = None  # type: ignore[assignment]
    sys.modules["tilewright.frontend"] = None  # type: ignore[assignment]
    import tilewright as tw

    with np.load(folder / "weights.npz") as weights, np.load(folder / "inputs.npz") as inputs:
        model = tw.compile((folder / "kernels.mlir").read_text(), "cpu", threads=2, weights=dict(weights))
        np.savez(folder / "outputs.npz", *model(*inputs.values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
