# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each pass's description holds an example of the IR before and after; the pass really makes the one of the other.

"Before:" is a whole module. "After:" is a piece of what tile-opt prints for it, where values may have other names and
`...` stands for what is left out; or the word "unchanged".
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.passes.registry import load_builtin_passes, registered_passes

ROOT = Path(__file__).resolve().parents[3]
CPP = re.compile(r'^def \w+ : Pass<"([\w-]+)".*?let description = \[\{(.*?)\}\];', re.S | re.M)
EXAMPLE = re.compile(r"Before:\s*```mlir\n(.*?)```\s*After(?::| \([^)]*\):)\s*(?:```mlir\n(.*?)```|unchanged)", re.S)
#: What passes that need a device are run for, where the example names none.
DEVICES = dict.fromkeys(
    (
        "tile-fuse-dequantization",
        "tile-im2col-rows",
        "tile-plan-gpu-tiles",
        "tile-split-k",
        "tile-split-kv",
        "tile-transpose-operands",
    ),
    "nvidia-sm80",
) | {"tile-plan-sparsity": "cpu:icelake-server", "tile-plan-wavefronts": "nvidia-h100"}
VALUE = re.compile(r"%\w+")


DEVICES |= dict.fromkeys(
    ("tile-group-experts", "tile-lower-sparse", "tile-plan-dynamic", "tile-skip-masked-blocks"), "host-generic-avx512"
)
DEVICES["tile-skip-padding"] = "host-generic-avx512 padded=mask"
DEVICES |= dict.fromkeys(("tile-bound-sizes", "tile-plan-mesh", "tile-plan-streams", "tile-fit-mesh"), "mesh:toy8x8")


def descriptions() -> dict[str, str]:
    """Name -> description of each pass, in C++ or Python."""
    load_builtin_passes()
    found = {name: cls.__doc__ or "" for name, cls in registered_passes().items() if is_ours(cls)}
    for file in ROOT.glob("lib/*/*/Passes.td"):
        found.update(CPP.findall(file.read_text()))
    return found


def is_ours(cls: type) -> bool:
    """Whether a pass is of the package, not of a test."""
    return cls.__module__.startswith("tilewright.")


def pattern(after: str) -> re.Pattern:
    """What matches the text with any white space, any names of values and anything for `...`."""
    names: dict[str, str] = {}

    def value(found: re.Match) -> str:
        if found[0] in names:
            return f"(?P={names[found[0]]})(?!\\w)"
        names[found[0]] = f"v{len(names)}"
        return f"(?P<{names[found[0]]}>%\\w+)"

    def words(text: str) -> str:
        kept = VALUE.split(text)
        values = [value(found) for found in VALUE.finditer(text)] + [""]
        return "".join(re.escape(k) + v for k, v in zip(kept, values, strict=True))

    pieces = [r"\s+".join(words(word) for word in piece.split()) for piece in after.split("...")]
    return re.compile(r".*?".join(rf"\s*{piece}\s*" if piece else "" for piece in pieces), re.S)


def opt(text: str, *flags: str) -> str:
    """What tile-opt prints."""
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", "-", *flags]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


DESCRIPTIONS = descriptions()


@pytest.mark.parametrize("name", sorted(DESCRIPTIONS))
def test_example(name: str) -> None:
    example = EXAMPLE.search(DESCRIPTIONS[name])
    assert example, f"{name} has no example in the form 'Before: ... After: ...'"
    before, after = example.groups()
    first = [f"--tile-set-target=target={DEVICES[name]}"] if name in DEVICES else []
    output = opt(before, *first, f"--{name}")
    if after is None:
        assert output == opt(before, *first)
    else:
        assert pattern(after).search(output), output


def test_all_found() -> None:
    count = sum(len(re.findall(r"^def \w+ : Pass<", file.read_text(), re.M)) for file in ROOT.glob("lib/*/*/Passes.td"))
    python = sum(is_ours(cls) for cls in registered_passes().values())
    assert len(DESCRIPTIONS) == count + python > 20


@pytest.mark.parametrize("name", sorted(DESCRIPTIONS))
def test_lit_test_exists(name: str) -> None:
    files = list((ROOT / "test").rglob(f"{name}.mlir"))
    assert len(files) == 1, f"{name} needs one lit test called {name}.mlir"
    assert re.search(rf"RUN:.*tile-opt.* -?-{name}\b", files[0].read_text())


@pytest.mark.parametrize(
    ("after", "matches"),
    [
        ("%x = a %y ... b %x", True),
        ("%x = a %y\n b %x", False),
        ("%x = a %y ... b %y", False),
        ("= a", True),
        ("= d", False),
    ],
)
def test_pattern(after: str, matches: bool) -> None:
    assert bool(pattern(after).search("%0 = a %arg0\n  %1 = c\n  b %0\n")) == matches
