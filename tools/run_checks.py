"""Run the checks and tests of tools/check in a set-up tree, and add up what they counted."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "test"))
import sampling  # noqa: E402  # beside the tests, which sample by it too

BIN = ROOT / ".venv" / "bin"
LIT_PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
_SAMPLE = {"fast": 40, "normal": 10, "full": 1}  # every so manieth of ONNX's tests; which one, the seed says
_GPU_SAMPLE = {"fast": 160, "normal": 10, "full": 2}  # the same for each architecture of GPUs, on the emulator
_MESH_SAMPLE = {"fast": 320, "normal": 90, "full": 1}  # of nodes on a mesh, whose simulator runs core by core
_SLOW = {"fast": "none", "normal": "sample", "full": "all"}  # which of the tests marked slow
_SLOWEST = 10
#: Seconds that one test may take; where it takes more, its process prints where it stands, and ends.
_TEST_SECONDS = {"fast": 400, "normal": 600, "full": 3600}
#: Seconds that all checks together may take, a quarter less than CI's: what hangs fails, and the rest reports.
_ALL_SECONDS = {"fast": 4000.0, "normal": 4000.0, "full": 86400.0}
_GPU_SUITES = "node,pytorch-operator,pytorch-converted,simple"
#: What pytest-xdist says of a test whose process died, and lines of what that process said.
_DIED = re.compile("crashed while running '(.*)'")
_LINES = 200
LIT_SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


@dataclass(frozen=True)
class Count:
    """How many tests of one kind passed, failed, and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        """Sum of two counts."""
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        """The counts as the last line prints them."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclass(frozen=True)
class Plan:
    """How much to run: the level, and the seed that says which part of what is sampled."""

    level: str = "normal"
    seed: int = 0

    def sample(self, step: int, offset: int = 0) -> tuple[str, ...]:
        """Options of tools/conformance for every `step`-th test, others for another seed."""
        return ("--sample", str(step), "--first", str((self.seed + offset) % step)) if step > 1 else ()


#: Seconds and names of single tests, as the checks add them.
_TIMES: list[tuple[float, str]] = []


@dataclass
class Deadline:
    """When all checks have to be done, by time.monotonic()."""

    at: float = float("inf")

    def left(self) -> float | None:
        """Seconds until then, at least one; None where there is no such time."""
        return None if self.at == float("inf") else max(self.at - time.monotonic(), 1.0)


_DEADLINE = Deadline()


def run(*command: str | Path, errors: Path | None = None) -> int:
    """Run a command in the root with the environment's tools first in PATH; its output goes to ours.

    Args:
        command: the words.
        errors: a file that takes what it says on the standard error stream.

    Returns:
        Its exit status; 124 where the time for all checks was over, and it was killed.
    """
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
    # Where these say so, pytest explains every assertion by a whole difference, which for long operands takes minutes.
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    words, environment = [str(part) for part in command], {**inherited, "PATH": path}
    try:
        with contextlib.nullcontext() if errors is None else errors.open("w") as stream:
            return subprocess.run(words, cwd=ROOT, env=environment, stderr=stream, timeout=_DEADLINE.left()).returncode
    except subprocess.TimeoutExpired:
        print(f"killed: the time for all checks is over: {' '.join(words)}", flush=True)
        return 124


def single(*command: str | Path) -> Count:
    """A check that passes or fails as a whole."""
    return Count(failed=1) if run(*command) else Count(passed=1)


def sources(*suffixes: str) -> list[str]:
    """Tracked files with one of these suffixes."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in names.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file()]


def format_cpp() -> Count:
    """clang-format over all C++; skipped where no clang-format 22 is installed (formats differ between versions)."""
    tool = shutil.which("clang-format-22")
    if tool is None:
        print("clang-format-22 is not installed: skipped")
        return Count(skipped=1)
    return single(tool, "--dry-run", "--Werror", *sources(".cpp", ".h"))


