# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which Python passes exist."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import TypeVar

from tilewright.core.errors import UserError
from tilewright.passes.base import Pass, make_callable, option_specs, summary

BUILTIN_MODULES: tuple[str, ...] = (
    "tilewright.passes.count_ops",
    "tilewright.normalize.generalize",
    "tilewright.normalize.widen_floats",
    "tilewright.normalize.fold_transposes",
    "tilewright.normalize.split_by_slices",
    "tilewright.normalize.join_rows",
    "tilewright.normalize.fold_roundings",
    "tilewright.normalize.sink_scales",
    "tilewright.normalize.float8_products",
    "tilewright.normalize.scale_results",
    "tilewright.normalize.materialize_copies",
    "tilewright.normalize.assert_early",
    "tilewright.normalize.verify_normalized",
    "tilewright.plan.lowbit.widen_operands",
    "tilewright.plan.lowbit.mark_widened",
    "tilewright.plan.conv.winograd",
    "tilewright.plan.conv.split_micro_batches",
    "tilewright.plan.lowbit.int8_matmul",
    "tilewright.plan.lowbit.weight_only_quantization",
    "tilewright.plan.model.mark_host_fallback",
    "tilewright.plan.graph.plan_orders",
    "tilewright.plan.gpu.allow_tf32",
    "tilewright.plan.lowbit.narrow_products",
    "tilewright.plan.graph.plan_fusion",
    "tilewright.plan.cpu.plan_tiles",
    "tilewright.plan.attention.plan_online",
    "tilewright.plan.conv.fold_padding",
    "tilewright.plan.lowbit.narrow_operands",
    "tilewright.plan.conv.im2col_rows",
    "tilewright.plan.conv.follow_groups",
    "tilewright.plan.lowbit.fuse_dequantization",
    "tilewright.plan.gpu.transpose_operands",
    "tilewright.plan.lowbit.inline_widenings",
    "tilewright.plan.gpu.split_k",
    "tilewright.plan.attention.split_kv",
    "tilewright.plan.gpu.plan_gpu_tiles",
    "tilewright.plan.graph.mark_levels",
    "tilewright.plan.graph.plan_programs",
    "tilewright.targets.cuda.split_host_device",
)
"""Modules of the built-in passes; importing one registers its passes."""

P = TypeVar("P", bound=type[Pass])

_passes: dict[str, type[Pass]] = {}


def register(cls: P) -> P:
    """Make a pass class known to ``tile-opt`` and to textual pipelines (a class decorator).

    Registering a name again replaces the earlier Python pass of that name.

    Raises:
        TypeError: the class is not a well-formed pass.
        ValueError: a C++ pass has the name, or a dialect is unknown.
    """
    from tilewright.mlir._mlir_libs import _tilewright

    if not (isinstance(cls, type) and issubclass(cls, Pass)):
        raise TypeError(f"@register takes a subclass of tilewright.passes.Pass, not {cls!r}")
    if not cls.name:
        raise TypeError(f"pass '{cls.__name__}' has no name: set name: ClassVar[str]")
    options = [tuple(spec) for spec in option_specs(cls)]
    _tilewright.register_pass(cls.name, summary(cls), cls.anchor, list(cls.dialects), options, make_callable(cls))
    _passes[cls.name] = cls
    return cls


def registered_passes() -> dict[str, type[Pass]]:
    """Return the Python passes registered so far, by name."""
    return dict(_passes)


def load_builtin_passes() -> None:
    """Import every module of built-in passes (once)."""
    for module in BUILTIN_MODULES:
        importlib.import_module(module)


def load_file(path: str | Path) -> None:
    """Import a Python file that registers passes.

    Raises:
        UserError: there is no such file. What the file itself raises comes out as it is.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise UserError(f"cannot load passes from '{path}': no such file")
    name = f"tilewright_user_{path.stem}_{abs(hash(str(path))):x}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"cannot load passes from '{path}': not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def source_file(cls: type[Pass]) -> str | None:
    """Return the file to give to ``--load-python`` for a pass; None where tile-opt knows it anyway."""
    if cls.__module__ in BUILTIN_MODULES:
        return None
    try:
        return inspect.getsourcefile(cls)
    except TypeError:  # defined in a console
        return None
