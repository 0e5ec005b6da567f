# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the dialect's descriptions are valid IR; every op, type and attribute has one."""

import re
from pathlib import Path

import pytest

from tilewright.mlir import ir

SOURCES = Path(__file__).resolve().parents[3] / "dialects" / "Tile"
DEFINITION = re.compile(r"^def Tile_(\w+?)(?:Op|Attr|Type)\s*:(.*?)(?=^def |^class |\Z)", re.S | re.M)
EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.S)


def definitions() -> dict[str, tuple[str, str]]:
    """Class name -> (mnemonic of an op or "", text of its definition)."""
    found = {}
    for file in sorted(SOURCES.glob("*.td")):
        for name, text in DEFINITION.findall(file.read_text()):
            mnemonic = re.match(r"\s*Tile_(?:Op|ProgramStep|SemaphoreStep)<\"(\w+)\"", text)
            if mnemonic or 'summary = "' in text:
                found[f"{file.stem}.{name}"] = (mnemonic.group(1) if mnemonic else "", text)
    return found


DEFINITIONS = definitions()


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_example(name: str) -> None:
    mnemonic, text = DEFINITIONS[name]
    refers = re.search(r"Example: see `tile\.(\w+)`", text)
    if refers:
        owner = next(text for other, text in DEFINITIONS.values() if other == refers.group(1))
        example = EXAMPLE.search(owner)
    else:
        example = EXAMPLE.search(text)
    assert example, f"{name} has no example"
    if mnemonic:
        assert f"tile.{mnemonic}" in example.group(1)
    with ir.Context():
        ir.Module.parse(example.group(1)).operation.verify()


def test_all_found() -> None:
    ops = {mnemonic for mnemonic, _ in DEFINITIONS.values() if mnemonic}
    with ir.Context() as context:
        context.load_all_available_dialects()
        from tilewright.mlir.dialects import _tile_ops_gen

        registered = {
            value.OPERATION_NAME.removeprefix("tile.")
            for value in vars(_tile_ops_gen).values()
            if isinstance(value, type) and hasattr(value, "OPERATION_NAME") and value.OPERATION_NAME
        }
    assert ops == registered
