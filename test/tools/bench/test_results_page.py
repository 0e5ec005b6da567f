# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Result files and the page that is made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import make_docs
from bench import records
from bench.results_page import PAGE, RESULTS, page


def _row(case: str, ratio: float, status: str = "ok") -> dict:
    """A row as `Row.as_dict` has it, as far as the page reads it."""
    versions = {"tilewright": "0.1.0", "openvino": "2026.4-build"}
    numbers = {"ours_ms": 2.0, "peer_ms": 2.0 / ratio, "ratio": ratio, "spread": 0.125}
    return {"case": case, "threads": 1, "peer": "openvino", "status": status, "versions": versions, **numbers}


def _run(folder: Path, name: str, hour: int, *rows: dict) -> None:
    machine = {"cpu": "Some CPU", "family_model": "1/2", "cores": 2}
    about = {"suite": "cpu-ops", "date": f"2026-01-02T{hour:02}:30:00+00:00", "machine": machine}
    records.write(folder / name, {**about, "limits": {"1": {"fma_f32": 100.4}}, "rows": rows})


def test_runs_of_a_day_form_a_table_with_means_in_their_order(tmp_path: Path) -> None:
    _run(tmp_path, "b.json", 9, _row("a", 0.5), _row("b_f16", 2.0, "slow"))
    _run(tmp_path, "a.json", 10, _row("a", 0.98), _row("b_f16", 0.5))
    text = page(tmp_path)
    assert "## cpu-ops, Some CPU, 2026-01-02" in text
    assert "| all cases | 1 | 1.00, 0.70 |" in text
    assert "| without cases of f16 | 1 | 0.50, 0.98 |" in text
    assert "| a | 1 | 2 | 2.04 (OpenVINO) | 0.50, 0.98 | 0.74 | 12% |" in text
    assert "| b_f16 | 1 | 2 | 4 (OpenVINO) | 2.00, 0.50 | 1.25 | 12% |" in text, "a row that missed its target counts"


def test_gains_over_own_forms_stand_in_a_table_of_their_own(tmp_path: Path) -> None:
    own = {"gains": {"own dense": 1.5, "own mask alone": 1.1}, "gain_targets": {"own dense": 1.4}}
    _run(tmp_path, "a.json", 9, {**_row("ew_2_4", 0.5), **own}, {**_row("none", 0.5), "gains": {}, "gain_targets": {}})
    alone = {**_row("sweep", 1.0), **own, "ratio": None, "peer": None, "peer_ms": None}
    _run(tmp_path, "b.json", 10, {**_row("ew_2_4", 0.25), **own, "spread": 0.07, "gains": {"own dense": 1.7}}, alone)
    text = page(tmp_path)  # `~`: noisy
    assert "| ew_2_4 | 1 | 2 | dense | 1.50~, 1.70 | 1.60 | 1.40 | 8 (OpenVINO) | 0.25 |" in text
    assert "| sweep | 1 | 2 | mask alone | 1.10~ | 1.10 |  |  | |" in text
    assert "| none | 1 | 2 | | | | | 4 (OpenVINO) | 0.50 |" in text
    record = json.loads((tmp_path / "b.json").read_text())
    records.write(tmp_path / "c.json", {**record, "target": "cpu:x86-64-v3"})
    assert "## cpu-ops for cpu:x86-64-v3, Some CPU, 2026-01-02" in page(tmp_path)


def test_a_row_with_wrong_results_has_no_numbers(tmp_path: Path) -> None:
    _run(tmp_path, "a.json", 9, _row("a", 0.5, "wrong"), _row("b", 0.5))
    assert "| a | 1 | wrong | | | | |" in page(tmp_path)


