# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults on purpose: changes of PTX such as a compiler's mistake would make, to see whether the emulator notices.

A mutant differs from a working kernel in one statement: a wait, fence, barrier, commit or arrival dropped, repeated or
moved past its neighbour; a count, parity, stride, offset or barrier number changed. `judge` runs it twice over: without
any optional check, in many orders, to learn whether it changes a result under some legal order; and with the checks, in
few orders, to learn whether it is caught (by a rule or by a wrong result).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.machine import CHECKS, Options

_COMMENT = re.compile(r"//[^\n]*")
_STATEMENT = re.compile(r"[^\s;{}][^;{}]*(?:\{[^{}]*\}[^;{}]*)*;")
_LABELS = re.compile(r"(?:[\w$]+:(?!:)\s*)+")
_GUARD = re.compile(r"@!?[%\w]+\s+")
_INTEGER = re.compile(r"(?<![\w.%$])-?\d+(?![\w.])")

#: what orders execution or memory: dropped, repeated, moved
_SYNCHRONISATION = re.compile(
    r"(bar\.|barrier\.|fence\.|membar\.|wgmma\.(fence|commit_group|wait_group)"
    r"|cp\.async\.(commit_group|wait_group|wait_all|mbarrier|bulk\.(commit_group|wait_group))"
    r"|mbarrier\.(arrive|expect_tx))"
)
#: accesses that others synchronize with
_ORDERS = re.compile(r"(ld\.acquire|st\.release|(red|atom)\.(release|acquire|acq_rel))\.(gpu|sys)")
_WAITS = re.compile(r"(cp\.async\.(bulk\.)?wait_group|wgmma\.wait_group)")
_REGISTER = re.compile(r"%(?!tid|ctaid|ntid|nctaid|laneid)\w+")
#: products whose operands say where the kept elements of a belong
_SPARSE = ("mma.sp", "wgmma.mma_async.sp")
#: a word of metadata with rows exchanged, with the positions of a group exchanged, and with groups moved by one
_WORDS = (
    "shf.l.wrap.b32 %mutant, {0}, {0}, 16;",
    "shl.b32 %mutant, {0}, 2; and.b32 %mutant, %mutant, 0xcccccccc; shr.u32 %other, {0}, 2; "
    "and.b32 %other, %other, 0x33333333; or.b32 %mutant, %mutant, %other;",
    "shf.l.wrap.b32 %mutant, {0}, {0}, 4;",
)
#: what moves data between memory and registers: what it loads is no part of an address of its own
_TOUCHES = re.compile(r"(ld|st|ldmatrix|stmatrix|cp)\.")
#: whose operands decide where a program goes, or are descriptors of memory
_DECIDES = re.compile(r"(setp|wgmma\.mma_async|bra|mbarrier|bar|barrier)\b")
_ADDRESSES = re.compile(r"(add|sub|shl|mul|mad|xor|and|or|mov|ld|st|ldmatrix|stmatrix|cp)\.")


@dataclass(frozen=True)
class Statement:
    """A statement of PTX: where it is in the text, its mnemonic and operands."""

    start: int
    end: int
    line: int
    op: str
    operands: str
    guarded: bool


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        kind: what was done: "drop", "repeat", "move", "count", "parity", "address", "barrier", "arrivals", "bytes",
            "metadata", "order".
        line: PTX line of the statement.
        before, after: the statement's text before and after.
        text: the whole mutated PTX.
    """

    kind: str
    line: int
    before: str
    after: str
    text: str = field(repr=False)


def statements(ptx: str) -> list[Statement]:
    """All instructions of a PTX text, in order (directives left out)."""
    blank = _COMMENT.sub(lambda m: " " * len(m.group()), ptx)
    body = blank.find("{", blank.find(".entry"))
    found = []
    for match in _STATEMENT.finditer(blank, max(body, 0)):
        text, start = match.group(), match.start()
        labels = _LABELS.match(text)
        if labels:
            start, text = start + labels.end(), text[labels.end() :]
        if text.startswith("."):
            continue
        guard = _GUARD.match(text)
        rest = text[guard.end() :] if guard else text
        parts = rest[:-1].split(None, 1)
        op, operands = parts[0], parts[1] if len(parts) > 1 else ""
        line = ptx.count("\n", 0, start) + 1
        found.append(Statement(start, match.end(), line, op, operands, bool(guard)))
    return found


def mutants(ptx: str) -> list[Mutant]:
    """Every mutant of a kernel, in the order of its text."""
    code = statements(ptx)
    placing = _placing(code)
    found: list[Mutant] = []
    for at, one in enumerate(code):
        for kind, text in _changes(ptx, one):
            if kind == "address" and not _registers(one)[0] & placing and not _TOUCHES.match(one.op):
                continue  # the bits of a number: a fault of arithmetic, which is for tests of results to find
            found.append(_mutant(ptx, kind, one, one.start, one.end, text))
        if _SYNCHRONISATION.match(one.op):
            found += _moves(ptx, code, at)
    return list(dict.fromkeys(m for m in found if m.text != ptx))


def sample(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A choice of mutants in which every kind has its share."""
    random = np.random.default_rng(seed)
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_kind.setdefault(mutant.kind, []).append(mutant)
    for group in by_kind.values():
        random.shuffle(group)  # type: ignore[arg-type]
    chosen: list[Mutant] = []
    while len(chosen) < count and any(by_kind.values()):
        for group in by_kind.values():
            if group and len(chosen) < count:
                chosen.append(group.pop())
    return chosen


