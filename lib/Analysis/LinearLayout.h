//===- LinearLayout.h - where the elements of a tile lie --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The distributed layouts of "Linear Layouts" (Zhou et al., arXiv 2505.23819):
// each bit of a register's or thread's number stands for one bit of one
// coordinate, or for none.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_LINEARLAYOUT_H
#define TILEWRIGHT_ANALYSIS_LINEARLAYOUT_H

#include "dialects/Tile/Tile.h"

namespace tilewright {

/// One bit of one coordinate, or none (`dim` negative).
struct CoordinateBit {
  int64_t dim = -1;
  int64_t bit = 0;

  bool isNone() const { return dim < 0; }
  int64_t getValue() const { return int64_t(1) << bit; }
  bool operator==(const CoordinateBit &other) const {
    return dim == other.dim && (dim < 0 || bit == other.bit);
  }
  bool operator!=(const CoordinateBit &other) const {
    return !(*this == other);
  }
};

class LinearLayout {
public:
  static constexpr int64_t laneBits = 5;

  explicit LinearLayout(int64_t rank = 0) : rank(rank) {}
  explicit LinearLayout(tile::DistributedAttr distributed);
  /// The layout of a tile type, none where it has none.
  static std::optional<LinearLayout> of(mlir::Type type);
  /// Registers along `order` (fastest dimension first): `vector` elements of
  /// the fastest one, then lanes, then warps, then the rest in registers. What
  /// threads are left over hold copies.
  static LinearLayout blocked(mlir::ArrayRef<int64_t> shape,
                              mlir::ArrayRef<int64_t> order, int64_t vector,
                              int64_t threads);

  tile::DistributedAttr toAttr(mlir::MLIRContext *context) const;

  int64_t getRank() const { return rank; }
  /// Bits of the register's number, lowest first.
  mlir::ArrayRef<CoordinateBit> getRegisterBits() const { return registers; }
  /// Bits of the thread's number: five of the lane, then those of the warp.
  mlir::ArrayRef<CoordinateBit> getThreadBits() const { return threads; }
  int64_t getNumRegisters() const { return int64_t(1) << registers.size(); }
  int64_t getNumThreads() const { return int64_t(1) << threads.size(); }
  /// Sizes with padding.
  mlir::SmallVector<int64_t> getSizes() const;

  void addRegister(int64_t dim, int64_t bit) {
    registers.push_back({dim, bit});
  }
  void addThread(int64_t dim, int64_t bit) { threads.push_back({dim, bit}); }
  void addReplica() { threads.push_back({}); }

  /// Coordinates that a register contributes; those of a thread are added.
  mlir::SmallVector<int64_t> getRegister(int64_t number) const;
  mlir::SmallVector<int64_t> getThread(int64_t number) const;
  /// The register of the bit, and its bit of the thread, if there is one.
  std::optional<int64_t> findRegister(CoordinateBit bit) const;
  std::optional<int64_t> findThread(CoordinateBit bit) const;
  /// Bits of the thread's number that make no difference.
  uint64_t getReplicas() const;
  /// How many elements along `dim` a thread holds side by side, from a
  /// multiple of that number on.
  int64_t getRun(int64_t dim) const;

  /// Without the bits of `dims`: registers fall away, threads hold copies.
  LinearLayout slice(mlir::ArrayRef<int64_t> dims) const;
  /// Dimension `i` of the result is dimension `permutation[i]`.
  LinearLayout permute(mlir::ArrayRef<int64_t> permutation) const;
  /// Only dimensions from `first` on; the ones before must be sliced away.
  LinearLayout dropLeading(int64_t first) const;
  /// The same bits with each one renamed; `rename` may fail.
  std::optional<LinearLayout>
  rename(int64_t newRank,
         llvm::function_ref<std::optional<CoordinateBit>(CoordinateBit)> rename)
      const;

  bool operator==(const LinearLayout &other) const {
    return rank == other.rank && registers == other.registers &&
           threads == other.threads;
  }
  bool operator!=(const LinearLayout &other) const { return !(*this == other); }

private:
  int64_t rank;
  mlir::SmallVector<CoordinateBit> registers, threads;
};

/// The layout of a tile of shape `to` whose elements are, in row-major order,
/// those of a tile of shape `from`. None where that is no matter of bits.
std::optional<LinearLayout> reshapeLayout(const LinearLayout &layout,
                                          mlir::ArrayRef<int64_t> from,
                                          mlir::ArrayRef<int64_t> to);

/// What the data must cross when a tile changes its layout.
enum class Exchange { none, lanes, warps };
Exchange getExchange(const LinearLayout &from, const LinearLayout &to);

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_LINEARLAYOUT_H
