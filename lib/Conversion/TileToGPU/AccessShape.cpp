//===- AccessShape.cpp - how wide an access to memory may be --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Divisors.h"
#include "lib/Analysis/SharedArguments.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

static SmallVector<int64_t> getStrides(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    strides.assign(type.getRank(), ShapedType::kDynamic);
  return strides;
}

static int64_t getOffset(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return ShapedType::kDynamic;
  return offset;
}

static bool isZero(Value value) {
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) && constant.isZero();
}

/// What an offset of `value` steps of `stride` elements is a multiple of.
static int64_t divisorOf(Value value, int64_t stride) {
  if (isZero(value))
    return getDivisor(int64_t(0));
  return getDivisor(value) * getDivisor(stride);
}

static int64_t divisorOf(OpFoldResult value, int64_t stride) {
  if (auto known = dyn_cast<Attribute>(value)) {
    int64_t number = cast<IntegerAttr>(known).getInt();
    return number == 0 ? getDivisor(number)
                       : getDivisor(number) * getDivisor(stride);
  }
  return divisorOf(cast<Value>(value), stride);
}

namespace {
/// Follows a view to the buffer that it looks at.
class BaseDivisor {
public:
  int64_t get(Value memref) {
    bytes = bytesOfElement(cast<MemRefType>(memref.getType()).getElementType());
    return follow(memref);
  }

private:
  int64_t fromBytes(int64_t alignment) {
    return std::max<int64_t>(1, alignment / bytes);
  }

  int64_t ofArgument(BlockArgument argument) {
    auto function =
        dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    if (!function || argument.getArgNumber() >= function.getNumArguments())
      return 1;
    if (auto align = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), tile::decisions::kAlign))
      return fromBytes(align.getInt());
    return getOffset(cast<MemRefType>(argument.getType())) == 0 ? fromBytes(16)
                                                                : 1;
  }

  int64_t ofSubView(memref::SubViewOp view) {
    int64_t divisor = follow(view.getSource());
    auto strides = getStrideFactors(view.getSourceType());
    for (auto [offset, stride] :
         llvm::zip_equal(view.getMixedOffsets(), strides))
      divisor = std::min(divisor, divisorOf(offset, stride));
    return divisor;
  }

  int64_t follow(Value memref) {
    if (auto argument = dyn_cast<BlockArgument>(memref))
      return ofArgument(argument);
    return llvm::TypeSwitch<Operation *, int64_t>(memref.getDefiningOp())
        .Case([&](tile::AllocOp alloc) {
          return fromBytes(
              std::max<uint64_t>(16, alloc.getAlignment().value_or(16)));
        })
        .Case([&](memref::ViewOp view) {
          return fromBytes(getDivisor(view.getByteShift()));
        })
        .Case([&](memref::SubViewOp view) { return ofSubView(view); })
        .Case([&](memref::ReinterpretCastOp cast) {
          return std::min(follow(cast.getSource()),
                          divisorOf(cast.getMixedOffsets().front(), 1));
        })
        .Case<memref::CastOp, memref::ExpandShapeOp, memref::CollapseShapeOp>(
            [&](auto cast) { return follow(cast->getOperand(0)); })
        .Case([&](memref::MemorySpaceCastOp cast) {
          return follow(cast.getSource());
        })
        .Default([](Operation *) { return 1; });
  }

  int64_t bytes = 1;
};
} // namespace

int64_t tilewright::getBaseDivisor(Value memref) {
  return BaseDivisor().get(memref);
}

std::optional<Arrangement> Arrangement::of(Value memref) {
  for (; memref; memref = getViewed(memref)) {
    Operation *op = memref.getDefiningOp();
    if (!op)
      break;
    if (auto layouts = tile::decisions::kLayouts.get(op)) {
      auto layout = dyn_cast<tile::LayoutAttr>(layouts[0]);
      ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
      if (!layout || layout.isIdentity() || shape.empty())
        return std::nullopt;
      Arrangement result;
      result.swizzle = layout.getSwizzle();
      result.columns = shape.back();
      result.rows = shape.size() > 1 ? shape[shape.size() - 2] : 1;
      if (!layout.getTiles().empty() &&
          layout.getTiles().front() < result.columns)
        result.panel = layout.getTiles().front();
      return result;
    }
  }
  return std::nullopt;
}

int64_t AccessShape::getContiguousDim() const {
  auto strides = getStrides(getType());
  for (auto [dim, memrefDim] : llvm::enumerate(dims))
    if (strides[memrefDim] == 1 && steps[dim] == 1 &&
        static_cast<int64_t>(dim) != along)
      return static_cast<int64_t>(dim);
  return -1;
}

int64_t AccessShape::getVectorSize() const {
  if (vector)
    return vector;
  int64_t contiguous = getContiguousDim();
  if (contiguous < 0)
    return 1;
  auto strides = getStrideFactors(getType());
  int64_t size =
      std::max<int64_t>(1, 16 / bytesOfElement(getType().getElementType()));
  size = std::min(size, getBaseDivisor(memref));
  size = std::min(size, getDivisor(tileShape[contiguous]));
  if (!valid.empty())
    size = std::min(size, getDivisor(valid[contiguous]));
  for (auto [offset, stride] : llvm::zip_equal(offsets, strides))
    size = std::min(size, divisorOf(offset, stride));
  for (auto [dim, memrefDim] : llvm::enumerate(dims)) {
    if (static_cast<int64_t>(dim) == contiguous)
      continue;
    if (tileShape[dim] == 1 && static_cast<int64_t>(dim) != along)
      continue;
    int64_t step = static_cast<int64_t>(dim) == along ? 1 : steps[dim];
    size = std::min(size, getDivisor(strides[memrefDim]) * getDivisor(step));
  }
  return size;
}
