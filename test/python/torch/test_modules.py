# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules of `tools/zoo torch`: three sizes each, as without torch.compile.

Skipped where torch, onnxscript, torchvision or transformers is missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
for package in ("onnxscript", "torchvision", "transformers"):
    pytest.importorskip(package)

from zoo_models.torch_modules.cases import CASES  # noqa: E402
from zoo_models.torch_modules.one import difference, measured  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_three_sizes_without_a_recompilation(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Results equal those without torch.compile, in their form; the first size compiles all that the others run."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    with torch.inference_mode():
        row = measured(name)
    assert row["status"] == "ok", row


def test_results_of_other_forms_differ() -> None:
    x = torch.ones(2)
    assert difference({"a": x, "b": [x, None]}, {"a": x, "b": [x + 1, None]}) == 0.5
    for wrong in ((x, x), x.double(), torch.ones(3)):
        with pytest.raises(ValueError, match="differ in their form"):
            difference(wrong, x)
