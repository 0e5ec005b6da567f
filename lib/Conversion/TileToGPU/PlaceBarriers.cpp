//===- PlaceBarriers.cpp - threads wait where memory orders them ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Analysis/LinearLayout.h"
#include "lib/Conversion/TileToGPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tilewright {
#define GEN_PASS_DEF_PLACEBARRIERS
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The buffer behind a view.
Value getRoot(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (!isa<memref::SubViewOp, memref::CastOp, memref::ReinterpretCastOp,
             memref::ExpandShapeOp, memref::CollapseShapeOp>(op))
      break;
    memref = op->getOperand(0);
  }
  return memref;
}

/// Arguments that a launch may pass the same memory for, by the attributes of
/// `tile-detach-host`.
class SharedArguments {
public:
  explicit SharedArguments(gpu::GPUFuncOp function) {
    read(function, "tile.same_memory", same);
    read(function, "tile.may_overlap", near);
  }

  /// Whether bytes of the one may be bytes of the other.
  bool mayMeet(Value root, Value other) const {
    return root == other || same.contains({root, other}) ||
           near.contains({root, other});
  }

  /// Whether equal indices are equal places.
  bool isSame(Value memref, Value other) const {
    if (memref == other)
      return true;
    // A view that leaves nothing out, of the same sizes.
    auto isWhole = [](Value value) {
      auto whole = value.getDefiningOp<memref::ReinterpretCastOp>();
      return whole && isa<BlockArgument>(whole.getSource());
    };
    auto type = dyn_cast<MemRefType>(memref.getType());
    return type == other.getType() && type.hasStaticShape() &&
           isWhole(memref) && isWhole(other) &&
           same.contains({getRoot(memref), getRoot(other)});
  }

private:
  using Pairs = llvm::DenseSet<std::pair<Value, Value>>;

  static void read(gpu::GPUFuncOp function, StringRef name, Pairs &pairs) {
    auto entries = function->getAttrOfType<ArrayAttr>(name);
    if (!entries)
      return;
    for (auto pair : entries.getAsRange<DenseI64ArrayAttr>()) {
      Value first = getPointer(function, pair[0]),
            second = getPointer(function, pair[1]);
      if (!first || !second)
        continue;
      pairs.insert({first, second});
      pairs.insert({second, first});
    }
  }

  /// The parameter that points to an argument of the kernel.
  static Value getPointer(gpu::GPUFuncOp function, int64_t argument) {
    auto parameters = function->getAttrOfType<ArrayAttr>("tile.params");
    if (!parameters)
      return nullptr;
    for (auto [index, entry] :
         llvm::enumerate(parameters.getAsRange<DictionaryAttr>())) {
      auto kind = entry.getAs<StringAttr>("kind");
      auto number = entry.getAs<IntegerAttr>("arg");
      if (kind && kind.getValue() == "pointer" && number &&
          number.getInt() == argument)
        return function.getArgument(index);
    }
    return nullptr;
  }

  Pairs same, near;
};

/// One op's access to one buffer.
struct Access {
  Operation *op;
  Value root;
  bool writes;
  bool operator==(const Access &other) const {
    return op == other.op && root == other.root && writes == other.writes;
  }
};

SmallVector<Access> getAccesses(Operation *op) {
  SmallVector<Access> result;
  auto add = [&](Value memref, bool writes) {
    result.push_back({op, getRoot(memref), writes});
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) { add(load.getMemref(), false); })
      .Case([&](tile::StoreOp store) { add(store.getMemref(), true); })
      .Case([&](tile::CopyOp copy) {
        add(copy.getSrc(), false);
        add(copy.getDst(), true);
      })
      .Case([&](memref::LoadOp load) { add(load.getMemref(), false); })
      .Case([&](memref::StoreOp store) { add(store.getMemref(), true); })
      .Case([&](memref::AtomicRMWOp update) { add(update.getMemref(), true); });
  // A tile that stays in shared memory is read where it is used.
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<tile::TileType>(operand.getType()))
      if (type.isInShared())
        if (auto load = operand.getDefiningOp<tile::LoadOp>())
          add(load.getMemref(), false);
  return result;
}

bool isOnStack(Value root) {
  return root.getDefiningOp<memref::AllocaOp>() != nullptr;
}