def _registers(one: Statement) -> tuple[set[str], set[str]]:
    """The registers that a statement writes (its first operand, of a plain instruction), and those that it reads."""
    first, *rest = _split(one.operands) or [""]
    return set(_REGISTER.findall(first)), set(_REGISTER.findall(" ".join(rest)))


def _placing(code: Sequence[Statement]) -> set[str]:
    """Registers that addresses, descriptors and branches are computed from: all others hold numbers of the program."""
    found: set[str] = set()
    for one in code:
        if _DECIDES.match(one.op):
            found |= set(_REGISTER.findall(one.operands))
        for inner in re.findall(r"\[([^\]]*)\]", one.operands):
            found |= set(_REGISTER.findall(inner))
    while True:
        before = len(found)
        for one in code:
            written, read = _registers(one)
            if written & found and not _TOUCHES.match(one.op):
                found |= read
        if len(found) == before:
            return found


def _mutant(ptx: str, kind: str, one: Statement, start: int, end: int, text: str) -> Mutant:
    before = " ".join(ptx[start:end].split())
    return Mutant(kind, one.line, before, " ".join(text.split()), ptx[:start] + text + ptx[end:])


def _changes(ptx: str, one: Statement) -> Iterator[tuple[str, str]]:
    """(kind, new text) of every change of one statement in place."""
    text = ptx[one.start : one.end]
    if one.op.startswith("mbarrier.try_wait"):
        yield from _wait_changes(one, text)
        return
    if _SYNCHRONISATION.match(one.op):
        yield "drop", ""
        if one.op.startswith(("mbarrier.arrive", "barrier.cluster.arrive")) or "commit" in one.op:
            yield "repeat", text + " " + text
    if _WAITS.match(one.op):
        count = int(one.operands)
        yield from (("count", _with_operands(text, one, str(n))) for n in (count + 1, count - 1) if n >= 0)
    if one.op.startswith(("bar.", "barrier.")) and "cluster" not in one.op:
        yield from _barrier_changes(one, text)
    if one.op.startswith("mbarrier.init"):
        yield "drop", ""
        yield from _arrival_changes(one, text)
    if "expect_tx" in one.op:
        yield from _byte_changes(one, text)
    if _ORDERS.match(one.op):
        yield from _order_changes(one, text)
    if one.op.startswith(_SPARSE):
        yield from _metadata_changes(one, text)
    yield from _address_changes(one, text)


def _with_operands(text: str, one: Statement, operands: str) -> str:
    return text[: len(text) - 1 - len(one.operands)] + operands + ";"


def _wait_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    """Waiting for an mbarrier: not at all, or for the other phase."""
    predicate, _, rest = one.operands.partition(",")
    guard = text[: text.index(one.op)]
    yield "drop", f"{guard}setp.eq.u32 {predicate}, 0, 0;"
    place, parity, *hint = _split(rest)
    if re.fullmatch(r"[01]", parity):
        yield "parity", _with_operands(text, one, ", ".join([predicate, place, str(1 - int(parity)), *hint]))
    else:
        other = f"{{ .reg .b32 %mutant; xor.b32 %mutant, {parity}, 1; "
        operands = ", ".join([predicate, place, "%mutant", *hint])
        yield "parity", other + _with_operands(text, one, operands) + " }"


def _barrier_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    operands = _split(one.operands)
    if operands and operands[0].isdigit():
        other = "7" if operands[0] != "7" else "6"
        yield "barrier", _with_operands(text, one, ", ".join([other, *operands[1:]]))
    if len(operands) > 1 and operands[1].isdigit():
        for threads in (int(operands[1]) - 32, int(operands[1]) + 32):
            if threads > 0:
                yield "barrier", _with_operands(text, one, f"{operands[0]}, {threads}")


