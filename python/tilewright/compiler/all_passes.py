# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All passes of this package that are written in Python: importing their modules registers them.

A compilation imports those that its pipeline names, which takes half the time of all.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection

#: Modules by folder; pass `tile-NAME-OF-IT` is in `name_of_it.py`.
_FOLDERS: dict[str, str] = {
    "normalize": (
        "append_in_place assert_early carry_formats drop_proven float8_products fold_roundings fold_splats "
        "fold_transposes generalize join_rows lower_formats materialize_copies scale_results shrink_dead sink_scales "
        "slice_early split_by_slices split_repeats sum_products verify_normalized widen_floats"
    ),
    "kernels.bounds": "check_accesses",
    "passes": "count_ops",
    "plan.attention": "plan_online skip_masked_blocks split_kv",
    "plan.conv": "fold_padding follow_groups im2col_rows split_micro_batches winograd",
    "plan.cpu": "plan_tiles",
    "plan.gpu": (
        "allow_tf32 approximate_exponentials compute_ramps count_meetings plan_gpu_tiles promote_float8 "
        "split_k split_masks transpose_operands"
    ),
    "plan.graph": (
        "gather_joins mark_levels plan_epilogues plan_fusion plan_host_work plan_levels plan_loops plan_orders "
        "plan_programs plan_teams"
    ),
    "plan.lowbit": (
        "expand_decodes fuse_dequantization inline_widenings int8_matmul mark_widened narrow_operands "
        "narrow_products weight_only_quantization widen_operands"
    ),
    "plan.mesh.collectives": "expand_collectives fit_mesh_programs plan_reductions",
    "plan.model": "bind_scalars mark_host_fallback",
    "plan.recurrences": "plan_shifts plan_wavefronts",
    "plan.sparse": "apply_sparsity group_experts lower_sparse plan_dynamic plan_sparsity skip_padding",
    "targets": "set_target verify_target",
    "targets.cpu": "emit_cpu sanitize",
    "targets.cuda": "emit_ptx split_host_device",
    "targets.mesh": "distribute expand_locals fit_mesh plan_mesh",
    "targets.mesh.bounding": "bound_sizes",
    "targets.mesh.fusing": "fuse_programs",
    "targets.mesh.streaming": "plan_streams stream_blocks",
}

#: The module of each pass.
MODULES = {
    f"tile-{name.replace('_', '-')}": f"tilewright.{folder}.{name}"
    for folder, names in _FOLDERS.items()
    for name in names.split()
}


def load(names: Collection[str] | None = None) -> None:
    """Import the modules of passes; those called `names`, or all."""
    for name, module in MODULES.items():
        if names is None or name in names:
            importlib.import_module(module)