/// Whether several threads hold the same elements: only one of them stores
/// these, while each one loads its own.
bool hasReplicas(Type tile) {
  std::optional<LinearLayout> layout = LinearLayout::of(tile);
  return !layout || layout->getReplicas() != 0;
}

/// Whether each thread touches the same elements in both: then its own order
/// is enough.
bool isSameElements(Operation *x, Operation *y,
                    const SharedArguments &arguments) {
  if (x == y)
    return true;
  auto parts = [](Operation *op)
      -> std::optional<
          std::tuple<Value, SmallVector<Value>, SmallVector<int64_t>,
                     SmallVector<int64_t>, Type>> {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      if (!load.getIndices() && load.getType().getSpread())
        return std::tuple(load.getMemref(), llvm::to_vector(load.getOffsets()),
                          load.getTileDims(), load.getTileSteps(),
                          Type(load.getType()));
    if (auto store = dyn_cast<tile::StoreOp>(op))
      if (!store.getIndices() && store.getTileType().getSpread())
        return std::tuple(store.getMemref(),
                          llvm::to_vector(store.getOffsets()),
                          store.getTileDims(), store.getTileSteps(),
                          Type(store.getTileType()));
    return std::nullopt;
  };
  auto left = parts(x), right = parts(y);
  if (!left || !right ||
      !arguments.isSame(std::get<0>(*left), std::get<0>(*right)))
    return false;
  std::get<0>(*left) = std::get<0>(*right);
  if (*left != *right)
    return false;
  return x->getName() == y->getName() || !hasReplicas(std::get<Type>(*left));
}

/// What has been touched since all threads last met.
class Barriers {
public:
  explicit Barriers(gpu::GPUFuncOp function) : arguments(function) {}

  void run(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }
  ArrayRef<Operation *> getPlaces() const { return places.getArrayRef(); }

private:
  void visit(Operation *op) {
    if (isa<gpu::BarrierOp, tile::AwaitOp>(op)) {
      pending.clear();
      return;
    }
    SmallVector<Access> accesses = getAccesses(op);
    bool mustWait = llvm::any_of(accesses, [&](const Access &access) {
      return llvm::any_of(pending, [&](const Access &before) {
        return arguments.mayMeet(before.root, access.root) &&
               (before.writes || access.writes) && !isOnStack(access.root) &&
               !isSameElements(before.op, access.op, arguments);
      });
    });
    if (mustWait) {
      Operation *async = op->getParentOfType<tile::AsyncOp>();
      places.insert(async ? async : op);
      pending.clear();
    }
    for (const Access &access : accesses)
      if (!llvm::is_contained(pending, access))
        pending.push_back(access);
    visitRegions(op);
  }

  void visitRegions(Operation *op) {
    if (op->getNumRegions() == 0)
      return;
    SmallVector<Access> before = pending, after;
    if (isa<LoopLikeOpInterface>(op))
      after = before; // no iteration at all
    for (Region &region : op->getRegions()) {
      pending = before;
      for (Block &block : region) {
        run(block);
        // What the end of an iteration leaves meets the next one's start.
        if (isa<LoopLikeOpInterface>(op))
          run(block);
      }
      for (const Access &access : pending)
        if (!llvm::is_contained(after, access))
          after.push_back(access);
    }
    if (isa<scf::IfOp>(op) && op->getRegion(1).empty())
      for (const Access &access : before)
        if (!llvm::is_contained(after, access))
          after.push_back(access);
    pending = after;
  }

  SharedArguments arguments;
  SmallVector<Access> pending;
  llvm::SetVector<Operation *> places;
};

struct PlaceBarriers
    : public tilewright::impl::PlaceBarriersBase<PlaceBarriers> {
  using PlaceBarriersBase::PlaceBarriersBase;

  void runOnOperation() override {
    getOperation()->walk([&](gpu::GPUFuncOp function) { place(function); });
  }

private:
  static void place(gpu::GPUFuncOp function) {
    if (!function->hasAttr("tile.threads") ||
        function->hasAttr("tile.one_thread"))
      return;
    Barriers barriers(function);
    for (Block &block : function.getBody())
      barriers.run(block);
    for (Operation *op : barriers.getPlaces()) {
      OpBuilder b(op);
      gpu::BarrierOp::create(b, op->getLoc());
    }
  }
};

} // namespace
