# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a module is compiled for stands on it, and is read there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.ir.target_info import ModuleOptions, annotate, device_of, find_device, options_of
from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, run_pipeline


@pytest.fixture
def module():
    with ir.Context():
        load_builtin_passes()
        yield ir.Module.parse("func.func @f() { return }")


@pytest.mark.parametrize("target", ["cpu", "cpu:znver5", "cpu:sapphirerapids", "cuda:sm_90a", "wse2"])
def test_device_comes_back(module: ir.Module, target: str) -> None:
    device = devices.get(target)
    annotate(module, device)
    function = module.body.operations[0]
    assert device_of(function) == device
    again = ir.Module.parse(str(module), module.context)
    assert device_of(again) is device_of(function), "read once"
    other = replace(device, units=replace(device.units, count=device.units.count + 1))
    annotate(module, other)
    assert device_of(module) == other


def test_options_come_back(module: ir.Module) -> None:
    assert options_of(module) == ModuleOptions()
    options = ModuleOptions("int8", "fast", 2, ("a:1", "b:2"), ("-1.0:2.5",))
    annotate(module, devices.get("cpu:znver5"), options)
    assert options_of(module.body.operations[0]) == options
    annotate(module, devices.get("cpu:znver5"), {"accuracy": "winograd"})
    assert options_of(module) == ModuleOptions(accuracy="winograd")


def test_errors(module: ir.Module) -> None:
    assert find_device(module) is None
    with pytest.raises(UserError, match=r"pass 'p' needs to know the device.*`tile.device`.*tile-set-target"):
        device_of(module, "pass 'p'")
    with pytest.raises(UserError, match="has no option 'acuracy': there are accuracy, append_in_place, choices"):
        annotate(module, devices.get("cpu:znver5"), {"acuracy": "fast"})
    module.operation.attributes["tile.options"] = ir.Attribute.parse('{lanes = "8"}')
    with pytest.raises(UserError, match="`tile.options` has no option 'lanes'"):
        options_of(module)


def test_text_wins_over_the_device(module: ir.Module) -> None:
    """A pass takes what its text says, then what the device says, then a default."""
    loop = """
    tile.kernel @k(%x: memref<4096xf32>) grid(%i) { tile.return }
    func.func @main(%x: memref<4096xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.for %t = %c0 to %c8 step %c1 {
        tile.launch @k grid(%c8) outs(%x : memref<4096xf32>)
      }
      return
    }"""
    device = devices.get("cpu:znver5")

    def units(annotated: bool, options: str = "") -> str:
        made = ir.Module.parse(loop, module.context)
        if annotated:
            annotate(made, replace(device, units=replace(device.units, count=4)))
        run_pipeline(made.operation, f"builtin.module(tile-plan-programs{options})")
        return str(made).partition("tile.units = ")[2][:1]

    assert (units(True, "{units=3}"), units(True), units(False)) == ("3", "4", "2")
