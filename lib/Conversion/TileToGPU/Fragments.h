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
  /// Half of `a` is left out (2:4): `k` of it meet twice as many rows of `b`.
  bool sparse = false;
  /// Whether the instruction says that positions ascend in their group, as PTX
  /// 8.5 lets it; PTX for sm_80 is of an older version.
  bool ordered = false;

  /// Rows of `b` that an instruction takes.
  int64_t depth() const { return sparse ? 2 * k : k; }

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
/// The metadata of `mma.sp` and `wgmma.mma_async.sp` (PTX ISA, "Sparse matrix
/// storage"), for products of 2:4 sparse operands `a`. Two bits for each kept
/// element, of which a word of 32 bits in a thread has sixteen:
///
/// - elements of 16 bits: eight of row `lane / 4` and eight of the row eight
///   below it. Two of the four lanes of a row are for one instruction, the
///   others for the next: the sparsity selector, 0 or 1, says which.
/// - elements of 8 bits: sixteen of one row; the four lanes of `lane / 4` have
///   two rows, all of one instruction.
///
/// An element of the tile of metadata stands for a kept element, or for eight.
LinearLayout mmaMetaLayout(tile::MmaOp op, const LinearLayout &result);
/// Whether a product's metadata has eight positions in an element.
bool isPackedMeta(tile::MmaOp op);
/// Elements of `a` whose metadata are in a word of each lane.
inline constexpr int64_t kMetaColumns = 32;

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