def _arrival_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    place, count = _split(one.operands)
    for change in ("add", "sub"):
        inner = f"{{ .reg .b32 %mutant; {change}.s32 %mutant, {count}, 1; "
        if count.isdigit():
            inner = f"{{ .reg .b32 %mutant; mov.b32 %mutant, {int(count) + (1 if change == 'add' else -1)}; "
        yield "arrivals", inner + _with_operands(text, one, f"{place}, %mutant") + " }"


def _order_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    """What a thread of another CTA may see: nothing of what stood before or behind, or of this CTA's alone."""
    weaker = re.sub(r"\.(release|acquire|acq_rel)\b", ".relaxed", one.op)
    yield "order", text.replace(one.op, weaker, 1)
    if ".gpu" in one.op:
        yield "order", text.replace(one.op, one.op.replace(".gpu", ".cta"), 1)


def _byte_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    *rest, count = _split(one.operands)
    for change in (16, -16):
        inner = f"{{ .reg .b32 %mutant; mov.b32 %mutant, {count}; add.s32 %mutant, %mutant, {change}; "
        yield "bytes", inner + _with_operands(text, one, ", ".join([*rest, "%mutant"])) + " }"


def _metadata_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    """The metadata of other rows or groups, in another order, or (the selector) of other lanes."""
    operands = _split(one.operands)
    at = 4 if one.op.startswith("mma") else 3
    words, selector = operands[at : at + 2]
    if "k64" not in one.op:  # bytes: all lanes count
        other = str(1 - int(selector))
        yield "metadata", _with_operands(text, one, ", ".join([*operands[: at + 1], other, *operands[at + 2 :]]))
    for change in _WORDS:
        changed = ", ".join([*operands[:at], "%mutant", *operands[at + 1 :]])
        inner = "{ .reg .b32 %mutant, %other; " + change.format(words) + " "
        yield "metadata", inner + _with_operands(text, one, changed) + " }"


def _address_changes(one: Statement, text: str) -> Iterator[tuple[str, str]]:
    """Integers in address arithmetic, memory operands and copies: a stride, a shift, an offset off by something."""
    if not _ADDRESSES.match(one.op) or ".f" in one.op or "param" in one.op:
        return
    body = len(text) - 1 - len(one.operands)
    for match in _INTEGER.finditer(text, body):
        value = int(match.group())
        for new in _neighbours(one.op, value):
            yield "address", text[: match.start()] + str(new) + text[match.end() :]


def _neighbours(op: str, value: int) -> list[int]:
    if op.startswith("shl"):
        return [value + 1, value - 1] if value else [1]
    if abs(value) >= 1 << 32:  # the constant half of a matrix descriptor: strides and swizzle
        return [value + (1 << 32) * 8, value ^ (1 << 62)]
    if value == 0:
        return [16] if op.startswith(("add", "ld", "st", "cp")) else []
    return [value * 2, value + 16 if abs(value) >= 16 else value + 1]


def _split(operands: str) -> list[str]:
    """Operands, split at commas outside brackets."""
    out, depth, word = [], 0, ""
    for char in operands:
        depth += (char in "[{(") - (char in ")}]")
        if char == "," and depth == 0:
            out.append(word.strip())
            word = ""
        else:
            word += char
    return [*out, word.strip()] if word.strip() else out


def _moves(ptx: str, code: list[Statement], at: int) -> Iterator[Mutant]:
    """The statement exchanged with its neighbours of the same block."""
    one = code[at]
    for other in code[at + 1 : at + 2] + code[at - 1 : at] if at else code[at + 1 : at + 2]:
        first, second = (one, other) if one.start < other.start else (other, one)
        between = ptx[first.end : second.start]
        if _LABELS.search(between) or "{" in between or "}" in between or other.op.startswith(("bra", "ret", "exit")):
            continue
        if _depends(ptx, first, second):
            continue
        swapped = ptx[second.start : second.end] + between + ptx[first.start : first.end]
        yield _mutant(ptx, "move", one, first.start, second.end, swapped)


def _depends(ptx: str, first: Statement, second: Statement) -> bool:
    """Whether registers connect two statements, so that exchanging them would be no fault of synchronisation."""
    registers = [set(re.findall(r"%?\w+", ptx[s.start : s.end].split(None, 1)[-1])) for s in (first, second)]
    return any(word.startswith("%") for word in registers[0] & registers[1]) or second.guarded


# ---- judging ---------------------------------------------------------------

