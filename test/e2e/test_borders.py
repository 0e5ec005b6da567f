# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR at every border between phases is text that `tile-opt` takes up, to the same end as `tilewright.compile`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import models
import tilewright as tw
from tilewright.core.options import PHASES
from tilewright.pipelines.cpu import PIPELINE

BORDERS = PHASES[: PHASES.index("lower") + 1]
NAMES = ["bert_tiny", "lstm_tiny", pytest.param("minilm", marks=pytest.mark.slow)]
#: Constants of more bytes are data: they lie beside the module. Elements have four bytes or more.
SMALL = 256


@pytest.fixture(scope="module", params=NAMES)
def borders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file per border of a model, and that tilewright.compile returns the last one."""
    folder = tmp_path_factory.mktemp("borders")
    text = tw.compile(str(models.path(request.param)), target="cpu", stop_after="lower", dump_ir=folder)
    files = {name: folder / f"{number}-{name}.mlir" for number, name in enumerate(BORDERS)}
    assert files["lower"].read_text().strip() == text.strip()
    return files


def tile_opt(file: Path, *arguments: str) -> str:
    """What tile-opt, in a process of its own, makes of a file."""
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def same(left: str, right: str) -> bool:
    """Equality, without pytest's comparison of megabytes."""
    return left == right


def with_sorted_sums(text: str) -> list[str]:
    """Lines of a module; MLIR may order the terms of a sum in an affine map anew when it parses them."""
    return [" + ".join(sorted(_terms(line))) if line.startswith("#map") else line for line in text.splitlines()]


def _terms(line: str) -> list[str]:
    return line.replace("(", " ").replace(")", " ").replace(">", " ").replace("-", " ").split()


@pytest.mark.parametrize("border", BORDERS)
def test_the_rest_of_the_pipeline_continues_from_the_text(border: str, borders: dict[str, Path]) -> None:
    rest = [] if border == "lower" else [f"--pass-pipeline={_rest(border)}"]
    assert same(tile_opt(borders[border], *rest), borders["lower"].read_text().strip())


@pytest.mark.parametrize("border", BORDERS)
def test_the_text_parses_verifies_and_prints_as_it_was(border: str, borders: dict[str, Path]) -> None:
    printed = tile_opt(borders[border], "--verify-each")
    assert with_sorted_sums(printed) == with_sorted_sums(borders[border].read_text().strip())


def test_phases_by_name_lead_from_border_to_border(borders: dict[str, Path]) -> None:
    for before, after in zip(BORDERS, BORDERS[1:], strict=False):
        made = tile_opt(borders[before], f"--tile-cpu-{after}")
        if after == "tile":  # @init is still there: it has no reader, but only the driver can run it
            made = re.sub(r"(?ms)^  func\.func private @init\(.*?^  }\n", "", made)
        assert same(made, borders[after].read_text().strip()), f"tile-opt makes another text of phase {after}"


def test_the_whole_pipeline_gives_the_same_code(borders: dict[str, Path]) -> None:
    expected = borders["lower"].read_text().strip()
    whole = str(PIPELINE)
    assert same(tile_opt(borders["import"], f"--pass-pipeline={whole}"), expected)
    assert same(tile_opt(borders["import"], "--tile-cpu"), expected)


def test_weights_are_not_text(borders: dict[str, Path]) -> None:
    for border, file in borders.items():
        text = file.read_text()
        assert "dense_resource" not in text and "dialect_resources" not in text
        constants = re.findall(r"dense<([^<>]*)>", text)
        assert not any('"' in constant for constant in constants), f"bytes as a string after phase {border}"
        largest = max((4 * (constant.count(",") + 1) for constant in constants), default=0)
        assert largest <= SMALL, f"a constant of {largest} bytes after phase {border}"
        # Signatures list the weights by name; nothing grows with their sizes.
        assert max(map(len, text.splitlines())) < 20_000
        assert len(text) < 2_000_000


def _rest(border: str) -> str:
    whole = PIPELINE
    return str(whole if border == "import" else whole.after(border))
