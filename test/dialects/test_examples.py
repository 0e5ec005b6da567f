# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in descriptions are valid IR that prints as it parses; every op, type and attribute has one."""

import importlib
import re
from pathlib import Path

import pytest

from tilewright.mlir import ir

SOURCES = Path(__file__).resolve().parents[2] / "dialects"
#: Folder of a dialect -> its name in the IR.
DIALECTS = {"Tile": "tile", "SparseTile": "sparse_tile", "Fractal": "fractal", "CoreMesh": "coremesh"}
DEFINITION = r"^def {}_(\w+?)(?:Op|Attr|Type)\s*:(.*?)(?=^def |^class |\Z)"
EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.S)


def definitions(folder: str) -> dict[str, tuple[str, str]]:
    """Class name -> (mnemonic of an op or "", text of its definition)."""
    found = {}
    for file in sorted((SOURCES / folder).glob("*.td")):
        for name, text in re.findall(DEFINITION.format(folder), file.read_text(), re.S | re.M):
            mnemonic = re.match(rf"\s*{folder}_(?:\w*Op|ProgramStep|SemaphoreStep)<\"(\w+)\"", text)
            if mnemonic or 'summary = "' in text:
                found[f"{file.stem}.{name}"] = (mnemonic.group(1) if mnemonic else "", text)
    return found


DEFINITIONS = {folder: definitions(folder) for folder in DIALECTS}


@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder in DIALECTS for name in DEFINITIONS[folder]])
def test_example(folder: str, name: str) -> None:
    prefix = DIALECTS[folder]
    mnemonic, text = DEFINITIONS[folder][name]
    refers = re.search(rf"Example: see `{prefix}\.(\w+)`", text)
    if refers:
        owner = next(text for other, text in DEFINITIONS[folder].values() if other == refers.group(1))
        example = EXAMPLE.search(owner)
    else:
        example = EXAMPLE.search(text)
    assert example, f"{name} has no example"
    if mnemonic:
        assert f"{prefix}.{mnemonic}" in example.group(1)
    with ir.Context():
        module = ir.Module.parse(example.group(1))
        module.operation.verify()
        assert str(ir.Module.parse(str(module))) == str(module)


@pytest.mark.parametrize("folder", DIALECTS)
def test_all_found(folder: str) -> None:
    prefix = DIALECTS[folder]
    ops = {mnemonic for mnemonic, _ in DEFINITIONS[folder].values() if mnemonic}
    with ir.Context() as context:
        context.load_all_available_dialects()
        generated = importlib.import_module(f"tilewright.mlir.dialects._{prefix}_ops_gen")
        registered = {
            value.OPERATION_NAME.removeprefix(f"{prefix}.")
            for value in vars(generated).values()
            if isinstance(value, type) and hasattr(value, "OPERATION_NAME") and value.OPERATION_NAME
        }
    assert ops == registered
