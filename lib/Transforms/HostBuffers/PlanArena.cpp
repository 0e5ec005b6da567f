//===- PlanArena.cpp - temporary buffers in one arena ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Elements.h"
#include "lib/Transforms/HostBuffers/ArenaPacking.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

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

/// Positions of operations in program order.
class Lifetimes {
public:
  explicit Lifetimes(func::FuncOp main) : views(main) {
    number(main.getBody().front());
  }

  /// [first, last] use of a buffer; none for one that leaves its block, as what
  /// an iteration hands to the next one does.
  std::optional<std::pair<int64_t, int64_t>> get(memref::AllocOp alloc) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (Value alias : views.resolve(alloc.getResult())) {
      if (leavesBlock(alias, alloc->getBlock()))
        return std::nullopt;
      for (Operation *user : alias.getUsers()) {
        if (isa<ViewLikeOpInterface>(user))
          continue; // its result is an alias
        Operation *here = alloc->getBlock()->findAncestorOpInBlock(*user);
        if (!here)
          return std::nullopt;
        first = std::min(first, positions[here].first);
        last = std::max(last, positions[here].second);
      }
    }
    return std::make_pair(std::min(first, last), last);
  }

private:
  static bool leavesBlock(Value alias, Block *home) {
    Block *block = alias.getParentBlock();
    if (isa<BlockArgument>(alias) && block == home)
      return true;
    return block != home && !home->getParent()->isAncestor(block->getParent());
  }

  void number(Block &block) {
    for (Operation &op : block) {
      int64_t start = ++counter;
      for (Region &region : op.getRegions())
        for (Block &nested : region)
          number(nested);
      positions[&op] = {start, ++counter};
    }
  }

  BufferViewFlowAnalysis views;
  DenseMap<Operation *, std::pair<int64_t, int64_t>> positions;
  int64_t counter = 0;
};

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
    int64_t bytes = packArena(buffers, kAlignment);
    Value arena = addArgument(main, bytes);
    for (auto [alloc, buffer] : llvm::zip_equal(allocs, buffers))
      place(alloc, arena, buffer.offset);
  }

private:
  static Value addArgument(func::FuncOp main, int64_t bytes) {
    Builder b(main.getContext());
    main->getParentOfType<ModuleOp>()->setAttr("tile.arena_bytes",
                                               b.getI64IntegerAttr(bytes));
    unsigned index = main.getNumArguments();
    auto attrs =
        b.getDictionaryAttr(b.getNamedAttr("tile.arena", b.getUnitAttr()));
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
