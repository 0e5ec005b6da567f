//===- Fragments.h - layouts of products ------------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_FRAGMENTS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_FRAGMENTS_H

#include "lib/Analysis/LinearLayout.h"

namespace tilewright {

/// What computes a product: ordinary instructions, `mma.sync` of a warp,
/// `wgmma` of four, or `v_mfma` of a wave, which is two.
enum class MmaUnit { fma, mma, wgmma, mfma };

/// The unit of a product: its attribute `tile.unit`, or by its types and sizes
/// on an architecture (80, 90). Fails with an error where the attribute names
/// no unit that can do it.
mlir::FailureOr<MmaUnit> getUnit(tile::MmaOp op, int64_t arch);

/// One `mma.sync`: sizes, and the elements of an operand in a register.
struct MmaShape {
  int64_t m = 16, n = 8, k = 16;
  int64_t packed = 2; // operand elements in 32 bits
  mlir::StringRef name;
  /// f32 operands that are rounded to tf32.
  bool tf32 = false;
  /// Whether the terms of a sum that a thread has of an instruction are
  /// neighbours, in both operands: which terms they are changes no sum, and
  /// bytes that are widened in registers then come four at a time.
  bool neighbours = false;

  static std::optional<MmaShape> of(tile::MmaOp op, int64_t arch);
};

/// One `v_mfma` of 16 x 16 results on a CDNA 3 GPU: its depth, and the elements
/// of an operand in a lane.
struct MfmaShape {
  int64_t k = 16, each = 4;
  mlir::StringRef name;

  static std::optional<MfmaShape> of(tile::MmaOp op);
};

/// The architecture that a pass is to use around an operation: what its option
/// says, or (-1) that of the module's device, 80 where there is none.
int64_t getCapability(int64_t option, mlir::Operation *op);

/// Whether an architecture's number is an AMD GPU's (942 for gfx942).
inline bool isAmd(int64_t arch) { return arch >= 900; }

/// How the warps of a block share a result.
struct WarpGrid {
  int64_t rows = 1, columns = 1;
  int64_t copies = 1; // that hold the same
};

/// Fragments of `mma.sync` (PTX ISA, "Matrix fragments"), repeated over a tile.
LinearLayout mmaResultLayout(mlir::ArrayRef<int64_t> shape, WarpGrid warps);
/// Whether a layout is made of such fragments of a result.
bool isMmaResult(const LinearLayout &layout);
LinearLayout mmaOperandLayout(const LinearLayout &result, bool isB,
                              mlir::ArrayRef<int64_t> shape,
                              const MmaShape &mma);
/// The accumulator of `wgmma`: 64 rows for each four warps.
LinearLayout wgmmaResultLayout(mlir::ArrayRef<int64_t> shape, int64_t threads);
/// Its operand `a` in registers; 16 bits wide, or 8.
LinearLayout wgmmaOperandLayout(const LinearLayout &result,
                                mlir::ArrayRef<int64_t> shape,
                                int64_t elementBytes);
/// Blocks of a result, for products on ordinary units.
LinearLayout fmaResultLayout(mlir::ArrayRef<int64_t> shape, int64_t threads);

/// Fragments of `v_mfma` (CDNA 3 ISA, "Matrix fused multiply-add"): a wave's
/// sixth lane bit is the first bit of the warp.
LinearLayout mfmaResultLayout(mlir::ArrayRef<int64_t> shape, WarpGrid waves);
LinearLayout mfmaOperandLayout(const LinearLayout &result, bool isB,
                               mlir::ArrayRef<int64_t> shape,
                               const MfmaShape &mfma);

/// How warps share a result of `mma`; in rows only where `rowsOnly` is set.
WarpGrid chooseWarps(mlir::ArrayRef<int64_t> shape, int64_t warps,
                     bool rowsOnly);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_FRAGMENTS_H
