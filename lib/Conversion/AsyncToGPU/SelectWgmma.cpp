//===- SelectWgmma.cpp - products for Hopper's matrix units -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/AsyncToGPU/WgmmaOperands.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SELECTWGMMA
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

constexpr int64_t kWarpgroup = 4, kRows = 64, kMaxColumns = 256;
/// Bytes along k of what an instruction reads of `a`.
constexpr int64_t kStepBytes = 32;

/// Warps of a kernel that compute.
int64_t warpsOf(tile::KernelOp kernel) {
  if (auto warps = tile::decisions::kWarps.get(kernel))
    return warps.getInt();
  if (auto threads = tile::decisions::kThreads.get(kernel))
    return threads.getInt() / 32;
  return kWarpgroup;
}

/// Why metadata are none of `wgmma`'s, empty where they are or there are none.
std::string checkSparsity(tile::MmaOp mma) {
  if (!mma.getMeta())
    return "";
  Type element = mma.getA().getType().getElementType();
  if (*mma.getSparsity() != ArrayRef<int64_t>{2, 4})
    return "is sparse, but not 2:4";
  if (!element.isF16() && !element.isBF16() && !element.isInteger(8))
    return "is sparse with elements of neither 16 bits nor bytes";
  OpBuilder b(mma);
  std::string reason;
  auto right = findWgmmaOperand(b, mma.getB(), 0, reason);
  // An instruction reads 64 bytes along k.
  if (right && right->kMajor && right->place.getSpan() < 2 * kStepBytes)
    return "is sparse with a right operand in rows of 32 bytes";
  return "";
}

/// Why a product cannot be one of `wgmma`, empty where it can.
std::string checkProduct(tile::MmaOp mma, int64_t warps) {
  ArrayRef<int64_t> shape = mma.getC().getType().getShape();
  Type element = mma.getA().getType().getElementType();
  int64_t depth = mma.getA().getType().getShape()[1];
  if (std::string reason = checkSparsity(mma); !reason.empty())
    return reason;
  if (warps % kWarpgroup != 0 || shape[0] % (kRows * warps / kWarpgroup) != 0)
    return "has " + std::to_string(shape[0]) + " rows for " +
           std::to_string(warps) + " warps: four warps take multiples of 64";
  if (shape[1] < 8 || shape[1] > kMaxColumns || !llvm::isPowerOf2_64(shape[1]))
    return "has " + std::to_string(shape[1]) +
           " columns, which are no power of two from 8 to 256";
  if (depth % wgmmaDepth(element) != 0)
    return "sums over " + std::to_string(depth) +
           " elements, which are no multiple of 32 bytes";
  OpBuilder b(mma);
  std::string reason;
  if (!findWgmmaOperand(b, mma.getB(), 0, reason))
    return "has a right operand that " + reason;
  if (element.getIntOrFloatBitWidth() == 16 ||
      findWgmmaOperand(b, mma.getA(), 1, reason))
    return "";
  return "has a left operand that " + reason;
}

struct SelectWgmma : public tilewright::impl::SelectWgmmaBase<SelectWgmma> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    getOperation()->walk([](tile::KernelOp kernel) {
      int64_t warps = warpsOf(kernel);
      kernel.walk([&](tile::MmaOp mma) {
        if (mma->hasAttr(tile::decisions::kUnit) || wgmmaTypes(mma).empty())
          return;
        std::string reason = checkProduct(mma, warps);
        if (reason.empty())
          mma->setAttr(tile::decisions::kUnit,
                       StringAttr::get(mma.getContext(), "wgmma"));
        else
          mma.emitRemark("is not multiplied by wgmma, since it ") << reason;
      });
    });
  }
};

} // namespace
} // namespace tilewright