def lit() -> Count:
    """The .mlir tests under test/, with FileCheck."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "lit.json"
        code = run(BIN / "lit", "-q", "--output", report, "test")
        if not report.is_file():
            return Count(failed=1)
        tests = json.loads(report.read_text())["tests"]
    codes = [test["code"] for test in tests]
    _TIMES.extend((test["elapsed"] or 0.0, test["name"]) for test in tests)
    passed = sum(code in LIT_PASSED for code in codes)
    skipped = sum(code in LIT_SKIPPED for code in codes)
    failed = len(codes) - passed - skipped
    return Count(passed, max(failed, 1 if code and not failed else 0), skipped)


def pytest(*options: str, seconds: int = _TEST_SECONDS["normal"]) -> Count:
    """The Python tests under test/; one that takes more than some seconds fails, and its process is replaced.

    Tests whose process died run once more, each by itself: what died of the load of a machine passes then, and is told.
    """
    workers = ("-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal")
    count, died = _pytest(seconds, *workers, *options, "test")
    for test in died:
        alone, again = _pytest(seconds, "-n", "1", test)
        if alone == Count(passed=1) and not again:
            print(f"the process of this test died; by itself it passed: {test}", flush=True)
            count += Count(passed=1, failed=-1)
    return count


def _pytest(seconds: int, *options: str) -> tuple[Count, list[str]]:
    """What pytest counts, and the tests whose process died, of which it prints what was said."""
    with tempfile.TemporaryDirectory() as folder:
        report, errors = Path(folder) / "pytest.xml", Path(folder) / "errors"
        command = [BIN / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-o", f"faulthandler_timeout={seconds}", "-o", "faulthandler_exit_on_timeout=true"]
        code = run(*command, *options, errors=errors)
        said = errors.read_text(errors="replace").splitlines() if errors.is_file() else []
        if not report.is_file():
            print(*said[-_LINES:], sep="\n")
            return Count(failed=1), []
        root = ElementTree.parse(report).getroot()
    suites = list(root.iter("testsuite"))
    _TIMES.extend(_time_of(case) for case in root.iter("testcase"))
    total = sum(int(suite.get("tests", "0")) for suite in suites)
    failed = sum(int(suite.get("failures", "0")) + int(suite.get("errors", "0")) for suite in suites)
    skipped = sum(int(suite.get("skipped", "0")) for suite in suites)
    died = [found[1] for entry in root.iter() if (found := _DIED.search(entry.text or ""))]
    if died:
        print("what processes said that died:", *said[-_LINES:], sep="\n", flush=True)
    return Count(total - failed - skipped, max(failed, 1 if code not in (0, 5) else 0), skipped), died


def _time_of(case: ElementTree.Element) -> tuple[float, str]:
    """Seconds and name of one test of pytest, as its report has them."""
    return float(case.get("time", "0")), f"{case.get('classname', '')}::{case.get('name', '')}"


def conformance(*options: str) -> Count:
    """ONNX's backend tests: how many pass, fail although they should not, and are listed as unsupported."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "conformance.json"
        code = run("tools/conformance", *options, "--json", report)
        if not report.is_file():
            return Count(failed=1)
        results = json.loads(report.read_text())
        summary = json.loads(report.with_suffix(".summary").read_text())
    states = [result["state"] for result in results]
    target = options[options.index("--target") + 1] if "--target" in options else "cpu"
    for result in results:
        seconds = result.get("seconds", 0.0) + result.get("compile_seconds", 0.0)
        _TIMES.append((seconds, f"ONNX {result['key']} ({target})"))
    passed, failed = states.count("passed"), summary["unexpected"]
    return Count(passed, max(failed, 1 if code and not failed else 0), len(states) - passed - failed)


def on_gpu(arch: str, plan: Plan, number: int) -> Count:
    """ONNX's backend tests as PTX on the emulator, assembled by ptxas where there is one; each architecture others."""
    step = _GPU_SAMPLE[plan.level]
    return conformance("--target", f"cuda:{arch}", "--suite", _GPU_SUITES, *plan.sample(step, number * step // 2))


def on_mesh(plan: Plan) -> Count:
    """ONNX's node tests on a simulated mesh; attention, whose programs take longest to plan, in full runs only."""
    names = () if plan.level == "full" else ("-k", "not attention")
    return conformance("--target", "mesh:toy8x8", "--suite", "node", *names, *plan.sample(_MESH_SAMPLE[plan.level]))


def checks(plan: Plan) -> list[tuple[str, Callable[[], Count]]]:
    """Every check by name, the quick ones first."""
    slow = (f"--slow={_SLOW[plan.level]}", f"--seed={plan.seed}")
    sample = plan.sample(_SAMPLE[plan.level])
    return [
        ("ruff check", lambda: single(BIN / "ruff", "check", ".")),
        ("ruff format", lambda: single(BIN / "ruff", "format", "--check", ".")),
        ("pyright", lambda: single(BIN / "pyright", "--pythonpath", BIN / "python")),
        ("clang-format", format_cpp),
        ("file sizes", lambda: single(BIN / "python", "tools/size-check")),
        ("reference is current", lambda: single("tools/docs", "--check")),
        ("lit", lit),
        ("ONNX tests, cpu", lambda: conformance(*sample)),
        ("ONNX tests, v3", lambda: conformance(*sample, "--target", "cpu:x86-64-v3")),
        ("ONNX tests, sm_80", lambda: on_gpu("sm_80", plan, 0)),
        ("ONNX tests, sm_90a", lambda: on_gpu("sm_90a", plan, 1)),
        ("ONNX tests, mesh", lambda: on_mesh(plan)),
        ("pytest", lambda: pytest(*slow, seconds=_TEST_SECONDS[plan.level])),
    ]


def slowest(times: Sequence[tuple[float, str]]) -> list[str]:
    """The lines on the tests that took longest."""
    return [f"{seconds:8.1f} s  {name}" for seconds, name in sorted(times, reverse=True)[:_SLOWEST]]


def main() -> int:
    """Run all checks; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=("fast", "normal", "full"), default="normal", help="how much to run")
    parser.add_argument("--seed", type=int, help="which part of what is sampled (default: the number of the day)")
    options = parser.parse_args()
    plan = Plan(options.level, sampling.default_seed() if options.seed is None else options.seed)
    print(f"level {plan.level}, seed {plan.seed}; the same parts again: --seed={plan.seed} or {sampling.VARIABLE}")
    total, rows = Count(), []
    todo = checks(plan)
    _DEADLINE.at = time.monotonic() + _ALL_SECONDS[plan.level]
    for number, (name, check) in enumerate(todo, 1):
        print(f"[check {number}/{len(todo)}] {name}", flush=True)
        started = time.monotonic()
        count = check()
        rows.append(f"{name + ':':22} {count} ({time.monotonic() - started:.0f}s)")
        print(rows[-1], flush=True)
        total += count
    print("\n" + "\n".join(rows))
    print("\nslowest tests:", *slowest(_TIMES), f"seed {plan.seed}", sep="\n")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
