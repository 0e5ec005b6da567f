#!/usr/bin/env python3
"""Fetch the sources of MLIR's Python bindings, once, into a cache folder.

Debian's LLVM packages hold MLIR's C++ headers and libraries but not its Python bindings, and bindings built
elsewhere cannot host this project's dialects. So they are built here, from the sources of the identical version:
the original tarball of the Debian source package, checked by its SHA-256. Prints the folder that holds `mlir/`.

Usage: fetch_mlir_sources.py VERSION     (e.g. 22.1.8)
Environment: MLIR_SOURCE_DIR      an unpacked llvm-project (or its mlir folder's parent) to use instead
             TILEWRIGHT_CACHE_DIR cache folder, default ~/.cache/tilewright
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHA256 = {"22.1.8": "b49b9277aef97616320b2da259e1f8174c65b0ce2fbe2e8629644a97693402fe"}
PARTS = ("mlir/python", "mlir/lib/Bindings/Python")
SOURCE_SUITES = ("sid", "forky", "trixie")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
OVERRIDE_HINT = (
    "Unpack the llvm-project release tarball of the same version yourself and set MLIR_SOURCE_DIR to that folder."
)


class FetchError(Exception):
    """A failure that the user can act upon; its text is one line."""


def say(text: str) -> None:
    """Print progress to stderr: stdout is kept for the result."""
    print(f"[mlir-sources] {text}", file=sys.stderr, flush=True)


def cache_dir() -> Path:
    """The project's cache folder, outside the build tree."""
    configured = os.environ.get("TILEWRIGHT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(configured or f"{base}/tilewright").expanduser()


def check_tree(root: Path, origin: str) -> Path:
    """Raise FetchError unless `root` holds the parts of MLIR that are built here."""
    for part in PARTS:
        if not (root / part).is_dir():
            raise FetchError(f"{origin}: {root} holds no {part}. {OVERRIDE_HINT}")
    return root


def source_version(root: Path) -> str | None:
    """The LLVM version of an unpacked llvm-project, None where it cannot be told."""
    file = root / "cmake/Modules/LLVMVersion.cmake"
    if not file.is_file():
        return None
    found = dict(re.findall(r"set\(LLVM_VERSION_(MAJOR|MINOR|PATCH) (\d+)\)", file.read_text()))
    return ".".join(found.get(part, "?") for part in ("MAJOR", "MINOR", "PATCH"))


def overridden(directory: str, version: str) -> Path:
    """The user's own source folder, its version compared with the installed one."""
    root = check_tree(Path(directory).expanduser().resolve(), "MLIR_SOURCE_DIR")
    found = source_version(root)
    if found is None:
        say(f"MLIR_SOURCE_DIR: version unknown, taken as {version}")
    elif found != version:
        if found.rsplit(".", 1)[0] != version.rsplit(".", 1)[0]:
            raise FetchError(f"MLIR_SOURCE_DIR holds LLVM {found}, but {version} is installed. {OVERRIDE_HINT}")
        say(f"remark: MLIR_SOURCE_DIR holds LLVM {found}, {version} is installed")
    return root


def mirrors() -> list[str]:
    """Debian mirrors named in the system's package lists, in order, without security and third-party ones."""
    sources = Path("/etc/apt/sources.list.d")
    files = [Path("/etc/apt/sources.list"), *sorted(sources.glob("*.sources")), *sorted(sources.glob("*.list"))]
    found: list[str] = []
    for file in files:
        text = file.read_text() if file.is_file() else ""
        active = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        for address in re.findall(r"(?:https?|mirror\+file|file|copy)://?\S+/debian/?(?=\s|$)", active):
            if address not in found:
                found.append(address)
    if not found:
        raise FetchError(f"no Debian mirror in /etc/apt/sources.list*. {OVERRIDE_HINT}")
    return found


def run(command: list[str], what: str) -> str:
    """Run a command and return its output; a failure becomes a FetchError with the last lines of its log."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        tail = " | ".join((result.stderr or result.stdout).strip().splitlines()[-2:])
        raise FetchError(f"{what} failed: {tail}. {OVERRIDE_HINT}")
    return result.stdout


def apt_options(work: Path, mirror: str, suite: str) -> list[str]:
    """Options that make apt use a private source list and leave the system's state alone."""
    signed = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
    (work / "sources.list").write_text(f"deb-src {signed}{mirror} {suite} main\n")
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": work / "lists",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "",
    }
    return [f"-o{key}={value}" for key, value in settings.items()]


def tarball_line(work: Path, version: str) -> tuple[str, str]:
    """Address and SHA-256 of the original tarball of `version`, from the first mirror and suite that carries it."""
    package = f"llvm-toolchain-{version.split('.')[0]}"
    pattern = rf"'(\S+/{package}_{re.escape(version)}\.orig\.tar\.xz)' \S+ \d+ SHA256:(\w+)"
    problems = []
    for mirror in mirrors():
        for suite in SOURCE_SUITES:
            options = apt_options(work, mirror, suite)
            try:
                run(["apt-get", *options, "-q", "update"], f"reading {mirror} {suite}")
                listing = run(["apt-get", *options, "source", "--print-uris", "-qq", package], f"finding {package}")
            except FetchError as error:
                problems.append(str(error))
                continue
            if match := re.search(pattern, listing):
                return match[1], match[2]
            problems.append(f"{suite} carries another version")
    raise FetchError(f"no mirror carries the sources of LLVM {version} ({'; '.join(problems)}). {OVERRIDE_HINT}")


def fetch(version: str, target: Path) -> None:
    """Download, verify and unpack into `target`; leaves nothing behind when it fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        work = Path(folder)
        say(f"looking for the source package of LLVM {version}")
        address, listed = tarball_line(work, version)
        expected = SHA256.get(version, listed)
        say(f"downloading {address} (about 200 MB)")
        tarball = work / "orig.tar.xz"
        helper = "/usr/lib/apt/apt-helper"
        options = ["-oAPT::Sandbox::User="]
        run([helper, *options, "download-file", address, str(tarball), f"SHA256:{expected}"], "the download")
        say("unpacking mlir/python and mlir/lib/Bindings/Python")
        tree = work / "tree"
        tree.mkdir()
        patterns = [f"*/{part}" for part in PARTS]
        command = ["tar", "-xJf", str(tarball), "-C", str(tree), "--strip-components=1", "--wildcards", *patterns]
        run(command, "unpacking")
        check_tree(tree, "the source package")
        if target.exists():
            shutil.rmtree(target)
        tree.rename(target)


def locate(version: str) -> Path:
    """The folder that holds `mlir/`: the user's own, the cached one, or a fresh download."""
    if directory := os.environ.get("MLIR_SOURCE_DIR"):
        return overridden(directory, version)
    target = cache_dir() / f"mlir-src-{version}"
    if not all((target / part).is_dir() for part in PARTS):
        fetch(version, target)
    return target


def main() -> int:
    """Print the folder; exit 1 with one line on stderr where it cannot be had."""
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        print("usage: fetch_mlir_sources.py VERSION (such as 22.1.8)", file=sys.stderr)
        return 2
    try:
        print(locate(sys.argv[1]))
    except (FetchError, OSError) as error:
        print(f"error: sources of MLIR's Python bindings: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
