# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who imports whom in `python/tilewright`, read from the sources without running them.

An import counts wherever it stands, in a function too; one under `if TYPE_CHECKING` does not: nothing runs it. A string
that is the name of a module counts as an import of it (`importlib.import_module`, `python -m`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "tilewright"
#: The bindings, which the build makes of upstream's sources and ours.
BUILT = "tilewright.mlir"

#: How code that no run reaches is marked.
GUARDS = ("TYPE_CHECKING", "typing.TYPE_CHECKING")

Graph = dict[str, set[str]]


def sources() -> dict[str, Path]:
    """Every module by its dotted name; a package's is that of its `__init__.py`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not f"{name}.".startswith(f"{BUILT}."):
            found[name] = path
    return found


def import_graph() -> Graph:
    """For each module the modules that it imports, itself left out."""
    modules = sources()
    trees = {name: ast.parse(path.read_text()) for name, path in modules.items()}
    return {name: set(_imported(tree, modules)) - {name} for name, tree in trees.items()}


def _imported(tree: ast.Module, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in _running(tree):
        if isinstance(node, ast.Import):
            yield from (_nearest(alias.name, modules) for alias in node.names if _is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports name their module in full"
            if _is_ours(node.module or ""):
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                yield from (_nearest(name, modules) for name in names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "." in node.value
            and node.value in modules
        ):
            yield node.value


def _is_ours(name: str) -> bool:
    """Whether it is a module or a name of this package, the built bindings left out."""
    return f"{name}.".startswith("tilewright.") and not f"{name}.".startswith(f"{BUILT}.")


def _nearest(name: str, modules: Mapping[str, Path]) -> str:
    """The module that a dotted name stands in: itself, or the module that defines it."""
    return name if name in modules else name.rpartition(".")[0]


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that may run: not those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in GUARDS:
            for other in child.orelse:
                yield from (other, *_running(other))
        else:
            yield child
            yield from _running(child)


def siblings(graph: Graph) -> dict[str, Graph]:
    """For each package the arrows between what stands in it: modules, and packages with all that is in them.

    A package's own `__init__` stands among its members under the package's name.
    """
    levels: dict[str, Graph] = {}
    for module, imported in graph.items():
        for other in imported:
            level, one, two = _meeting(module, other)
            levels.setdefault(level, {}).setdefault(one, set()).add(two)
    return levels


def _meeting(one: str, two: str) -> tuple[str, str, str]:
    """The package that holds both, and the members of it by which they meet."""
    a, b = one.split("."), two.split(".")
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return ".".join(a[:same]), ".".join(a[: same + 1]), ".".join(b[: same + 1])


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other, each sorted."""
    reach = {node: _reached(graph, node) for node in graph}
    groups = {frozenset({node, *(m for m in seen if node in reach.get(m, ()))}) for node, seen in reach.items()}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reached(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for node in graph.get(waiting.pop(), ()):
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen
