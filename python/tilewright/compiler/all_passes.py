# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All passes of this package that are written in Python; importing this registers them."""

from tilewright.normalize import (  # noqa: F401
    assert_early,
    carry_formats,
    drop_proven,
    float8_products,
    fold_roundings,
    fold_splats,
    fold_transposes,
    generalize,
    join_rows,
    lower_formats,
    materialize_copies,
    scale_results,
    shrink_dead,
    sink_scales,
    split_by_slices,
    sum_products,
    verify_normalized,
    widen_floats,
)
from tilewright.passes import count_ops  # noqa: F401
from tilewright.plan.attention import plan_online, skip_masked_blocks, split_kv  # noqa: F401
from tilewright.plan.conv import fold_padding, follow_groups, im2col_rows, split_micro_batches, winograd  # noqa: F401
from tilewright.plan.cpu import plan_tiles  # noqa: F401
from tilewright.plan.gpu import (  # noqa: F401
    allow_tf32,
    approximate_exponentials,
    compute_ramps,
    count_meetings,
    plan_gpu_tiles,
    promote_float8,
    split_k,
    split_masks,
    transpose_operands,
)
from tilewright.plan.graph import (  # noqa: F401
    gather_joins,
    mark_levels,
    plan_fusion,
    plan_host_work,
    plan_levels,
    plan_loops,
    plan_orders,
    plan_programs,
    plan_teams,
)
from tilewright.plan.lowbit import (  # noqa: F401
    expand_decodes,
    fuse_dequantization,
    inline_widenings,
    int8_matmul,
    mark_widened,
    narrow_operands,
    narrow_products,
    weight_only_quantization,
    widen_operands,
)
from tilewright.plan.mesh.collectives import expand_collectives, fit_mesh_programs, plan_reductions  # noqa: F401
from tilewright.plan.model import mark_host_fallback  # noqa: F401
from tilewright.plan.recurrences import plan_shifts, plan_wavefronts  # noqa: F401
from tilewright.plan.sparse import (  # noqa: F401
    apply_sparsity,
    group_experts,
    lower_sparse,
    plan_dynamic,
    plan_sparsity,
    skip_padding,
)
from tilewright.targets import set_target, verify_target  # noqa: F401
from tilewright.targets.cpu import emit_cpu, sanitize  # noqa: F401
from tilewright.targets.cuda import emit_ptx, split_host_device  # noqa: F401
from tilewright.targets.mesh import distribute, expand_locals, fit_mesh, plan_mesh  # noqa: F401
from tilewright.targets.mesh.fusing import fuse_programs  # noqa: F401
