# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page: summary, kernels, pruned weights, nested lists, groups, phases, remarks."""

from __future__ import annotations

import datetime
from typing import Any

from tilewright.report import ir_text
from tilewright.report.counts import counts_section
from tilewright.report.document import cards, document
from tilewright.report.gpu_kernels import predicted_on_gpu
from tilewright.report.html import Raw, bar, details, join, quantity, seconds, section, table, tag
from tilewright.report.kernels import kernel_colors, kernel_section
from tilewright.report.measure import Measurement
from tilewright.report.picture import picture
from tilewright.report.roofline import is_gpu
from tilewright.report.sparsity import sparsity_section


def page(model: Any, report: dict[str, Any], measured: Measurement | None) -> str:
    """Return the whole page.

    Args:
        model: the loaded model.
        report: what the compiler left; {} where the model carries none.
        measured: times, if the model was run.
    """
    name = model._manifest.compile.get("model", model.path.name)
    parts = [
        _head(model, report, name, measured),
        kernel_section(model, report, measured),
        counts_section(report),
        sparsity_section(report),
        _lists(report),
        _groups(model, report, measured),
        _phases(report),
        _remarks(report),
        _signature(model),
        _device(report),
        _footer(model),
    ]
    return document(f"{name} – Tilewright report", parts)


def _error(entry: Any, against: str) -> str:
    """What the manifest says of the error of a precision or accuracy."""
    if "data" not in entry:
        return f", error against {against} not known: nothing ran it yet (emulate=True does)"
    return (
        f", error against {against} on {entry['data']} data {entry['max_abs_error']:.3g} "
        f"({entry['relative_error']:.2g} of the largest result)"
    )


def _target(model: Any, report: dict[str, Any]) -> str:
    """What a model is compiled for: its target, the processor, the GPU whose description its plan is made for."""
    device, cpu = report.get("device", {}), model._manifest.cpu
    if is_gpu(device):
        return f"compiled for {model.target}, planned for {device['name']}"
    return f"compiled for {model.target}" + (f" ({cpu})" if cpu else "")


def _head(model: Any, report: dict[str, Any], name: str, measured: Measurement | None) -> Raw:
    held = model.held_bytes
    spent = sum(model._manifest.compile.get("seconds", {}).values())
    predicted = [predicted_on_gpu(kernel) for kernel in model.kernels]
    call = (seconds(measured.seconds) if measured else "–", f"per call, {model.runs_on}")
    if not measured and any(predicted):
        call = (seconds(sum(time or 0.0 for time in predicted)), "predicted, all kernels")
    launches = sum(kernel.launches for kernel in model.kernels)
    figures = [
        call,
        (seconds(spent), "to compile"),
        (str(len(model.kernels)), f"kernels, {launches} launches"),
        (quantity(held["weights"], "B"), "weights"),
        (quantity(held["arena"], "B"), "arena (all temporaries)"),
    ]
    target = _target(model, report)
    narrow = model._manifest.compile.get("precision")
    if narrow:
        target += f"; precision {narrow['name']}: {narrow['products']} products" + _error(narrow, "f32")
    rough = model._manifest.compile.get("accuracy")
    if rough:
        target += f"; accuracy {rough['name']}" + _error(rough, "exact")
    return tag("header", join([tag("h1", name), tag("p", target, cls="sub"), cards(figures)]))


def _lists(report: dict[str, Any]) -> Raw | None:
    """Graphs of a program of nested lists."""
    found = next((phase["graphs"] for phase in report.get("phases", []) if "graphs" in phase), None)
    if found is None:
        return None
    titles = {"before": "as traced", "after": "in the order that was decided"}
    note = "What each block of nested loops reads, what its iterations wait for, and how many steps are left in order."
    parts = [details(tag("b", titles[name]), tag("pre", text)) for name, text in found.items()]
    return section("Nested lists", *parts, note=note)


def _groups(model: Any, report: dict[str, Any], measured: Measurement | None) -> Raw | None:
    groups = report.get("groups", [])
    if not groups:
        return None
    note = (
        f"{len(groups)} outermost groups, in order; each became a launch of the kernel named behind it. Operators "
        "inside one group meet at its memory level; the decisions are the attributes that planning left in the IR."
    )
    shown = picture(groups, kernel_colors(model, measured), measured.per_kernel() if measured else {})
    each = join(_group(i, group) for i, group in enumerate(groups))
    summary = join([tag("b", "groups"), tag("span", "each with its operators, their tiles and the runner-up")])
    return section(
        "Graph → groups", *([shown] if shown else []), details(summary, tag("div", each, cls="in")), note=note
    )


