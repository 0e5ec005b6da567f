//===- WgmmaOperands.cpp - what matrix units of Hopper read -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/WgmmaOperands.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Rows that a swizzle's pattern spans.
constexpr int64_t kPattern = 8;

/// Descriptor fields hold multiples of 16 bytes.
constexpr int64_t kUnit = 16;

int64_t swizzleMode(int64_t bytes) {
  switch (bytes) {
  case 128:
    return 1;
  case 64:
    return 2;
  default:
    return 3; // 32
  }
}

/// PTX's name of an element type, empty where `wgmma` has no such operand.
StringRef operandName(Type type, bool isUnsigned) {
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (isa<Float8E4M3FNType>(type))
    return "e4m3";
  if (isa<Float8E5M2Type>(type))
    return "e5m2";
  if (type.isInteger(8))
    return isUnsigned ? "u8" : "s8";
  return "";
}

} // namespace

int64_t wgmmaDepth(Type element) {
  return 32 * 8 / element.getIntOrFloatBitWidth();
}

std::string wgmmaTypes(tile::MmaOp mma) {
  Type a = mma.getA().getType().getElementType(),
       b = mma.getB().getType().getElementType(),
       c = mma.getC().getType().getElementType();
  StringRef left = operandName(a, mma.getAUnsigned()),
            right = operandName(b, mma.getBUnsigned());
  // The unit drops what f32 has more than tf32: the product must allow it.
  if (a.isF32() && b.isF32() && mma->hasAttr(tile::decisions::kTf32))
    left = right = "tf32";
  bool same = a == b || (a.getIntOrFloatBitWidth() == 8 && isa<FloatType>(a) &&
                         isa<FloatType>(b));
  bool fits = isa<FloatType>(a) ? c.isF32() : c.isInteger(32);
  if (left.empty() || right.empty() || !same || !fits)
    return "";
  return (Twine(isa<FloatType>(a) ? ".f32." : ".s32.") + left + "." + right)
      .str();
}

int64_t WgmmaOperand::offsetOf(int64_t outer, int64_t k) const {
  int64_t row = kMajor ? outer : k, column = kMajor ? k : outer;
  int64_t bytes = column * place.getElementBytes(), span = place.getSpan();
  return bytes / span * place.getPanelBytes() + row * span + bytes % span;
}

int64_t WgmmaOperand::descriptorBits() const {
  int64_t span = place.getSpan();
  // From one group of 8 rows to the next; from one panel to the next, which an
  // instruction reads past only where m or n runs along rows.
  int64_t stride = kPattern * span / kUnit;
  int64_t leading = kMajor ? 1 : place.getPanelBytes() / kUnit;
  uint64_t mode = swizzleMode(span);
  return static_cast<int64_t>(mode << 62) | (stride << 32) | (leading << 16);
}

std::optional<WgmmaOperand> findWgmmaOperand(OpBuilder &b, Value tile,
                                             int64_t k, std::string &reason) {
  auto load = tile.getDefiningOp<tile::LoadOp>();
  std::optional<SharedPlace> place;
  if (load && load.getValid().empty() && !load.getIndices())
    place = findSharedPlace(b, load.getMemref());
  if (!place || place->offsets.size() < 2) {
    reason = "is not loaded from shared memory, where the plan and the layout "
             "of its rows allow";
    return std::nullopt;
  }
  int64_t rank = place->offsets.size();
  SmallVector<int64_t> dims;
  for (int64_t dim : load.getTileDims())
    dims.push_back(place->dims[dim]);
  OpFoldResult slot = place->offsets.front();
  for (auto [dim, offset] : llvm::enumerate(load.getOffsets())) {
    if (place->dims[dim] != 0) {
      if (getConstantIntValue(offset) != 0) {
        reason = "is a part of a slot only";
        return std::nullopt;
      }
    } else if (getConstantIntValue(slot) == 0) {
      slot = offset;
    } else if (getConstantIntValue(offset) != 0) {
      reason = "is loaded from a slot that is not known by one number";
      return std::nullopt;
    }
  }
  ArrayRef<int64_t> shape = load.getType().getShape();
  for (int64_t dim = 1; dim < rank; ++dim)
    if (getConstantIntValue(place->offsets[dim]) != 0) {
      reason = "is a part of a slot only";
      return std::nullopt;
    }
  int64_t last = place->getType().getShape().back();
  if (dims.size() != 2 || shape[0] * shape[1] != place->getSlotRows() * last ||
      !llvm::is_contained(dims, rank - 1)) {
    reason = "is no whole slot";
    return std::nullopt;
  }
  if (!place->getSwizzle() ||
      place->getSlotBytes() % (kPattern * place->getSpan()) != 0) {
    reason = "lies in a buffer without a swizzle";
    return std::nullopt;
  }
  WgmmaOperand operand{*place, slot, dims[k] == rank - 1};
  if (!operand.kMajor && operand.place.getElementBytes() != 2) {
    reason = "has rows along the other dimension than k, which matrix units "
             "take of 16-bit elements only";
    return std::nullopt;
  }
  return operand;
}

} // namespace tilewright
