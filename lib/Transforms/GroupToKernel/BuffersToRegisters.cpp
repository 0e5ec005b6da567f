//===- BuffersToRegisters.cpp - tile-buffers-to-registers -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/Passes.h"

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_BUFFERSTOREGISTERS
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

/// Equal values or equal constants.
bool areSame(ValueRange left, ValueRange right) {
  return left.size() == right.size() &&
         llvm::all_of(llvm::zip(left, right), [](auto pair) {
           auto [a, b] = pair;
           std::optional<int64_t> x = getConstantIntValue(a);
           return a == b || (x && x == getConstantIntValue(b));
         });
}

/// The elements that an access, a load or a store, is to: what a tile's
/// dimensions of more than one element walk.
struct Window {
  template <typename Op> explicit Window(Op op) : offsets(op.getOffsets()) {
    SmallVector<int64_t> allDims = op.getTileDims(), all = op.getTileSteps();
    SmallVector<Value> bounds(op.getValid());
    for (auto [at, size] : llvm::enumerate(op.getTileType().getShape())) {
      Value bound = bounds.empty() ? Value() : bounds[at];
      std::optional<int64_t> known;
      if (bound)
        known = getConstantIntValue(bound);
      if (known && *known >= size)
        bound = Value();
      if (size == 1 && !bound)
        continue;
      dims.push_back(allDims[at]);
      steps.push_back(all[at]);
      sizes.push_back(size);
      valid.push_back(bound);
    }
  }
  bool operator==(const Window &other) const {
    return areSame(offsets, other.offsets) && valid == other.valid &&
           dims == other.dims && steps == other.steps && sizes == other.sizes;
  }

  ValueRange offsets;
  SmallVector<int64_t> dims, steps, sizes;
  SmallVector<Value> valid;
};

/// A tile of the same elements in another shape: some sizes of 1 more or less.
Value reshaped(OpBuilder &builder, Value tile, tile::TileType type) {
  if (tile.getType() == type)
    return tile;
  return tile::ReshapeOp::create(builder, tile.getLoc(), type, tile);
}

/// A buffer of a task that holds one tile.
class Buffer {
public:
  explicit Buffer(tile::AllocOp alloc) : alloc(alloc) {}

  /// Makes a value of the buffer, where all accesses allow it.
  void promote() {
    if (!isOneTile())
      return;
    bool defined = false;
    if (!follow(*alloc->getBlock(), defined))
      return;
    IRRewriter rewriter(alloc.getContext());
    rewrite(rewriter, *alloc->getBlock(), Value());
    rewriter.eraseOp(alloc);
  }

private:
  bool isOneTile();
  bool touches(Operation *op) const;
  bool stores(Operation *op) const;
  bool follow(Block &block, bool &defined) const;
  bool followInside(Operation *op, bool &defined) const;
  Value rewrite(IRRewriter &rewriter, Block &block, Value held);
  Value rewriteLoop(IRRewriter &rewriter, scf::ForOp loop, Value held);
  Value rewriteBranch(IRRewriter &rewriter, scf::IfOp branch, Value held);

  tile::AllocOp alloc;
  /// Of the value: that of the stores in the innermost loops.
  tile::TileType type;
};

bool Buffer::isOneTile() {
  tile::StoreOp first;
  unsigned deepest = 0;
  for (Operation *user : alloc->getUsers())
    if (auto store = dyn_cast<tile::StoreOp>(user)) {
      unsigned depth = 1;
      for (Operation *op = user->getParentOp(); isa<scf::ForOp>(op);
           op = op->getParentOp())
        ++depth;
      if (depth > deepest)
        first = store;
      deepest = std::max(deepest, depth);
    }
  auto isFixed = [&](Value value) { // the same in all rounds of a loop
    return !value || getConstantIntValue(value) ||
           value.getParentBlock() == alloc->getBlock();
  };
  if (!first)
    return false;
  type = first.getTileType();
  Window window(first);
  if (!llvm::all_of(window.offsets, isFixed) ||
      !llvm::all_of(window.valid, isFixed))
    return false;
  return llvm::all_of(alloc->getUsers(), [&](Operation *user) {
    if (auto load = dyn_cast<tile::LoadOp>(user))
      return !load.getIndices() && Window(load) == window;
    auto store = dyn_cast<tile::StoreOp>(user);
    return store && !store.getIndices() && !store.getReduce() &&
           Window(store) == window;
  });
}

bool Buffer::touches(Operation *op) const {
  return llvm::any_of(alloc->getUsers(),
                      [&](Operation *user) { return op->isAncestor(user); });
}

bool Buffer::stores(Operation *op) const {
  return llvm::any_of(alloc->getUsers(), [&](Operation *user) {
    return isa<tile::StoreOp>(user) && op->isAncestor(user);
  });
}

/// Whether each load in a block follows a store, on all ways. `defined` says
/// whether one has happened before the block, then after it.
bool Buffer::follow(Block &block, bool &defined) const {
  for (Operation &op : block) {
    if (!touches(&op))
      continue;
    if (isa<tile::LoadOp>(op) && !defined)
      return false;
    if (isa<tile::StoreOp>(op))
      defined = true;
    else if (!isa<tile::LoadOp>(op) && !followInside(&op, defined))
      return false;
  }
  return true;
}

