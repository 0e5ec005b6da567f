# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page `tools/bench/Results.md`, from the files in `results/`. `tools/docs` writes it; standard library only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from bench.machine import BUSY, CALM

RESULTS = Path(__file__).resolve().parent / "results"
PAGE = RESULTS.parent / "Results.md"
_NAMES = {
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "openvino_sparse": "OpenVINO with its sparse option",
    "torch": "PyTorch",
    "torch_bsr": "PyTorch BSR",
    "torch_csr": "PyTorch CSR",
    "torch_lists": "PyTorch on lists",
    "scipy_bsr": "SciPy BSR",
    "scipy_csr": "SciPy CSR",
    "iree": "IREE",
}
_HEAD = (
    "| case | threads | ours, ms | best peer, ms | ratio, run by run | middle | ours varies |",
    "|---|---|---|---|---|---|---|",
)
_GAIN_HEAD = (
    "| case | threads | ours, ms | gain over | run by run | middle | target | best peer, ms | its ratio |",
    "|---|---|---|---|---|---|---|---|---|",
)
_GAINS = """A gain is the time of another form of the model, compiled by us, too, over ours: `dense` has 1e-15 in place
of zeros, `mask alone` and `blocks alone` have one format for all weights, `padded` pads experts to the fullest, `full`
has no padding to leave out, `whole` computes padding like tokens. Middles and targets are of gains: above the target is
good. `~`: our bursts of that run spread by more than 8 %."""
_BESIDE = """A gain is the time of a peer that has a target of its own, over ours. Middles and targets are of gains:
above the target is good. `~`: our bursts of that run spread by more than 8 %."""
_OWN = "own "  # how other forms of a model are named that are ours, too
_ABOUT = """# Results

Tilewright beside its peers, bursts of all of them alternating in one run ([method](README.md)). A ratio is our time
over that of the best peer of that run: below 1 is faster. Times are those of the last run that has the row; ratios
stand in the order of the runs, `middle` is their median, and `ours varies` is the largest distance between the 10th and
the 90th percentile of our bursts in any run, relative to their median. Means are geometric.

Operands of `matmul` are known at run time only, `linear` has constant weights; `f2` and `f4` are `accuracy="winograd"`
and `"winograd4"`; peers of `linear_int8` run in f32."""


