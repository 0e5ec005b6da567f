# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes `tile.*` are declared once; code names them by the constants that come from the declarations."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.mlir import ir

ROOT = Path(__file__).resolve().parents[3]
#: A literal of an attribute's name. The name `tile.kernel` is also that of an operation.
LITERAL = re.compile(r'"tile\.(\w+)"')
#: One that is put together.
MADE = re.compile(r'attributes\b.*f"tile\.\{|f"tile\.\{.*attributes\b')
#: Where one may stand: what is generated, and a pass's option with a default that its user may change.
GENERATED = {"python/tilewright/ir/decisions.py", "python/tilewright/passes/count_ops.py"}


def sources() -> list[Path]:
    """Product code: Python and C++."""
    found = [*ROOT.glob("python/tilewright/**/*.py"), *ROOT.glob("lib/**/*.cpp"), *ROOT.glob("lib/**/*.h")]
    found += [*ROOT.glob("dialects/**/*.cpp"), *ROOT.glob("dialects/**/*.h")]
    return [f for f in found if "tilewright/mlir/" not in str(f) and str(f.relative_to(ROOT)) not in GENERATED]


def test_no_name_is_spelled_out() -> None:
    files = sources()
    assert len(files) > 500
    found = []
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            spelled = [name for name in LITERAL.findall(line) if f"tile.{name}" in decisions.ALL and name != "kernel"]
            if spelled or MADE.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "names of attributes: use tilewright.ir.decisions or TileDecisions.h\n" + "\n".join(found)


def test_generated_files_are_current() -> None:
    code = "import decisions, sys; sys.stdout.write(decisions.accessors(decisions.read()))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tools", capture_output=True, text=True, check=True)
    assert made.stdout == (ROOT / "python/tilewright/ir/decisions.py").read_text()


def test_accessors_read_what_they_write() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func private @f()")
        op = module.body.operations[0].operation
        decisions.SCRATCH_BYTES.set(op, 64)
        decisions.GRID.set(op, [4, 2])
        decisions.INPUTS.set(op, ["x", "y"])
        decisions.CODE.set(op)
        assert module.operation.verify()
        assert decisions.SCRATCH_BYTES.read(op) == 64 and decisions.GRID.read(op) == [4, 2]
        assert decisions.INPUTS.read(op) == ["x", "y"] and decisions.CODE.get(op) is True
        decisions.CODE.set(op, False)
        assert not decisions.CODE.on(op) and decisions.CODE.get(op) is None
        decisions.GRID.drop(op)
        assert str(decisions.GRID) == "tile.grid" and decisions.GRID not in op.attributes


def test_accessors_say_what_is_missing_or_wrong() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func private @f()")
        op = module.body.operations[0].operation
        with pytest.raises(UserError, match=r"has no `tile\.scratch_bytes`"):
            decisions.SCRATCH_BYTES.read(op)
        op.attributes["tile.scratch_bytes"] = ir.StringAttr.get("many")
        with pytest.raises(UserError, match=r'has a `tile\.scratch_bytes` that is not an i64: "many"'):
            decisions.SCRATCH_BYTES.get(op)


@pytest.mark.parametrize("name", sorted(decisions.ALL))
def test_each_is_refused_where_it_is_malformed(name: str) -> None:
    """A value that none may have: a type."""
    text = f"module attributes {{{name} = f32}} {{}}"
    with ir.Context(), pytest.raises(ir.MLIRError, match=f"attribute {re.escape(name)} must be an? "):
        ir.Module.parse(text)