def test_the_page_says_in_how_many_rows_others_were_busy(tmp_path: Path) -> None:
    _run(tmp_path, "a.json", 9, {**_row("a", 0.5), "others": 1.9}, {**_row("b", 0.5), "others": 0.05}, _row("c", 0.5))
    _run(tmp_path, "b.json", 10, {**_row("a", 0.5), "others": 0.0})
    text = page(tmp_path)
    assert "- `a.json`: 09:30 UTC, 3 cases; other processes kept cores busy in 1 of 3 rows\n" in text
    assert "- `b.json`: 10:30 UTC, `a` alone\n" in text


def test_counts_of_launches_are_a_table_of_the_newest_file(tmp_path: Path) -> None:
    few = {"launches": 1, "waits": 0, "recordable": True}
    row = {"case": "loop_b1", "arch": "sm_90a", "before": {"launches": 70, "waits": 9, "recordable": False}}
    records.write(tmp_path / "control-counts-2026-01-01.json", {"rows": [{**row, "after": row["before"]}]})
    records.write(tmp_path / "control-counts-2026-01-02.json", {"rows": [{**row, "after": few}]})
    text = page(tmp_path)
    assert "| loop_b1 | sm_90a | 70 | 1 | 9 | 0 | yes |" in text
    assert "| loop_b1 | sm_90a | 70 | 70 |" not in text


def test_pruned_models_are_a_table_of_the_newest_machine(tmp_path: Path) -> None:
    row = {"case": "bert", "part": 0.5, "threads": 1, "target": 1.3, "error": 3e-7, "status": "ok"}
    row |= {"ratio": 1.25, "ratios": [1.2, 1.25, 1.5]}
    given = {"target": "cpu", "date": "2026-01-02T09:30:00+00:00", "machine": {"cpu": "Some CPU", "flags": ["avx2"]}}
    records.write(tmp_path / "cpu-pruned-2.json", {**given, "rows": [row, {**row, "case": "other", "status": "wrong"}]})
    other = {"date": "2026-01-02T08:30:00+00:00", "machine": {"cpu": "Other CPU", "flags": []}}
    records.write(tmp_path / "cpu-pruned-3.json", {**given, **other, "rows": [{**row, "threads": 7}]})
    text = page(tmp_path)
    assert "## Pruned models, 2026-01-02" in text and "Some CPU (avx2)" in text
    assert "| bert | 0.5 | 1 | 1.25 | 1.20 to 1.50 | 1.3 | 3e-07 |" in text
    assert "| other | 0.5 | 1 | wrong | | | 3e-07 |" in text
    assert "| bert | 0.5 | 7 |" not in text, "rows of another CPU"


def test_the_committed_page_is_the_one_of_the_committed_files() -> None:
    assert PAGE.read_text() == make_docs.folded(make_docs.measurements())


def test_records_come_back_as_written_and_fill_their_lines(tmp_path: Path) -> None:
    record = {"rows": [{"bursts": [n / 7 for n in range(40)], "case": "a", "none": None, "empty": {}}] * 2, "n": [1]}
    records.write(tmp_path / "a.json", record)
    text = (tmp_path / "a.json").read_text()
    assert json.loads(text) == record
    assert max(map(len, text.splitlines())) <= records.WIDTH
    assert len(text.splitlines()) < 30


def test_committed_files_are_filled() -> None:
    for path in RESULTS.glob("*.json"):
        assert path.read_text() == records.text_of(json.loads(path.read_text())), path


def test_no_record_names_folders_of_its_machine() -> None:
    """Neither do new ones, whatever command keeps other work away."""
    words = ["--hold", "flock /tmp/a/b.lock", "--hold=/opt/hold", "/bin/env", "cpu:x86-64-v3", "tools/bench/run", "a/b"]
    assert records.without_folders(words) == [
        *("--hold", "flock b.lock", "--hold=hold", "env"),
        *("cpu:x86-64-v3", "tools/bench/run", "a/b"),
    ]
    for path in RESULTS.glob("*.json"):
        assert not re.search(r"""[ ='"]/(home|mnt|opt|root|tmp|usr|var|work)/""", path.read_text()), path