def page(folder: Path = RESULTS) -> str:
    """The whole page: a table per suite and machine, newest first.

    Runs of one suite on one CPU on one day form a table.
    """
    groups: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = {}
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text())
        if "suite" in record:
            target = record.get("target", "cpu")
            suite = record["suite"] if target == "cpu" else f"{record['suite']} for {target}"
            key = (suite, record["date"][:10], record["machine"]["cpu"])
            groups.setdefault(key, []).append((path.name, record))
    newest = sorted(groups, key=lambda key: key[0])
    newest.sort(key=lambda key: key[1], reverse=True)
    sections = [_section(key, groups[key]) for key in newest]
    parts = [_ABOUT, *sections, _pruned_models(folder), _counts_on_gpus(folder), _predictions(folder)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(key: tuple[str, str, str], files: list[tuple[str, dict[str, Any]]]) -> str:
    """Heading, machine, means and table of the runs of one day."""
    suite, date, cpu = key
    files = sorted(files, key=lambda file: file[1]["date"])
    runs = [record for _, record in files]
    machine = runs[-1]["machine"]
    peaks = [run["limits"]["1"]["fma_f32"] for run in runs if "fma_f32" in run["limits"].get("1", {})]
    measured = f"; one core: {max(peaks):.0f} GFLOP/s (f32)" if peaks else ""  # what it does undisturbed
    lines = [
        f"## {suite}, {cpu}, {date}",
        "",
        f"{machine['cores']} cores, family/model {machine['family_model']}{measured}.",
        f"Versions: {_versions(runs)}.",
        "",
        *(f"- `{name}`: {record['date'][11:16]} UTC, {_cases(record)}{_disturbed(record)}" for name, record in files),
        "",
        *_means(runs),
        "",
        *([_gains_text(runs), "", *_GAIN_HEAD] if _has_gains(runs) else _HEAD),
        *_rows(runs),
    ]
    return "\n".join(lines)


def _cases(record: dict[str, Any]) -> str:
    """How many cases a run has, or the one."""
    names = sorted({row["case"] for row in record["rows"]})
    return f"{len(names)} cases" if len(names) > 1 else f"`{names[0]}` alone"


def _versions(runs: Sequence[dict[str, Any]]) -> str:
    """The peers' versions, as the last run tells them; build suffixes left out."""
    found = {n: v for run in runs for row in run["rows"] for n, v in row["versions"].items()}
    found = {n: v for n, v in found.items() if n != "tilewright" and not n.startswith(_OWN)}
    return ", ".join(f"{_NAMES.get(name, name)} {version.split('-')[0]}" for name, version in sorted(found.items()))


def _means(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Geometric means of the ratios by threads, of each run that has all cases of the largest one."""
    most = max(len(run["rows"]) for run in runs)
    whole = [[row for row in run["rows"] if row["ratio"]] for run in runs if len(run["rows"]) == most]
    lines = ["| mean of the ratios | threads | run by run |", "|---|---|---|"]
    for label, left_out in (("all cases", ""), ("without cases of f16", "f16")):
        for threads in sorted({row["threads"] for rows in whole for row in rows}):
            chosen = [[row["ratio"] for row in rows if _counts(row, threads, left_out)] for rows in whole]
            lines.append(f"| {label} | {threads} | {_list(geometric_mean(ratios) for ratios in chosen if ratios)} |")
    return lines + _gain_means(whole)


def _gain_means(whole: Sequence[list[dict[str, Any]]]) -> list[str]:
    """Geometric means of the gains over each peer that has a target of its own."""
    found: dict[tuple[str, int], list[list[float]]] = {}
    for rows in whole:
        run: dict[tuple[str, int], list[float]] = {}
        for row in rows:
            for name in (name for name in row.get("gains", ()) if not name.startswith(_OWN)):
                run.setdefault((name, row["threads"]), []).append(row["gains"][name])
        for key, gains in run.items():
            found.setdefault(key, []).append(gains)
    return [
        f"| gains over {_NAMES.get(name, name)} | {threads} | {_list(map(geometric_mean, runs))} |"
        for (name, threads), runs in found.items()
    ]


def _counts(row: dict[str, Any], threads: int, left_out: str) -> bool:
    return row["threads"] == threads and not (left_out and left_out in row["case"])


def _rows(runs: Sequence[dict[str, Any]]) -> list[str]:
    """A line per case and number of threads, in the order of the run that has the most."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda run: -len(run["rows"])):
        for row in run["rows"]:
            found.setdefault((row["case"], row["threads"]), [])
    for run in runs:
        for row in run["rows"]:
            found[row["case"], row["threads"]].append(row)
    if _has_gains(runs):
        return [line for (case, threads), rows in found.items() for line in _gain_lines(case, threads, rows)]
    return [_line(case, threads, rows) for (case, threads), rows in found.items()]


def _has_gains(runs: Sequence[dict[str, Any]]) -> bool:
    return any(row.get("gains") for run in runs for row in run["rows"])


def _gains_text(runs: Sequence[dict[str, Any]]) -> str:
    """What the gains of these runs are over."""
    names = {name for run in runs for row in run["rows"] for name in row.get("gains", ())}
    return _GAINS if any(name.startswith(_OWN) for name in names) else _BESIDE


def _gain_lines(case: str, threads: int, rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each other form that ours is set against; one where there is none."""
    good = [row for row in rows if row["ours_ms"] and row["status"] not in ("wrong", "failed")]
    if not good:
        return [f"| {case} | {threads} | {rows[-1]['status']} | | | | | | |"]
    last = good[-1]
    peer = f"{last['peer_ms']:.3g} ({_NAMES.get(last['peer'], last['peer'])})" if last["peer"] else ""
    end = f"{peer} | {last['ratio']:.2f} |" if last["ratio"] else f"{peer} | |"
    start = f"| {case} | {threads} | {last['ours_ms']:.3g} |"
    lines = []
    for name in last["gains"]:
        runs = [row for row in good if name in row["gains"]]
        gains = [row["gains"][name] for row in runs]
        marked = ", ".join(f"{row['gains'][name]:.2f}{'~' * ((row.get('spread') or 0) > CALM)}" for row in runs)
        target = last["gain_targets"].get(name)
        aim = f"{target:.2f}" if target else ""
        over = str(_NAMES.get(name, name)).removeprefix(_OWN)
        lines.append(f"{start} {over} | {marked} | {median(gains):.2f} | {aim} | {end}")
    return lines or [f"{start} | | | | {end}"]


def _line(case: str, threads: int, rows: Sequence[dict[str, Any]]) -> str:
    good = [row for row in rows if row["ratio"] and row["status"] != "wrong"]  # "slow" ones missed a target: they count
    if not good:
        return f"| {case} | {threads} | {rows[-1]['status']} | | | | |"
    last = good[-1]
    ratios = [row["ratio"] for row in good]
    spread = max(row["spread"] for row in good)
    peer = f"{last['peer_ms']:.3g} ({_NAMES.get(last['peer'], last['peer'])})"
    numbers = f"{last['ours_ms']:.3g} | {peer} | {_list(ratios)} | {median(ratios):.2f} | {spread:.0%}"
    return f"| {case} | {threads} | {numbers} |"


def _predictions(folder: Path) -> str:
    """Predicted beside measured times of tile candidates (`tools/bench/run roller`), the newest file."""
    files = sorted(folder.glob("roller-predictions-*.json"))
    if not files:
        return ""
    rows = json.loads(files[-1].read_text())["rows"]
    head = [
        f"## Predictions of tiles, `{files[-1].name}`",
        "",
        "[What the columns mean](README.md#predictions).",
        "",
        "| case | candidates | spearman | first | taken | own | span | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    columns = ("spearman", "first", "taken", "own", "span", "error")
    body = [
        f"| {row['case']} | {len(row['candidates'])} | {' | '.join(format(row[name], '.2f') for name in columns)} |"
        for row in rows
    ]
    return "\n".join([*head, *body])


def _disturbed(record: dict[str, Any]) -> str:
    """In how many rows other processes kept cores busy meanwhile."""
    rows = record["rows"]
    count = sum((row.get("others") or 0.0) > BUSY for row in rows)
    return f"; other processes kept cores busy in {count} of {len(rows)} rows" if count else ""


def _pruned_models(folder: Path) -> str:
    """Whole pruned models beside their dense form, of the newest day on a machine (`tools/bench/run pruned`)."""
    found = [json.loads(path.read_text()) for path in folder.glob("cpu-pruned-*.json")]
    if not found:
        return ""
    found.sort(key=lambda record: record["date"])
    key = _pruned_key(found[-1])
    newest = [record for record in found if _pruned_key(record) == key]
    day, target, _ = key
    told = found[-1]["machine"]
    head = [
        f"## Pruned models{'' if target == 'cpu' else f' for {target}'}, {day}",
        "",
        f"{told['cpu']} ({', '.join(told['flags'])}): time of the dense form over that of the pruned one, both ours, "
        "in turns; `part` of the weights, or of heads and channels, is zero.",
        "",
        "| model | part | threads | dense / pruned | least to most | asked | largest difference |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(_pruned_line(row) for record in newest for row in record["rows"])])


def _pruned_key(record: dict[str, Any]) -> tuple[str, str, str]:
    """What rows of a table have in common: day, target, CPU."""
    return record["date"][:10], record["target"], record["machine"]["cpu"]


def _pruned_line(row: dict[str, Any]) -> str:
    if row["status"] == "wrong":
        return f"| {row['case']} | {row['part']} | {row['threads']} | wrong | | | {row['error']:.0e} |"
    ratios, error = row["ratios"], "" if row["error"] is None else f"{row['error']:.0e}"
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    shown = [row["case"], row["part"], row["threads"], f"{row['ratio']:.2f}", spread, row["target"] or "", error]
    return f"| {' | '.join(map(str, shown))} |"


def _counts_on_gpus(folder: Path) -> str:
    """Launches and waits of suite `control` on a GPU, before and after (`tools/bench/run control-counts`)."""
    files = sorted(folder.glob("control-counts-*.json"))
    if not files:
        return ""
    head = [
        f"## Launches of a GPU, `{files[-1].name}`",
        "",
        "Of one call, with loops and branches that the host drives (before) and in kernels (after); `waits` are",
        "numbers that the host brings from or to the device. Each branch is taken, each loop runs to its longest;",
        "counted, not timed.",
        "",
        "| case | target | launches before | after | waits before | after | a graph can hold it |",
        "|---|---|---|---|---|---|---|",
    ]
    body = [
        f"| {row['case']} | {row['arch']} | {before['launches']} | {after['launches']} | {before['waits']} | "
        f"{after['waits']} | {'yes' if after['recordable'] else 'no'} |"
        for row in json.loads(files[-1].read_text())["rows"]
        for before, after in [(row["before"], row["after"])]
    ]
    return "\n".join([*head, *body])


def _list(ratios: Any) -> str:
    return ", ".join(format(ratio, ".2f") for ratio in ratios)
