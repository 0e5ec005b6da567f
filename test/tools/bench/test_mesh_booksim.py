# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/bench/run mesh --booksim PATH`: what is written for BookSim2, what is read, and what T2 says beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.mesh import booksim
from bench.mesh.main import main
from tilewright.core.errors import UserError

#: As BookSim2 (2015) prints it: statistics of each sample, then those of the run.
OUTPUT = """\
Class 0:
Packet latency average = 21.3
\tminimum = 20
\tmaximum = 34
Flit latency average = 21.3
\tminimum = 20
\tmaximum = 34
Accepted packet rate average = 0.002
Accepted flit rate average= 0.0019
====== Overall Traffic Statistics ======
====== Traffic class 0 ======
Packet latency average = 22.1 (1 samples)
\tminimum = 19 (1 samples)
\tmaximum = 35 (1 samples)
Network latency average = 22 (1 samples)
\tminimum = 19 (1 samples)
\tmaximum = 35 (1 samples)
Flit latency average = 22 (1 samples)
\tminimum = 19 (1 samples)
\tmaximum = 35 (1 samples)
Fragmentation average = 0 (1 samples)
Accepted packet rate average = 0.00205 (1 samples)
Accepted flit rate average = 0.00205 (1 samples)
\tminimum = 0.0015 (1 samples)
\tmaximum = 0.0025 (1 samples)
Hops average = 4.75 (1 samples)
Total run time 0.04
"""

#: A network of five cycles per hop and eleven besides, with links that are never idle.
STAND_IN = """\
#!/usr/bin/env python3
import re, sys
keys = dict(re.findall(r"(\\w+) = (\\S+);", open(sys.argv[1]).read()))
assert keys["topology"] == "mesh" and keys["n"] == "1" and keys["routing_function"] == "dor"
rate = float(keys["injection_rate"])
hops = int(keys["k"]) // 2 - 1
full = {"bitcomp": 0.25, "neighbor": 1.0, "tornado": 1 / 3}[keys["traffic"]]
print(f"Flit latency average = 99 (1 samples)\\n\\tminimum = {11 + 5 * hops} (1 samples)")
print(f"Accepted flit rate average = {min(rate, full)} (1 samples)")
sys.exit(255)
"""


def stand_in(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "booksim"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_last_statistics_count():
    assert booksim.read_output(OUTPUT) == booksim.Found(19, 0.00205)


def test_a_configuration():
    """Keys that BookSim2 has in all versions since 2010; another one would end it."""
    text = booksim.config_text(8, "bitcomp", 1.0)
    assert "traffic = bitcomp;\n" in text and "sim_type = throughput;\n" in text
    assert "sim_type = latency;\n" in booksim.config_text(8, "bitcomp", 0.01)
    keys = {line.split(" = ")[0] for line in text.splitlines()}
    assert keys <= {
        *("topology", "k", "n", "routing_function", "use_noc_latency", "num_vcs", "vc_buf_size", "traffic"),
        *("injection_rate", "sim_type", "warmup_periods", "sample_period", "seed"),
    }


def test_beside_a_network_of_other_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Two distances give the parameters, the third follows to the cycle; no cycle of a full link is lost."""
    binary = stand_in(tmp_path, STAND_IN)
    assert main(["--booksim", str(binary), "--json", str(tmp_path / "out.json")]) == 0
    assert "tier T2" in capsys.readouterr().out
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["tier"] == "T2"
    latencies, rates = written["tables"]["booksim"][:3], written["tables"]["booksim"][3:]
    assert [row["booksim"] for row in latencies] == [16, 26, 46]
    assert [row["error_percent"] for row in latencies] == [0, 0, 0]
    assert all(abs(row["error_percent"]) <= 2 for row in rates) and len(rates) == len(booksim.PATTERNS)


@pytest.mark.parametrize("text", ["#!/bin/sh\necho 'Parse error'\n", ""])
def test_other_programs(tmp_path: Path, text: str):
    """A message says what is wrong, whatever stands there."""
    with pytest.raises(UserError, match="--booksim"):
        booksim.rows(stand_in(tmp_path, text))
    with pytest.raises(UserError, match="give the path of a BookSim2 binary"):
        booksim.rows(tmp_path / "none")