bool Buffer::followInside(Operation *op, bool &defined) const {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    bool inside = defined; // a loop may have no rounds
    return follow(*loop.getBody(), inside);
  }
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch)
    return false;
  bool then = defined, otherwise = defined;
  if (!follow(*branch.thenBlock(), then) ||
      (branch.elseBlock() && !follow(*branch.elseBlock(), otherwise)))
    return false;
  defined = then && otherwise;
  return true;
}

/// What a load reads of a tile that was stored through the same bounds: behind
/// them, its padding.
Value readAs(OpBuilder &b, tile::LoadOp load, Value held) {
  Location loc = load.getLoc();
  tile::TileType type = load.getTileType();
  Type number = b.getI32Type();
  Value result = held, pad;
  auto typeOf = [&](ArrayRef<int64_t> shape, Type element) {
    return tile::TileType::get(shape, element);
  };
  for (auto [dim, valid] : llvm::enumerate(load.getValid())) {
    int64_t size = type.getShape()[dim];
    if (std::optional<int64_t> bound = getConstantIntValue(valid);
        bound && *bound >= size)
      continue;
    if (!pad) {
      Value scalar = load.getPad();
      if (!scalar)
        scalar = arith::ConstantOp::create(
            b, loc, b.getZeroAttr(type.getElementType()));
      pad = tile::SplatOp::create(b, loc, type, scalar);
    }
    SmallVector<int64_t> along(type.getRank(), 1);
    along[dim] = size;
    Value most = arith::ConstantIndexOp::create(b, loc, size);
    Value bound = arith::MinSIOp::create(b, loc, valid, most);
    bound = arith::IndexCastOp::create(b, loc, number, bound);
    Value ramp = tile::IotaOp::create(b, loc, typeOf({size}, number), 0);
    if (type.getRank() > 1)
      ramp = tile::ReshapeOp::create(b, loc, typeOf(along, number), ramp);
    Value end = tile::SplatOp::create(b, loc, typeOf(along, number), bound);
    Value mask =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, ramp, end);
    if (type.getRank() > 1)
      mask = tile::BroadcastOp::create(
          b, loc, typeOf(type.getShape(), b.getI1Type()), mask);
    result = tile::SelectOp::create(b, loc, mask, result, pad);
  }
  return result;
}

/// Replaces the accesses in a block. `held` is the tile before it, null where
/// there is none yet; returns the one after it.
Value Buffer::rewrite(IRRewriter &rewriter, Block &block, Value held) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (&op == alloc || !touches(&op))
      continue;
    if (auto store = dyn_cast<tile::StoreOp>(op)) {
      rewriter.setInsertionPoint(store);
      held = reshaped(rewriter, store.getTile(), type);
      rewriter.eraseOp(store);
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      Value before = held;
      rewriter.setInsertionPoint(load);
      held = reshaped(rewriter, held, load.getTileType());
      rewriter.replaceOp(load, readAs(rewriter, load, held));
      held = before;
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      held = rewriteLoop(rewriter, loop, held);
    } else {
      held = rewriteBranch(rewriter, cast<scf::IfOp>(op), held);
    }
  }
  return held;
}

Value Buffer::rewriteLoop(IRRewriter &rewriter, scf::ForOp loop, Value held) {
  if (!held || !stores(loop)) {
    rewrite(rewriter, *loop.getBody(), held);
    return held;
  }
  DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  auto next = [&](OpBuilder &, Location, ArrayRef<BlockArgument> carried) {
    return SmallVector<Value>{
        rewrite(rewriter, *loop.getBody(), carried.front())};
  };
  rewriter.setInsertionPoint(loop);
  auto replaced = loop.replaceWithAdditionalYields(
      rewriter, held, /*replaceInitOperandUsesInLoop=*/false, next);
  Operation *made = replaced->getOperation();
  made->setDiscardableAttrs(attributes);
  return made->getResults().back();
}

Value Buffer::rewriteBranch(IRRewriter &rewriter, scf::IfOp branch,
                            Value held) {
  bool defined = bool(held);
  bool changes = stores(branch);
  followInside(branch, defined);
  if (!changes || !defined) {
    rewrite(rewriter, *branch.thenBlock(), held);
    if (branch.elseBlock())
      rewrite(rewriter, *branch.elseBlock(), held);
    return held;
  }
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(type);
  rewriter.setInsertionPoint(branch);
  auto made = scf::IfOp::create(rewriter, branch.getLoc(), types,
                                branch.getCondition(), /*addThenBlock=*/true,
                                /*addElseBlock=*/true);
  auto move = [&](Block *from, Block *to) {
    if (from)
      rewriter.mergeBlocks(from, to);
    Value after = rewrite(rewriter, *to, held);
    if (from) {
      Operation *yield = to->getTerminator();
      rewriter.modifyOpInPlace(yield, [&] {
        yield->insertOperands(yield->getNumOperands(), after);
      });
      return;
    }
    rewriter.setInsertionPointToEnd(to);
    scf::YieldOp::create(rewriter, branch.getLoc(), after);
  };
  made->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  move(branch.thenBlock(), made.thenBlock());
  move(branch.elseBlock(), made.elseBlock());
  rewriter.replaceOp(branch, made->getResults().drop_back());
  return made->getResults().back();
}

struct BuffersToRegisters
    : public impl::BuffersToRegistersBase<BuffersToRegisters> {
  void runOnOperation() override {
    SmallVector<tile::AllocOp> buffers;
    getOperation().walk([&](tile::AllocOp alloc) { buffers.push_back(alloc); });
    for (tile::AllocOp alloc : buffers)
      Buffer(alloc).promote();
  }
};

} // namespace
} // namespace tilewright
