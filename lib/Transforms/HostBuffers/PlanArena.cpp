//===- PlanArena.cpp - temporary buffers in one arena ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

/// Bytes of a buffer, or an error.
FailureOr<int64_t> getBytes(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (!type.hasStaticShape())
    return alloc.emitOpError("has the dynamic type ")
           << type
           << ", but the arena is planned at compile time; give the "
              "graph static shapes";
  if (!type.getLayout().isIdentity() || type.getMemorySpace())
    return alloc.emitOpError("has the type ")
           << type
           << ", but buffers of the host are contiguous and in no "
              "memory space";
  Type element = type.getElementType();
  int64_t bits =
      element.isIndex() ? 64 : int64_t(element.getIntOrFloatBitWidth());
  return type.getNumElements() * ((bits + 7) / 8);
}

/// Positions of operations in program order.
class Lifetimes {
public:
  explicit Lifetimes(func::FuncOp main) : views(main) {
    number(main.getBody().front());
  }

  /// [first, last] use of a buffer, or an error for one that leaves its loop.
  FailureOr<std::pair<int64_t, int64_t>> get(memref::AllocOp alloc) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (Value alias : views.resolve(alloc.getResult())) {
      if (leavesBlock(alias, alloc->getBlock()))
        return alloc.emitOpError("is carried from one iteration of a loop to "
                                 "the next; write into the loop's argument "
                                 "instead of a new buffer");
      for (Operation *user : alias.getUsers()) {
        if (isa<ViewLikeOpInterface>(user))
          continue; // its result is an alias
        Operation *here = alloc->getBlock()->findAncestorOpInBlock(*user);
        if (!here)
          return alloc.emitOpError("is used outside of its block");
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
    main.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    std::vector<ArenaBuffer> buffers;
    if (failed(measure(main, allocs, buffers)))
      return signalPassFailure();
    int64_t bytes = packArena(buffers, kAlignment);
    Value arena = addArgument(main, bytes);
    for (auto [alloc, buffer] : llvm::zip_equal(allocs, buffers))
      place(alloc, arena, buffer.offset);
  }

private:
  static LogicalResult measure(func::FuncOp main,
                               ArrayRef<memref::AllocOp> allocs,
                               std::vector<ArenaBuffer> &buffers) {
    Lifetimes lifetimes(main);
    for (memref::AllocOp alloc : allocs) {
      FailureOr<int64_t> bytes = getBytes(alloc);
      if (failed(bytes))
        return failure();
      auto lifetime = lifetimes.get(alloc);
      if (failed(lifetime))
        return failure();
      buffers.push_back({*bytes, lifetime->first, lifetime->second});
    }
    return success();
  }

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