def _group(index: int, group: dict[str, Any]) -> Raw:
    ops = [op for op in group["ops"] if op["op"] != "tile.group"]
    names = list(dict.fromkeys(op["location"] for op in ops if op["location"]))
    title = " + ".join([*names[:1], *(name.rpartition("/")[2] for name in names[1:4])]) or group["name"]
    title += ", …" if len(names) > 4 else ""
    kernel = tag("code", group.get("kernel") or group["name"])
    counts = f"{len(ops)} op{'s' * (len(ops) != 1)}, {group['level'] or 'no'} level, → {', '.join(group['results'])}"
    rows = [
        (op["op"], op["location"], tag("code", op["results"]), op["body"], tag("code", op["decisions"]))
        for op in group["ops"]
    ]
    content = table(("op", "from", "result", "body", "decisions"), rows)
    return details(join([tag("b", f"{index}"), title, kernel, tag("span", counts)]), tag("div", content, cls="in"))


def _phases(report: dict[str, Any]) -> Raw | None:
    phases = report.get("phases", [])
    if not phases:
        return None
    total = sum(phase["seconds"] for phase in phases) or 1.0
    note = f"{seconds(total)} in all. Open a phase for its passes and the IR after it."
    return section("Phases", *(_phase(phase, total) for phase in phases), note=note)


def _phase(phase: dict[str, Any], total: float) -> Raw:
    share = phase["seconds"] / total
    size = f"{quantity(phase['ir_bytes'], 'B')} of IR" if "ir_bytes" in phase else ""
    label = tag("span", f"{seconds(phase['seconds'])}")
    summary = join([tag("b", phase["name"]), bar(share), label, tag("span", size)])
    slow = sorted(phase["passes"], key=lambda entry: -entry[1])
    rows = [(tag("code", name), seconds(spent), bar(spent / (phase["seconds"] or 1))) for name, spent in slow]
    inside = [table(("pass", "time", ""), rows, numeric=(1,)) if rows else None, _ir(phase)]
    return details(summary, tag("div", join(part for part in inside if part), cls="in"))


def _ir(phase: dict[str, Any]) -> Raw | None:
    if "ir" not in phase:
        return None
    cut = phase["ir_bytes"] - len(phase["ir"])
    more = f"\n… {quantity(cut, 'B')} more; --dump-ir DIR writes all of it" if cut > 0 else ""
    return tag("pre", join([ir_text.highlight(phase["ir"]), more]))


def _remarks(report: dict[str, Any]) -> Raw | None:
    remarks = report.get("remarks", [])
    if not remarks:
        return None
    rows = [(r["phase"], r["severity"], r["message"], r["location"]) for r in remarks]
    return section("Remarks", table(("phase", "kind", "what", "where"), rows), note="What the passes said.")


def _signature(model: Any) -> Raw:
    rows = [("input", s.name, s.dtype, _shape(s)) for s in model.inputs]
    rows += [("output", s.name, s.dtype, _shape(s)) for s in model.outputs]
    return section("Inputs and outputs", table(("", "name", "type", "shape"), rows))


def _shape(spec: Any) -> str:
    return "×".join("?" if size == -1 else str(size) for size in spec.shape) or "scalar"


def _device(report: dict[str, Any]) -> Raw | None:
    device = report.get("device", {})
    if not device:
        return None
    units = device["units"]
    whole = units["count"] if is_gpu(device) else 1
    peaks = ", ".join(f"{name} {quantity(rate * whole, 'FLOP/s')}" for name, rate in units["peak"].items())
    about = f"{units['count']} units, {units['vector_bits']}-bit vectors, peak per unit: {peaks}. {device['source']}."
    if is_gpu(device):
        about = f"{device['name']}: {whole} multiprocessors, peak of all: {peaks}. {device['source']}."
    rows = [
        (level["name"], level["kind"], quantity(level["bytes"], "B"), quantity(level["bandwidth"], "B/s"))
        for level in device["levels"]
    ]
    return section("Device", table(("level", "kind", "size", "bandwidth"), rows, numeric=(2, 3)), note=about)


def _footer(model: Any) -> Raw:
    today = datetime.date.today().isoformat()
    return tag("footer", f"{model._manifest.producer}, report of {today}. {model.path}")
