# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compile cache: whole models and single kernels, keyed by content.

A key covers everything that the result depends on: the model's bytes, the options, the CPU, the build of the extension
and the sources of all Python passes, the user's included. Entries appear whole (written beside, then renamed), are
checked when read, and the least recently used ones go when the cache exceeds TILEWRIGHT_CACHE_SIZE.

::

    compiled/<key>/        an artifact, see runtime/artifact.py
    kernels/<key>.o        object code of one kernel, behind its SHA-256
    size, looked           bytes of all entries, about; the time of this file: when they were last counted
    code/<hash>.so         code of archives, unpacked to be loaded
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewright.core import config, plugins
from tilewright.core.cpuinfo import cpuinfo
from tilewright.core.errors import UserError

_DIGEST = 32
_LOOK_SECONDS = 24 * 3600
_LEFTOVER_SECONDS = 24 * 3600  # no compilation takes that long
_ROOM = 0.25  # part of the limit that is free after a full cache was pruned
_KINDS = ("compiled", "kernels", "code")


def digest(*parts: str | bytes) -> str:
    """Return a key for text and bytes; where one part ends and the next begins counts."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:40]


def compiler_id() -> str:
    """Return what identifies this compiler: its Python sources, devices, libraries, the user's passes."""
    package = Path(__file__).parents[1]
    state = hashlib.sha256(_package_id(package).encode())
    for path in _user_passes(package):
        state.update(path.read_bytes())
    return state.hexdigest()[:40]


@functools.cache
def _package_id(package: Path) -> str:
    """What this process has loaded: read once, since a file that changes later changes nothing that runs here."""
    state = hashlib.sha256()
    for path in sorted([*package.rglob("*.py"), *package.glob("devices/**/*.toml")]):
        relative = path.relative_to(package)
        if relative.parts[0] != "mlir":
            state.update(str(relative).encode())
            state.update(path.read_bytes())
    state.update(libraries_id().encode())
    return state.hexdigest()


def libraries_id() -> str:
    """Return what identifies the built part: MLIR, LLVM and the extension (name, size and time of each library)."""
    parts = []
    for path in sorted((Path(__file__).parents[1] / "mlir" / "_mlir_libs").glob("*.so*")):
        info = path.stat()
        parts.append(f"{path.name} {info.st_size} {info.st_mtime_ns}")
    return digest(*parts)


def _user_passes(package: Path) -> Iterable[Path]:
    """Return the files of Python passes that are registered in this process and not ours."""
    files = {inspect.getsourcefile(cls) for cls in plugins.PASSES.values()}
    return sorted(Path(file) for file in files if file and not Path(file).is_relative_to(package))


def host_id() -> str:
    """Return what identifies this machine's CPU, caches and share of cores."""
    info = cpuinfo()
    parts = [info.get(name, "") for name in ("vendor_id", "cpu family", "model", "stepping", "flags")]
    for size in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")):
        parts.append(size.read_text())
    return digest(*parts, str(len(os.sched_getaffinity(0))), *config.hide_features.get())


@dataclass(frozen=True)
class Entry:
    """One entry: its kind, its path, bytes and the time of its last use."""

    kind: str
    path: Path
    size: int
    used: float


def root() -> Path:
    """Return the cache's folder."""
    return config.cache_dir.get()


