//===- OverlapTasks.cpp - stores of one task beside the next one's work ---===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/NestFusion.h"
#include "lib/Transforms/GroupToKernel/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_OVERLAPTASKS
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

/// Makes several tasks of a kernel one: the last nest of each runs beside the
/// nest of the next one that computes most.
class Overlap {
public:
  Overlap(tile::KernelOp kernel, int64_t tasks)
      : kernel(kernel), tasks(tasks), b(kernel.getContext()),
        loc(kernel.getLoc()) {}

  /// Why it cannot be; changes nothing then.
  std::optional<StringRef> run() {
    if (std::optional<StringRef> reason = split())
      return reason;
    if (std::optional<StringRef> reason = findBuffers())
      return reason;
    findCarried();
    widenBuffers();
    emit();
    return std::nullopt;
  }

private:
  using Ops = SmallVector<Operation *>;

  /// Divides the body: what all tasks share, the head, the host, the middle,
  /// and the tail, whose first operation is the guest.
  std::optional<StringRef> split() {
    for (auto loop : kernel.getEntryBlock().getOps<scf::ForOp>()) {
      std::optional<Nest> nest = nestOf(loop);
      if (!nest || multiplies(*nest) ||
          llvm::any_of(*nest, [](scf::ForOp loop) {
            return !loop.getStaticTripCount();
          }))
        return "its loops are no plain nests";
      nests.push_back(std::move(*nest));
    }
    if (nests.size() < 2)
      return "it has no nest before the last one";
    guest = nests.back();
    Device device(kernel);
    for (const Nest &nest : ArrayRef(nests).drop_back())
      if (walkAlike(nest, guest) && sharedSteps(nest, guest) > 0 &&
          computesMuchMore(nest, guest, device) &&
          (host.empty() || workOf(nest, device) > workOf(host, device)))
        host = nest;
    if (host.empty())
      return "no nest before the last one computes much more over the same "
             "rows";
    Ops *part = &head;
    for (Operation &op : kernel.getEntryBlock().without_terminator()) {
      if (&op == guest.front())
        part = &tail;
      if (op.hasTrait<OpTrait::ConstantLike>() || isa<tile::AllocOp>(op))
        continue;
      if (&op == host.front())
        part = &middle;
      else
        part->push_back(&op);
    }
    return std::nullopt;
  }

  bool isIn(Operation *user, ArrayRef<Operation *> part) {
    Operation *top = kernel.getEntryBlock().findAncestorOpInBlock(*user);
    return top && llvm::is_contained(part, top);
  }

  bool isEarly(Operation *user) {
    return isIn(user, head) || host.front()->isAncestor(user);
  }

  /// Buffers that the tail of a task reads while the next one is at work.
  std::optional<StringRef> findBuffers() {
    for (auto alloc : kernel.getEntryBlock().getOps<tile::AllocOp>()) {
      bool early = llvm::any_of(alloc->getUsers(),
                                [&](Operation *user) { return isEarly(user); });
      if (!early || llvm::none_of(alloc->getUsers(), [&](Operation *user) {
            return isIn(user, tail);
          }))
        continue;
      if (!llvm::all_of(alloc->getUsers(),
                        llvm::IsaPred<tile::LoadOp, tile::StoreOp>) ||
          !alloc.getType().getRank())
        return "a buffer of its last nest is not only loaded and stored";
      doubled.push_back(alloc);
    }
    return std::nullopt;
  }

