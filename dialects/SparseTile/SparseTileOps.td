//===- SparseTileOps.td - all operations of sparse_tile ----*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_OPS
#define TILEWRIGHT_SPARSE_TILE_OPS

include "dialects/SparseTile/SparseTileComputeOps.td"
include "dialects/SparseTile/SparseTileDynamicOps.td"
include "dialects/SparseTile/SparseTileFormatOps.td"

#endif // TILEWRIGHT_SPARSE_TILE_OPS