#: runs PTX under options and raises: AssertionError for a wrong result, EmulationError for a broken rule
Runner = Callable[[str, Options], None]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        mutant: the fault.
        harmful: what it does without checks under some order ("wrong result", "dead-lock", ...), or "" if nothing.
        caught: the rule that it breaks with checks, or "wrong result", or "".
        message: of the error that caught it.
        refused: it is no PTX that can be loaded, and so no fault of a running kernel; it counts nowhere.
    """

    mutant: Mutant
    harmful: str
    caught: str
    message: str = ""
    refused: bool = False


#: the fixed order, with work in the background done as late as waits allow, and at once
_FIXED = ("late", "early")


def judge(
    run: Runner,
    mutant: Mutant,
    *,
    orders: int = 6,
    seeds: int = 1,
    limit: int | None = None,
    checks: frozenset[str] = CHECKS,
) -> Verdict:
    """Run a mutant with and without checks.

    Args:
        run: runs PTX and compares with the right result.
        mutant: the fault.
        orders: in how many orders it may show that it changes a result (fixed late, fixed early, then random ones).
        seeds: in how many random orders, behind the fixed ones, the checks may catch it.
        limit: instructions after which a run counts as endless.
        checks: the checks that may catch it.
    """
    caught, message = "", ""
    watched = [Options(checks=checks, limit=limit, completion=when) for when in _FIXED]
    for options in (*watched, *(Options(seed=seed, limit=limit, checks=checks) for seed in range(1, seeds + 1))):
        caught, message = _outcome(run, mutant, options)
        if caught == _REFUSED:
            return Verdict(mutant, "", "", message, True)
        if caught:
            break
    harmful = ""
    fixed = [Options(checks=frozenset(), limit=limit, completion=when) for when in _FIXED]
    several = [Options(seed=100 + seed, checks=frozenset(), limit=limit) for seed in range(max(orders - 2, 0))]
    for options in (*fixed, *several):
        harmful, _ = _outcome(run, mutant, options)
        if harmful:
            break
    return Verdict(mutant, harmful, caught, message)


_REFUSED = "refused"
#: what a verdict says of a result that differs
WRONG = "wrong result"


def _outcome(run: Runner, mutant: Mutant, options: Options) -> tuple[str, str]:
    try:
        run(mutant.text, options)
    except AssertionError as error:
        return WRONG, str(error)
    except EmulationError as error:
        return error.rule, str(error)
    except (UserError, UnsupportedError) as error:
        return _REFUSED, str(error)
    return "", ""


def table(verdicts: Sequence[Verdict]) -> str:
    """A table by kind of fault, and the catch rate."""
    verdicts = [v for v in verdicts if not v.refused]
    heads = ("mutants", "harmful", "caught", "missed", "rule only", "no effect")
    lines = [f"{'kind':10s} " + " ".join(f"{head:>9s}" for head in heads)]
    kinds = [*dict.fromkeys(v.mutant.kind for v in verdicts), "all"]
    for kind in kinds:
        rows = [v for v in verdicts if kind in (v.mutant.kind, "all")]
        harmful = [v for v in rows if v.harmful]
        caught = [v for v in harmful if v.caught]
        alone = [v for v in rows if v.caught and not v.harmful]
        quiet = len(rows) - len(harmful) - len(alone)
        counts = (len(rows), len(harmful), len(caught), len(harmful) - len(caught), len(alone), quiet)
        lines.append(f"{kind:10s} " + " ".join(f"{n:9d}" for n in counts))
    return "\n".join([*lines, f"catch rate: {catch_rate(verdicts):.1%} of the faults that change a result"])


def by_kernel(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    """A table in Markdown with a row for each kernel: {name: what became of its mutants}."""
    heads = (
        "kernel",
        "mutants",
        "refused",
        "harmful",
        "by a rule",
        "by the result",
        "missed",
        "rule only",
        "no effect",
    )
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, found in verdicts.items():
        valid = [v for v in found if not v.refused]
        harmful = [v for v in valid if v.harmful]
        by_result = sum(v.caught == WRONG for v in harmful)
        missed = sum(not v.caught for v in harmful)
        alone = sum(bool(v.caught and not v.harmful) for v in valid)
        counts = (len(harmful), len(harmful) - by_result - missed, by_result, missed, alone)
        row = (len(found), len(found) - len(valid), *counts, len(valid) - len(harmful) - alone)
        lines.append(f"| {name} | " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines) + "\n"


def catch_rate(verdicts: Sequence[Verdict]) -> float:
    """Of the mutants that change a result under some order, the part that is caught (1 if there are none)."""
    harmful = [v for v in verdicts if v.harmful]
    return sum(bool(v.caught) for v in harmful) / len(harmful) if harmful else 1.0
