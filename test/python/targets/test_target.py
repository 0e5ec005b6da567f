"""Target strings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.devices.llvm_target import feature_string
from tilewright.targets.registry import checked, parse_target


def test_unknown_targets():
    for text in ("gpu", "", "reference:x", None):
        with pytest.raises(UserError, match=r"unknown target .*; this version has cpu .*cpu:NAME.*reference"):
            checked(text)


def test_gpus():
    assert all(checked(text).kind == "cuda" for text in ("cuda", "cuda:sm_80", "cuda:sm_90a"))
    for text in ("cuda:sm_86", "cuda:90", "cuda:"):
        with pytest.raises(UserError, match=r"code is made for cuda:sm_80 and cuda:sm_90a; "):
            checked(text)


def test_reference():
    target = parse_target("reference")
    assert target.kind == "reference" and target.device is None
    assert parse_target(target) is target


def test_feature_string():
    assert feature_string(["b", "a"], ["a", "d", "c"]) == "+a,+b,-c,-d"


def test_this_host():
    pytest.importorskip("tilewright.mlir._mlir_libs._tilewright")
    from tilewright.runtime.cpu.cpu_features import host_features

    target = parse_target("cpu")
    assert target.cpu and target.device.kind == "cpu"
    assert "+sse2" in target.features
    assert set(target.needed) <= host_features()


def test_another_cpu():
    pytest.importorskip("tilewright.mlir._mlir_libs._tilewright")
    target = parse_target("cpu:x86-64-v3")
    assert target.cpu == "x86-64-v3" and {"avx2", "fma", "f16c"} <= set(target.needed)
    assert "avx512f" not in target.needed
    with pytest.raises(UserError, match="no x86 CPU named 'znver55': did you mean"):
        parse_target("cpu:znver55")


def test_a_described_machine(tmp_path):
    """Its features are its CPU's where it names none; what it says counts for the plan and for the cache."""
    text = (Path(devices.__file__).parent / "host-generic-avx512.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('name = "host-generic-avx512"', 'name = "mine"').replace("1048576", "524288"))
    target = parse_target(f"cpu:{path}")
    assert target.device is not None and target.device.level("l2").bytes == 524288
    assert "+avx512f" in target.features and "avx512f" in target.needed


@pytest.mark.parametrize("name", [n for n in devices.file_names() if n.startswith("host-generic")])
def test_generic_machines(name):
    target = parse_target(f"cpu:{name}")
    assert target.features and target.needed


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("cuda:sm_75", "sm_75 is too old"),
        ("cuda:sm_90", "cuda:sm_90a is meant"),
        ("cuda:sm_86", "this GPU runs the code of cuda:sm_80"),
        ("cuda:h100", "an architecture is meant, as in cuda:sm_90a for H100"),
    ],
)
def test_an_unknown_gpu_is_told_what_to_ask_for(text: str, hint: str) -> None:
    """By what its name says."""
    with pytest.raises(UserError, match=hint):
        checked(text)
