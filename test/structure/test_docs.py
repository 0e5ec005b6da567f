# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages of documentation: what they name exists, and they have the sizes that readers are promised."""

from __future__ import annotations

import functools
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("Reference.md", "Operators.md", "Results.md")
SUFFIXES = (".py", ".cpp", ".h", ".td", ".md", ".cmake")
NOT_OURS = {"cuda.h"}  # files of other projects that pages name
TOOLS = {"tile-opt", "tile-lsp-server", "tile-reduce", "tile-run"}


@functools.cache
def tracked() -> tuple[str, ...]:
    """Every file that git knows of, or would take."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return tuple(name for name in names if (ROOT / name).is_file())


@functools.cache
def folders() -> frozenset[str]:
    """Every folder that holds one of these files."""
    return frozenset(str(parent) for name in tracked() for parent in Path(name).parents)


@functools.cache
def sources() -> str:
    """All that is written in Python, C++, ODS and CMake."""
    places = ("python/", "lib/", "dialects/", "tools/")
    kinds = (".py", ".cpp", ".h", ".td", ".txt")
    return "\n".join((ROOT / n).read_text() for n in tracked() if n.startswith(places) and n.endswith(kinds))


@functools.cache
def passes() -> frozenset[str]:
    """Names of all passes, in C++ and in Python."""
    text = sources()
    named = re.findall(r': Pass<"([\w-]+)"', text) + re.findall(r'name(?:: ClassVar\[str\])? = "(tile-[\w-]+)"', text)
    return frozenset(named)


def pages() -> list[str]:
    return [name for name in tracked() if name.endswith(".md")]


def prose(page: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)


def quoted(page: str) -> list[str]:
    """What stands in backticks, a line break counting as a space."""
    return [" ".join(text.split()) for text in re.findall(r"`([^`]+)`", prose(page))]


def _is_path(text: str) -> bool:
    """Whether a quoted text is meant as a file or folder of this repository."""
    if not re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*/?", text) or text in NOT_OURS:
        return False
    first = text.split("/")[0]
    return text.endswith(SUFFIXES) or ("/" in text and f"{first}" in _roots())


@functools.cache
def _roots() -> frozenset[str]:
    """Folders that a path in prose may begin with: of the repository, of the package, of the tools."""
    return frozenset(Path(f).name for f in folders() if str(Path(f).parent) in (".", "python/tilewright"))


def _exists(text: str) -> bool:
    """Whether a tracked file or folder ends in this path; `*` stands for any part of a name."""
    text = text.rstrip("/")
    return any(fnmatch("/" + name, "*/" + text) for name in (*tracked(), *folders()))


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    local = [target.split("#")[0] for target in targets if "://" not in target and not target.startswith("#")]
    assert [target for target in local if not ((ROOT / page).parent / target).exists()] == []


@pytest.mark.parametrize("page", pages())
def test_paths_in_prose_exist(page: str) -> None:
    assert [text for text in quoted(page) if _is_path(text) and not _exists(text)] == []


@pytest.mark.parametrize("page", pages())
def test_modules_in_prose_exist(page: str) -> None:
    missing = []
    for text in quoted(page):
        match = re.match(r"tilewright(?:\.\w+)+", text)
        if match and not match.group().startswith("tilewright.mlir"):
            parts = match.group().split(".")
            # The last parts may name a class in the module, and a method of it.
            paths = ["python/" + "/".join(parts[:end]) for end in range(len(parts), max(1, len(parts) - 3), -1)]
            if not any(path + ".py" in tracked() or path in folders() for path in paths):
                missing.append(text)
    assert missing == []


@pytest.mark.parametrize("page", pages())
def test_passes_and_attributes_in_prose_exist(page: str) -> None:
    missing = []
    for text in quoted(page):
        name = re.match(r"(?:tile|convert-tile|convert-host)-[a-z0-9-]+", text)
        if name and name.group() not in passes() | TOOLS and f'"{name.group()}' not in sources():
            missing.append(text)
        attribute = re.fullmatch(r"#?(tile\.[a-z_0-9]+)", text)
        if attribute and attribute.group(1) not in sources():
            missing.append(text)
    assert missing == []


def test_pages_are_short() -> None:
    too_long = []
    for page in pages():
        text = (ROOT / page).read_text()
        lines = text.count("\n")
        if page == "README.md":
            too_long += [f"{page}: {lines} lines"] if lines > 120 else []
        elif page.endswith("/README.md"):
            too_long += [f"{page}: {lines} lines"] if lines > 80 else []
        elif "/rationale/" in page:
            words = len(text.split())
            too_long += [f"{page}: {words} words"] if words > 1500 else []
    assert too_long == []


def test_pages_of_reasons_can_be_found() -> None:
    """Each one is linked from another page."""
    links = {
        str(((ROOT / page).parent / target.split("#")[0]).resolve().relative_to(ROOT))
        for page in pages()
        for target in re.findall(r"\]\(([^)\s:]+)\)", prose(page))
    }
    assert [page for page in pages() if "/rationale/" in page and page not in links] == []


def test_every_folder_of_the_package_says_what_it_is() -> None:
    """By a README of its own, or in that of a folder above it."""
    unnamed = []
    for folder in sorted(folders()):
        modules = [n for n in tracked() if str(Path(n).parent) == folder and n.endswith(".py") and "__init__" not in n]
        if folder.startswith("python/tilewright/") and modules and f"{folder}/README.md" not in tracked():
            above = [ROOT / parent / "README.md" for parent in list(Path(folder).parents)[:2]]
            named = any(f"`{Path(folder).name}/`" in readme.read_text() for readme in above if readme.is_file())
            unnamed += [] if named else [folder]
    assert unnamed == []


def test_readmes_of_code_say_where_the_tests_are() -> None:
    places = ("python/", "lib/", "dialects/", "tools/")
    readmes = [page for page in pages() if page.startswith(places) and page.endswith("README.md")]
    assert [page for page in readmes if "`test/" not in (ROOT / page).read_text()] == []


def test_the_main_path_has_at_most_twenty_files_in_order() -> None:
    text = (ROOT / "python/tilewright/rationale/main_path.md").read_text()
    steps = re.findall(r"^(\d+)\. `([^`]+)`:", text, flags=re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 10 <= len(steps) <= 20
    assert [path for _, path in steps if path not in tracked()] == []
