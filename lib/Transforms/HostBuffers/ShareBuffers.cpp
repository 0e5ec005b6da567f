//===- ShareBuffers.cpp - tile-share-buffers ------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Lifetimes.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {
#define GEN_PASS_DEF_SHAREBUFFERS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// What tells that two buffers have the same size: the element type, the
/// product of the sizes that are known, and the others as values, sorted.
struct SizeKey {
  Type element;
  int64_t known = 1;
  SmallVector<const void *> others;

  explicit SizeKey(memref::AllocOp alloc)
      : element(alloc.getType().getElementType()) {
    for (int64_t size : alloc.getType().getShape())
      if (!ShapedType::isDynamic(size))
        known *= size;
    for (Value size : alloc.getDynamicSizes())
      others.push_back(size.getAsOpaquePointer());
    llvm::sort(others);
  }
  bool operator==(const SizeKey &other) const {
    return element == other.element && known == other.known &&
           others == other.others;
  }
};

/// A buffer that later ones are put into.
struct Shared {
  SizeKey key;
  memref::AllocOp alloc;
  int64_t last;
};

struct ShareBuffers : public tilewright::impl::ShareBuffersBase<ShareBuffers> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    Lifetimes lifetimes(main);
    SmallVector<std::pair<memref::AllocOp, std::pair<int64_t, int64_t>>>
        buffers;
    for (auto alloc : main.getBody().front().getOps<memref::AllocOp>()) {
      MemRefType type = alloc.getType();
      if (type.hasStaticShape() || !type.getLayout().isIdentity() ||
          isReturned(alloc, main))
        continue;
      if (auto lifetime = lifetimes.get(alloc))
        buffers.emplace_back(alloc, *lifetime);
    }
    SmallVector<Shared> shared;
    for (auto [alloc, lifetime] : buffers) {
      SizeKey key(alloc);
      auto *found = llvm::find_if(
          shared, [&, first = lifetime.first](const Shared &other) {
            return other.last < first && other.key == key;
          });
      if (found == shared.end()) {
        shared.push_back({key, alloc, lifetime.second});
        continue;
      }
      found->last = lifetime.second;
      replace(alloc, found->alloc);
    }
  }

private:
  /// Whether the caller gets the buffer, or a view of it.
  static bool isReturned(memref::AllocOp alloc, func::FuncOp main) {
    SmallVector<Value> aliases = {alloc.getResult()};
    while (!aliases.empty())
      for (Operation *user : aliases.pop_back_val().getUsers()) {
        if (isa<func::ReturnOp>(user) ||
            user->hasTrait<OpTrait::ReturnLike>() ||
            isa<RegionBranchOpInterface>(user))
          return true;
        if (isa<ViewLikeOpInterface>(user) || isa<memref::CastOp>(user))
          llvm::append_range(aliases, user->getResults());
      }
    return false;
  }

  /// Shows the memory of `place` under the sizes of `alloc`.
  static void replace(memref::AllocOp alloc, memref::AllocOp place) {
    OpBuilder b(alloc);
    Location loc = alloc.getLoc();
    MemRefType type = alloc.getType();
    Value flat = place.getResult();
    bool sameShape = type == place.getType() &&
                     alloc.getDynamicSizes() == place.getDynamicSizes();
    if (!sameShape) {
      auto whole = [](int64_t rank) {
        return SmallVector<ReassociationIndices>{
            llvm::to_vector(llvm::seq<int64_t>(0, rank))};
      };
      if (place.getType().getRank() > 1)
        flat = memref::CollapseShapeOp::create(
            b, loc, flat, whole(place.getType().getRank()));
      if (type.getRank() > 1)
        flat = memref::ExpandShapeOp::create(
            b, loc, type, flat, whole(type.getRank()), alloc.getMixedSizes());
    }
    alloc.getResult().replaceAllUsesWith(flat);
    alloc.erase();
  }
};

} // namespace
