//===- WgmmaOperands.h - what matrix units of Hopper read -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_WGMMAOPERANDS_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_WGMMAOPERANDS_H

#include "lib/Conversion/AsyncToGPU/SharedPlaces.h"

#include <string>

namespace tilewright {

/// An operand of `wgmma` in shared memory: a whole slot of a swizzled buffer.
struct WgmmaOperand {
  SharedPlace place;
  /// The slot, as an index.
  mlir::OpFoldResult slot;
  /// Whether k runs along rows of memory (else m or n does).
  bool kMajor;

  /// Bytes from the operand's start to (`outer`, `k`): coordinates along m or
  /// n, and along k, at a border of what one instruction reads.
  int64_t offsetOf(int64_t outer, int64_t k) const;
  /// The matrix descriptor without its address (PTX ISA 9.0, "Matrix descriptor
  /// format", Asynchronous Warpgroup Level Matrix Instructions).
  int64_t descriptorBits() const;
};

/// The operand that `tile` is loaded from; else why it is none, in `reason`.
/// `k` is the tile's dimension that the product sums over.
std::optional<WgmmaOperand> findWgmmaOperand(mlir::OpBuilder &b,
                                             mlir::Value tile, int64_t k,
                                             std::string &reason);

/// Elements of k that one instruction takes: 32 bytes of them.
int64_t wgmmaDepth(mlir::Type element);

/// The suffix of the instruction for these element types (".f32.bf16.bf16"),
/// empty where there is none.
std::string wgmmaTypes(tile::MmaOp mma);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_WGMMAOPERANDS_H