  /// Values of a task that its tail needs; addresses are computed again.
  void findCarried() {
    SetVector<Value> found;
    for (Operation *op : tail)
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          collect(operand, found);
      });
    carried = found.takeVector();
  }

  void collect(Value value, SetVector<Value> &found) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &kernel.getEntryBlock() || isIn(op, tail) ||
        op->hasTrait<OpTrait::ConstantLike>() || isa<tile::AllocOp>(op))
      return;
    if (!isPure(op) || op->getNumRegions() ||
        !llvm::all_of(op->getResultTypes(), llvm::IsaPred<IndexType>)) {
      found.insert(value);
      return;
    }
    for (Value operand : op->getOperands())
      collect(operand, found);
    again.insert(op);
  }

  void widenBuffers() {
    for (tile::AllocOp alloc : doubled) {
      MemRefType type = alloc.getType();
      SmallVector<int64_t> shape(type.getShape());
      rows[alloc] = shape.front();
      shape.front() *= 2;
      alloc.getResult().setType(MemRefType::get(shape, type.getElementType(),
                                                type.getLayout(),
                                                type.getMemorySpace()));
    }
  }

  /// A stage for the task with that number in its block, in a slot.
  TaskStage makeStage(Value number, Value slot) {
    TaskStage stage;
    Value task = kernel.getGridIds().back();
    stage.map.map(
        task, applyIndex(b, loc,
                         b.getAffineDimExpr(0) * tasks + b.getAffineDimExpr(1),
                         {task, number}));
    for (tile::AllocOp alloc : doubled)
      stage.slots[alloc] =
          applyIndex(b, loc, b.getAffineDimExpr(0) * rows[alloc], {slot});
    return stage;
  }

  void clone(OpBuilder &at, TaskStage &stage, ArrayRef<Operation *> part) {
    for (Operation *op : part)
      stage.clone(at, op);
  }

  /// The tail's stage: of the task before, with what that one computed.
  TaskStage makeTail(Value number, Value slot, ValueRange values) {
    TaskStage stage = makeStage(number, slot);
    stage.map.map(carried, values);
    for (Operation &op : kernel.getEntryBlock())
      if (again.contains(&op))
        stage.clone(b, &op);
    return stage;
  }

  SmallVector<Value> carriedBy(TaskStage &stage) {
    return llvm::map_to_vector(
        carried, [&](Value value) { return stage.map.lookup(value); });
  }

  void emit() {
    Ops old(head);
    old.push_back(host.front());
    llvm::append_range(old, middle);
    llvm::append_range(old, tail);
    b.setInsertionPoint(kernel.getEntryBlock().getTerminator());
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value zero = number(0), one = number(1), last = number(tasks - 1);
    TaskStage first = makeStage(zero, zero);
    clone(b, first, head);
    first.clone(b, host.front());
    clone(b, first, middle);
    auto loop =
        scf::ForOp::create(b, loc, one, number(tasks), one, carriedBy(first));
    if (!loop.getBody()->empty())
      loop.getBody()->back().erase();
    b.setInsertionPointToStart(loop.getBody());
    emitRound(loop);
    b.setInsertionPointAfter(loop);
    TaskStage end = makeTail(last, number((tasks - 1) % 2), loop.getResults());
    clone(b, end, tail);
    for (Operation *op : llvm::reverse(old))
      op->erase();
  }

  /// A task but for its tail, and the tail of the one before.
  void emitRound(scf::ForOp loop) {
    Value at = loop.getInductionVar();
    AffineExpr round = b.getAffineDimExpr(0);
    TaskStage now = makeStage(at, applyIndex(b, loc, round % 2, {at}));
    TaskStage before = makeTail(applyIndex(b, loc, round - 1, {at}),
                                applyIndex(b, loc, (round + 1) % 2, {at}),
                                loop.getRegionIterArgs());
    clone(b, now, head);
    fuseNests(b, host, guest, now, before);
    clone(b, before, ArrayRef(tail).drop_front());
    clone(b, now, middle);
    scf::YieldOp::create(b, loc, carriedBy(now));
  }

  tile::KernelOp kernel;
  int64_t tasks;
  OpBuilder b;
  Location loc;
  SmallVector<Nest> nests;
  Nest host, guest;
  Ops head, middle, tail;
  SmallVector<tile::AllocOp> doubled;
  DenseMap<Value, int64_t> rows;
  SmallVector<Value> carried;
  DenseSet<Operation *> again;
};

/// The launches of a kernel, in whose grids several tasks become one.
class Launches {
public:
  Launches(ModuleOp module, tile::KernelOp kernel, int64_t tasks)
      : tasks(tasks) {
    module.walk([&](tile::LaunchOp launch) {
      if (launch.getKernel() == kernel.getSymName())
        launches.push_back(launch);
    });
  }

  bool mayShrink() const {
    return llvm::all_of(launches, [&](tile::LaunchOp launch) {
      std::optional<int64_t> bound =
          getConstantIntValue(launch.getGrid().back());
      return bound && *bound % tasks == 0;
    });
  }

  void shrink() {
    for (tile::LaunchOp launch : launches) {
      OpBuilder b(launch);
      OpOperand &bound = launch.getGridMutable()[launch.getGrid().size() - 1];
      bound.set(arith::ConstantIndexOp::create(
          b, launch.getLoc(), *getConstantIntValue(bound.get()) / tasks));
    }
  }

private:
  int64_t tasks;
  SmallVector<tile::LaunchOp> launches;
};

struct OverlapTasks : public impl::OverlapTasksBase<OverlapTasks> {
  using OverlapTasksBase::OverlapTasksBase;

  void runOnOperation() override {
    SmallVector<tile::KernelOp> kernels(
        getOperation().getOps<tile::KernelOp>());
    for (tile::KernelOp kernel : kernels) {
      auto tasks = tile::decisions::kOverlap.get(kernel);
      if (!tasks)
        continue;
      kernel->removeAttr(tile::decisions::kOverlap);
      if (std::optional<StringRef> reason = overlap(kernel, tasks.getInt()))
        kernel.emitRemark("its tasks run one after the other: ") << *reason;
    }
  }

private:
  std::optional<StringRef> overlap(tile::KernelOp kernel, int64_t tasks) {
    Launches launches(getOperation(), kernel, tasks);
    if (tasks < 2 || kernel.getGridIds().empty() || !launches.mayShrink())
      return "the last bound of its grid is no multiple of `tile.overlap`";
    if (std::optional<StringRef> reason = Overlap(kernel, tasks).run())
      return reason;
    launches.shrink();
    return std::nullopt;
  }
};

} // namespace
} // namespace tilewright
