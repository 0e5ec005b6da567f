//===- PlanArena.cpp - temporary buffers in one arena ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Elements.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/MemoryGuards.h"
#include "lib/Transforms/HostBuffers/ArenaGuards.h"
#include "lib/Transforms/HostBuffers/Passes.h"

namespace tilewright {
#define GEN_PASS_DEF_PLANARENA
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

constexpr int64_t kAlignment = 64;

bool isScalar(Type type) {
  auto complex = dyn_cast<ComplexType>(type);
  return (complex ? complex.getElementType() : type).isIntOrIndexOrFloat();
}

/// Whether the size of a buffer is known, and what it holds contiguous.
bool isPlannable(MemRefType type) {
  return isScalar(type.getElementType()) && type.hasStaticShape() &&
         type.getLayout().isIdentity() && !type.getMemorySpace();
}

struct PlanArena : public tilewright::impl::PlanArenaBase<PlanArena> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    main.walk([](memref::DeallocOp dealloc) { dealloc.erase(); });
    SmallVector<memref::AllocOp> allocs;
    std::vector<ArenaBuffer> buffers;
    Lifetimes lifetimes(main);
    main.walk([&](memref::AllocOp alloc) {
      MemRefType type = alloc.getType();
      if (!isPlannable(type))
        return;
      auto lifetime = lifetimes.get(alloc);
      if (!lifetime)
        return;
      int64_t bytes =
          type.getNumElements() * bytesOfElement(type.getElementType());
      allocs.push_back(alloc);
      buffers.push_back({bytes, lifetime->first, lifetime->second});
    });
    bool isGuarded = checksAccesses(main);
    Value arena = addArgument(main, isGuarded ? packApart(buffers)
                                              : packArena(buffers, kAlignment));
    if (isGuarded && !buffers.empty())
      guardArena(main, arena, buffers, lifetimes);
    for (auto [alloc, buffer] : llvm::zip_equal(allocs, buffers))
      place(alloc, arena, buffer.offset);
  }

private:
  /// As packArena, with a gap behind each place, and one before the first.
  static int64_t packApart(std::vector<ArenaBuffer> &buffers) {
    for (ArenaBuffer &buffer : buffers)
      buffer.bytes += kGuardBytes;
    int64_t bytes = packArena(buffers, kAlignment);
    for (ArenaBuffer &buffer : buffers) {
      buffer.bytes -= kGuardBytes;
      buffer.offset += kGuardBytes;
    }
    return bytes + kGuardBytes;
  }

  static Value addArgument(func::FuncOp main, int64_t bytes) {
    Builder b(main.getContext());
    main->getParentOfType<ModuleOp>()->setAttr(tile::decisions::kArenaBytes,
                                               b.getI64IntegerAttr(bytes));
    unsigned index = main.getNumArguments();
    auto attrs = b.getDictionaryAttr(
        b.getNamedAttr(tile::decisions::kArena, b.getUnitAttr()));
    if (failed(main.insertArgument(index,
                                   MemRefType::get({bytes}, b.getI8Type()),
                                   attrs, main.getLoc())))
      llvm_unreachable("a func.func takes any argument");
    return main.getArgument(index);
  }

  static void place(memref::AllocOp alloc, Value arena, int64_t offset) {
    OpBuilder b(alloc);
    Value start = arith::ConstantIndexOp::create(b, alloc.getLoc(), offset);
    Value view = memref::ViewOp::create(b, alloc.getLoc(), alloc.getType(),
                                        arena, start, ValueRange());
    alloc.getResult().replaceAllUsesWith(view);
    alloc.erase();
  }
};

} // namespace
