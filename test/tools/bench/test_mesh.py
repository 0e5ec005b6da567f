# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/bench/run mesh`: what it prints and writes; its figures: `test/python/plan/mesh/test_published.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.mesh.figure9 import ALGORITHMS, SIDES, rows
from bench.mesh.main import main
from bench.mesh.published import CAPACITIES, ENERGY, MODELS, REQUESTS

RESULTS = Path(__file__).resolve().parents[3] / "tools" / "bench" / "results"


def test_capacities(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A table is printed with its preset, and written; a shift holds as many times more as there are rows."""
    assert main(["--table", "capacities", "--json", str(tmp_path / "out.json")]) == 0
    said = capsys.readouterr().out
    assert "Simulated (T1) on wse2, preset calibrated" in said
    assert "capacity 8B shift" in said
    rows = json.loads((tmp_path / "out.json").read_text())["tables"]["capacities"]
    for (rows_of_grid, *_), concat, shift in zip(CAPACITIES.values(), rows[::2], rows[1::2], strict=True):
        assert shift["predicted"] // rows_of_grid == concat["predicted"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--table", "figure"], "no table figure"),
        (["--table", "figure9_180", "--algorithms", "canon"], "no algorithm canon: take some of meshgemm, cannon"),
    ],
)
def test_names_that_there_are_not(wrong: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(wrong)
    assert said in capsys.readouterr().err


def test_committed_results():
    """All figures are there; rates within 5 %, below the ideal machine's; energies too; limits of time hold."""
    tables = json.loads(max(RESULTS.glob("mesh-*.json")).read_text())["tables"]
    assert len(tables["rates"]) == sum(len(model.prefill) + len(model.decode) for model in MODELS.values())
    assert len(tables["requests"]) == sum(len(published) for *_, published in REQUESTS.values())
    assert len(tables["energies"]) == sum(len(others) for others in ENERGY.values())
    for row in tables["rates"]:
        assert abs(row["error_percent"]) < 5
        assert row["ideal"] > row["published"]
    assert all(abs(row["error_percent"]) < 5 for row in tables["energies"])
    assert len(tables["transitions"]) == len(REQUESTS)
    assert all(row.get("seconds", row.get("gibibytes")) < row["limit"] for row in tables["speed"])
    for row in tables["products"]:
        assert row["meshgemm"] <= min(row["cannon"], row["summa"], row["all_gather"])


def test_committed_products_of_figure_9():
    """MeshGEMM is never behind; in rendezvous and lock-step it is ahead of what is not bound by its multiply-adds."""
    tables = json.loads(max(RESULTS.glob("figure9-*.json")).read_text())["tables"]
    assert [len(tables[f"figure9_{side}"]) for side in SIDES] == [9] * 4
    every = [row for table in tables.values() for row in table]
    assert all(name in row for row in every for name in ALGORITHMS)
    for row in every:
        others = {name: row[name] for name in ALGORITHMS if name != "meshgemm"}
        assert row["meshgemm"] <= min(others.values()), row
        if not row["what"].endswith("dataflow"):
            waiting = [theirs for theirs in others.values() if theirs > 1.01 * row["multiply_adds"]]
            assert all(row["meshgemm"] < theirs for theirs in waiting), row


@pytest.mark.slow
@pytest.mark.parametrize("side", [180, 360])
def test_products_of_figure_9_today(side: int):
    """Of the two algorithms whose rounds are alike, as committed; the others take minutes."""
    tables = json.loads(max(RESULTS.glob("figure9-*.json")).read_text())["tables"]
    ours = rows(side, ["meshgemm", "cannon"])
    assert ours == [{key: row[key] for key in ours[0]} for row in tables[f"figure9_{side}"]]