def find_model(key: str) -> Path | None:
    """Return the folder of a model, or None; marks it as used."""
    path = root() / "compiled" / key
    if not config.cache.get() or not (path / "manifest.json").is_file():
        return None
    _touch(path)
    return path


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder on the cache's file system to build a model in; what is left of it at the end is removed.

    Raises:
        UserError: the cache cannot be written.
    """
    parent = root() / "compiled" if config.cache.get() else Path(tempfile.gettempdir())
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".new-tilewright-", dir=parent))
    except OSError as error:
        raise UserError(
            f"cannot write to the cache {parent}: {error.strerror}; set TILEWRIGHT_CACHE_DIR to another folder, or "
            "TILEWRIGHT_CACHE=0 to do without"
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish_model(folder: Path, key: str) -> Path:
    """Make a built folder the entry `key` and return its place; an entry made meanwhile by another process wins."""
    path = root() / "compiled" / key
    folder.chmod(0o755)
    try:
        os.rename(folder, path)
    except OSError:
        if not (path / "manifest.json").is_file():
            remove(path)
            os.rename(folder, path)
    _prune_if_due(_size(path))
    return path


def find_kernel(key: str) -> bytes | None:
    """Return the object code of a kernel, or other bytes that were added; None where there is none, or a damaged one.

    A damaged one is removed.
    """
    if not config.cache.get():
        return None
    path = root() / "kernels" / f"{key}.o"
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        remove(path)
        return None
    _touch(path)
    return data[_DIGEST:]


def add_kernel(key: str, code: bytes) -> None:
    """Add the object code of a kernel, or an ONNX model that was converted; an unwritable cache is left alone."""
    if not config.cache.get():
        return
    folder = root() / "kernels"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, folder / f"{key}.o")
        except OSError:
            os.unlink(temporary)


def entries() -> list[Entry]:
    """Return all entries, the least recently used first."""
    found = []
    for kind in _KINDS:
        for path in _listdir(root() / kind):
            with contextlib.suppress(OSError):
                found.append(Entry(kind, path, _size(path), path.stat().st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def prune(limit: int | None = None) -> int:
    """Remove the least recently used entries until the rest fits in `limit` bytes; return how many went.

    Args:
        limit: default TILEWRIGHT_CACHE_SIZE. The newest entry always stays.
    """
    return _look_through(config.cache_size.get() if limit is None else limit)[0]


def _look_through(limit: int, room: float = 0.0) -> tuple[int, int]:
    """Prune where entries exceed a limit, until that part of it is free; how many went, and the bytes that are left."""
    _remove_leftovers()
    found = entries()
    total = sum(entry.size for entry in found)
    removed, kept = 0, (1 - room) * limit if total > limit else limit
    for entry in found[:-1]:
        if total <= kept:
            break
        remove(entry.path)
        total -= entry.size
        removed += 1
    return removed, total


def clear() -> tuple[int, int]:
    """Remove everything; return the number of entries and of bytes."""
    found = entries()
    for entry in found:
        remove(entry.path)
    return len(found), sum(entry.size for entry in found)


def remove(path: Path) -> None:
    """Remove an entry; another process may have done so already."""
    if path.is_dir():
        doomed = path.with_name(f".old-{path.name}-{os.getpid()}")
        with contextlib.suppress(OSError):
            os.rename(path, doomed)
            path = doomed
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _prune_if_due(added: int) -> None:
    """Prune where the cache may have exceeded its limit since it was last looked through, or once a day.

    A look through thousands of entries takes longer than to compile a small model. The file ``size`` holds an estimate:
    the bytes found by the last look, and twice (the model's own and its kernels') what was added since. Processes that
    write it at once may lose some; the daily look corrects it. Of a full cache more goes than the new entry needs, or
    each compilation would look through it.
    """
    stamp, looked, limit = root() / "size", root() / "looked", config.cache_size.get()
    try:
        estimate = int(stamp.read_text()) + 2 * added
        due = estimate > limit or time.time() - looked.stat().st_mtime > _LOOK_SECONDS
    except (OSError, ValueError):
        due, estimate = True, 0
    if due:
        _, estimate = _look_through(limit, _ROOM)
        _write(looked, "")
    _write(stamp, str(estimate))


def _write(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(text)
        os.replace(temporary, path)


def _remove_leftovers() -> None:
    """Remove what processes that were killed had begun to write or to remove."""
    for kind in _KINDS:
        for path in (root() / kind).glob(".*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _LEFTOVER_SECONDS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _listdir(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return []


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)
