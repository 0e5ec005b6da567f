# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR at every border between phases is text that `tile-opt` takes up, to the same end as `tilewright.compile`."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import models
import tilewright as tw
from tilewright.core.options import PHASES
from tilewright.passes.pipeline import Pipeline
from tilewright.pipelines import cpu, cuda

BORDERS = PHASES[: PHASES.index("lower") + 1]
PIPELINES = {"cpu": cpu.PIPELINE, "cuda:sm_90a": cuda.PIPELINE}
CASES = [
    ("bert_tiny", "cpu"),
    ("lstm_tiny", "cpu"),
    ("lstm_tiny", "cuda:sm_90a"),
    *(pytest.param((name, "cuda:sm_90a"), marks=pytest.mark.slow) for name in ("bert_tiny", "minilm")),
    pytest.param(("minilm", "cpu"), marks=pytest.mark.slow),
]
#: Constants of more bytes are data: they lie beside the module. Elements have four bytes or more.
SMALL = 256


@dataclass(frozen=True)
class Borders:
    """A file per border of a model, and what was compiled for."""

    files: dict[str, Path]
    target: str

    @property
    def kind(self) -> str:
        """What the flags of its phases begin with."""
        return self.target.partition(":")[0]

    @property
    def pipeline(self) -> Pipeline:
        """All phases."""
        return PIPELINES[self.target]

    def text(self, border: str) -> str:
        """The IR after a phase."""
        return self.files[border].read_text().strip()


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1].partition(':')[0]}")
def borders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Borders:
    """The borders of a model; tilewright.compile returns the last one."""
    name, target = request.param
    folder = tmp_path_factory.mktemp("borders")
    text = tw.compile(str(models.path(name)), target=target, stop_after="lower", dump_ir=folder)
    found = Borders({name: folder / f"{number}-{name}.mlir" for number, name in enumerate(BORDERS)}, target)
    assert found.text("lower") == text.strip()
    return found


def tile_opt(file: Path, *arguments: str) -> str:
    """What tile-opt, in a process of its own, makes of a file."""
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def bare(text: str) -> str:
    """A module without what dumps write for compilations that begin there: it names the border, and its weights."""
    return re.sub(r", tile\.(signature = \{.*?\}|weights = \"[^\"]*\")(?=, tile\.|\} \{\n)", "", text)


def same(left: str, right: str) -> bool:
    """Equality but for what dumps write, without pytest's comparison of megabytes."""
    return bare(left) == bare(right)


def with_sorted_sums(text: str) -> list[str]:
    """Lines of a module; MLIR may order the terms of a sum in an affine map anew when it parses them."""
    return [" + ".join(sorted(_terms(line))) if line.startswith("#map") else line for line in text.splitlines()]


def _terms(line: str) -> list[str]:
    return line.replace("(", " ").replace(")", " ").replace(">", " ").replace("-", " ").split()


@pytest.mark.parametrize("border", BORDERS)
def test_the_rest_of_the_pipeline_continues_from_the_text(border: str, borders: Borders) -> None:
    rest = borders.pipeline if border == "import" else borders.pipeline.after(border)
    arguments = [] if border == "lower" else [f"--pass-pipeline={rest}"]
    assert same(tile_opt(borders.files[border], *arguments), borders.text("lower"))


@pytest.mark.parametrize("border", BORDERS)
def test_the_text_parses_verifies_and_prints_as_it_was(border: str, borders: Borders) -> None:
    printed = tile_opt(borders.files[border], "--verify-each")
    assert with_sorted_sums(printed) == with_sorted_sums(borders.text(border))


@pytest.mark.slow
def test_phases_by_name_lead_from_border_to_border(borders: Borders) -> None:
    for before, after in zip(BORDERS, BORDERS[1:], strict=False):
        made = tile_opt(borders.files[before], f"--tile-{borders.kind}-{after}")
        if after == "tile":  # @init is still there: it has no reader, but only the driver can run it
            made = re.sub(r"(?ms)^  func\.func private @init\(.*?^  }\n", "", made)
        assert same(made, borders.text(after)), f"tile-opt makes another text of phase {after}"


def test_the_whole_pipeline_gives_the_same_code(borders: Borders) -> None:
    expected = borders.text("lower")
    assert same(tile_opt(borders.files["import"], f"--pass-pipeline={borders.pipeline}"), expected)
    assert same(tile_opt(borders.files["import"], f"--tile-{borders.kind}"), expected)


def test_weights_are_not_text(borders: Borders) -> None:
    for border, file in borders.files.items():
        text = file.read_text()
        assert "dense_resource" not in text and "dialect_resources" not in text
        constants = re.findall(r"dense<([^<>]*)>", text)
        assert not any('"' in constant for constant in constants), f"bytes as a string after phase {border}"
        largest = max((4 * (constant.count(",") + 1) for constant in constants), default=0)
        assert largest <= SMALL, f"a constant of {largest} bytes after phase {border}"
        # Signatures list the weights by name; nothing grows with their sizes.
        assert max(map(len, text.splitlines())) < 20_000
        assert len(text) < 2_000_000
