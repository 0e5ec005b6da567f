//===- InlineLaunches.cpp - kernels that launch kernels -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/SharedArguments.h"
#include "lib/Conversion/TileToGPU/GridBarrier.h"
#include "lib/Conversion/TileToGPU/LaunchMeetings.h"
#include "lib/Conversion/TileToGPU/LaunchRoles.h"
#include "lib/Conversion/TileToGPU/LaunchedFunction.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToGPU/OrderedReads.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace tilewright {
#define GEN_PASS_DEF_INLINELAUNCHES
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The buffer behind views, those of untyped memory, too.
Value getMemory(Value memref) {
  memref = getRoot(memref);
  while (auto view = memref.getDefiningOp<memref::ViewOp>())
    memref = getRoot(view.getSource());
  return memref;
}

/// Functions that are called, by the launched one that each was made of: for a
/// task, and for all tasks of a block.
struct CalledFunctions {
  llvm::MapVector<Operation *, func::FuncOp> forOne, forAll;
};

/// Puts what a kernel launches in the places of the launches, or calls of it.
class LaunchInliner {
public:
  LaunchInliner(gpu::GPUFuncOp function, CalledFunctions &called)
      : function(function), called(called), arguments(function),
        roles(function, threadsOf(function)),
        first(&function.getBody().front().front()), teams(function) {}

  LogicalResult run() {
    if (teams.areWrong())
      return failure();
    barrier.emplace(function, teams);
    roles.split(first);
    meetings.emplace(function);
    function.walk([&](tile::LaunchOp launch) {
      for (Value output : launch.getOutputs())
        written.insert(getMemory(output));
      launches.push_back(launch);
      times[launch.getKernelAttr().getAttr()] += !roles.isProducer(launch);
    });
    function.walk([&](memref::CopyOp copy) {
      written.insert(getMemory(copy.getTarget()));
      copies.push_back(copy);
    });
    function.walk([&](memref::StoreOp store) {
      // What is a thread's own, each thread writes.
      if (!getSharedNumber(store))
        return;
      written.insert(getMemory(store.getMemref()));
      stores.push_back(store);
    });
    OrderedReads reads(function, *meetings,
                       [&](Value memref) { return mayBeWritten(memref); });
    for (auto [op, team] : reads.getMeetings())
      meet(op, op, team);
    for (Operation *nest : meetings->getNests())
      meetBehind(nest, nest->getNextNode());
    leaveConditions();
    llvm::for_each(stores, [&](memref::StoreOp store) { storeOnce(store); });
    llvm::for_each(copies, [&](memref::CopyOp copy) { copyElements(copy); });
    for (tile::LaunchOp launch : launches)
      if (failed(inlineOne(launch)))
        return failure();
    function->setAttr(
        tile::decisions::kSharedBytes,
        Builder(function).getI64IntegerAttr(roles.finish(shared)));
    return success();
  }

private:
  LogicalResult inlineOne(tile::LaunchOp launch) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(
        launch, launch.getKernelAttr());
    if (!callee || !callee->hasAttr(tile::decisions::kCode))
      return launch.emitOpError("of a kernel that tile-kernels-to-gpu has not "
                                "made a function of its caller");
    int64_t threads = threadsOf(function), others = threadsOf(callee);
    if (threads != others)
      return launch.emitOpError("is of a kernel whose blocks have ")
             << others << " threads, in one of " << threads
             << ": give both the same tile.threads";
    if (callee->hasAttr(tile::decisions::kCluster))
      return launch.emitOpError("is of a kernel with clusters, which blocks "
                                "that share its tasks are not");
    auto bytes = tile::decisions::kSharedBytes.get(callee);
    shared = std::max(shared, bytes ? bytes.getInt() : 0);
    bool producer = roles.isProducer(launch);
    OpBuilder b(launch);
    Location loc = launch.getLoc();
    Value tasks = constantIndex(b, loc, 1);
    for (Value bound : launch.getGrid())
      tasks = b.createOrFold<arith::MulIOp>(loc, tasks, bound);
    // Also of what these warps do not do: the others count its tasks, too.
    taken[launch] = tasks;
    if (producer && !roles.has(callee)) {
      leave(launch);
      return success();
    }
    if (roles.has(callee))
      roles.begin(b, loc, producer);
    if (meetings->isFollower(launch))
      meetBlock(b, loc);
    const BlockGroup &group = teams.of(teamOf(launch));
    LogicalResult result = success();
    guarded(b, loc, group.isIn, [&](OpBuilder &inner) {
      Value first = firstTask(inner, launch, group);
      if (isCalled(launch, callee) && !roles.any()) {
        result = callForAll(inner, launch, callee, first, tasks, group.blocks);
        return;
      }
      auto loop = scf::ForOp::create(inner, loc, first, tasks, group.blocks);
      OpBuilder::InsertionGuard guard(inner);
      inner.setInsertionPointToStart(loop.getBody());
      result = doTask(inner, launch, callee, loop.getInductionVar());
      // The next task may use the shared memory that this one still reads.
      if (bytes && bytes.getInt() > 0 && !producer)
        meetBlock(inner, loc);
    });
    leave(launch);
    return result;
  }

  /// The first task of the running block: the blocks behind those that took the
  /// last tasks of launches beside this one go first.
  Value firstTask(OpBuilder &b, tile::LaunchOp launch,
                  const BlockGroup &group) {
    Location loc = launch.getLoc();
    Value before;
    for (Operation *other : meetings->besides(launch))
      if (Value tasks = taken.lookup(other))
        before =
            before ? b.createOrFold<arith::AddIOp>(loc, before, tasks) : tasks;
    if (!before)
      return group.block;
    Value blocks = group.blocks;
    Value rest = arith::RemUIOp::create(b, loc, before, blocks);
    Value ahead = arith::SubIOp::create(b, loc, blocks, rest);
    Value turned = arith::AddIOp::create(b, loc, group.block, ahead);
    return arith::RemUIOp::create(b, loc, turned, blocks);
  }

  /// Blocks meet where something was done that others may read.
  void leave(Operation *done) {
    meetBehind(done, done);
    done->erase();
  }

  /// Those that meet behind an operation do before another one.
  void meetBehind(Operation *done, Operation *next) {
    for (Attribute team : meetings->behind(done))
      meet(done, next, cast_if_present<Team>(team));
  }

  /// The blocks of a team meet for an operation, or all do, before `place`. One
  /// thread of the first does something before.
  void meet(Operation *op, Operation *place, Team team,
            function_ref<void(OpBuilder &)> before = nullptr) {
    OpBuilder b(place);
    if (roles.isProducer(op))
      barrier->attend(b, op->getLoc(), team);
    else
      barrier->meet(b, op->getLoc(), team, before, /*areCounted=*/roles.any());
  }

  /// Numbers that a team reads, others may not: they go through its loops and
  /// branches with zeros, and leave those that a condition ends.
  void leaveConditions() {
    if (!teams.any())
      return;
    SmallVector<Operation *> found;
    function.walk([&](Operation *op) {
      bool reads = isa<memref::LoadOp>(op) && getSharedNumber(op);
      if (teamOf(op) && (reads || isa<scf::ConditionOp>(op)))
        found.push_back(op);
    });
    for (Operation *op : found) {
      OpBuilder b(op);
      Location loc = op->getLoc();
      Value isIn = teams.of(teamOf(op)).isIn;
      if (auto ends = dyn_cast<scf::ConditionOp>(op)) {
        ends.getConditionMutable().assign(
            arith::AndIOp::create(b, loc, ends.getCondition(), isIn));
        continue;
      }
      Type type = op->getResult(0).getType();
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
      SmallVector<Value> read =
          guarded(b, loc, isIn, zero, [&](OpBuilder &inner) {
            return llvm::to_vector_of<Value>(inner.clone(*op)->getResults());
          });
      op->replaceAllUsesWith(read);
      op->erase();
    }
  }

  /// The threads of the block that compute meet.
  void meetBlock(OpBuilder &b, Location loc) {
    if (roles.any())
      roles.meetConsumers(b, loc);
    else
      gpu::BarrierOp::create(b, loc);
  }

  /// Each thread of all blocks copies elements, a whole grid apart.
  void copyElements(memref::CopyOp copy) {
    if (roles.isProducer(copy))
      return leave(copy);
    OpBuilder b(copy);
    const BlockGroup &group = teams.of(teamOf(copy));
    guarded(b, copy.getLoc(), group.isIn,
            [&](OpBuilder &inner) { copyShare(inner, copy, group); });
    leave(copy);
  }

  void copyShare(OpBuilder &b, memref::CopyOp copy, const BlockGroup &group) {
    Location loc = copy.getLoc();
    Value source = copy.getSource(),
          width = constantIndex(b, loc, threadsOf(function));
    SmallVector<OpFoldResult> sizes = memref::getMixedSizes(b, loc, source);
    Value count = constantIndex(b, loc, 1);
    for (OpFoldResult size : sizes)
      count = arith::MulIOp::create(
          b, loc, count, getValueOrCreateConstantIndexOp(b, loc, size));
    Value thread = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                              getThreadNumber(b, loc));
    Value first = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, group.block, width), thread);
    Value step = arith::MulIOp::create(b, loc, group.blocks, width);
    auto loop = scf::ForOp::create(b, loc, first, count, step);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value rest = loop.getInductionVar();
    SmallVector<Value> place(sizes.size());
    for (size_t dim = sizes.size(); dim-- > 0;) {
      Value size = getValueOrCreateConstantIndexOp(b, loc, sizes[dim]);
      place[dim] = arith::RemUIOp::create(b, loc, rest, size);
      rest = arith::DivUIOp::create(b, loc, rest, size);
    }
    Value element = memref::LoadOp::create(b, loc, source, place);
    memref::StoreOp::create(b, loc, element, copy.getTarget(), place);
  }

  /// One thread of the first block writes a number that all have, before the
  /// block arrives.
  void storeOnce(memref::StoreOp store) {
    meet(store, store, teamOf(store),
         [&](OpBuilder &nested) { nested.clone(*store.getOperation()); });
    leave(store);
  }

  static int64_t threadsOf(gpu::GPUFuncOp op) {
    auto threads = tile::decisions::kThreads.get(op);
    return threads ? threads.getInt() : 0;
  }

  /// Whether other launches need the code, too: a network of a hundred equal
  /// layers would else be a hundred times as much of it.
  bool isCalled(tile::LaunchOp launch, gpu::GPUFuncOp callee) {
    return !roles.has(callee) &&
           times.lookup(launch.getKernelAttr().getAttr()) > 1;
  }

  /// A call that does what the block has to do of a launch. The loop is the
  /// function's: a kernel of hundreds of launches is as many calls in a row.
  LogicalResult callForAll(OpBuilder &b, tile::LaunchOp launch,
                           gpu::GPUFuncOp callee, Value first, Value end,
                           Value step) {
    FailureOr<SmallVector<Value>> values =
        makeArguments(b, launch, callee, first);
    if (failed(values))
      return failure();
    auto [entry, isNew] = called.forAll.try_emplace(callee);
    if (isNew) {
      auto bytes = tile::decisions::kSharedBytes.get(callee);
      auto behind = [&](OpBuilder &inner, Location loc) {
        if (bytes && bytes.getInt() > 0)
          gpu::BarrierOp::create(inner, loc);
      };
      entry->second = makeCalled(callee, threadsOf(callee),
                                 TaskLoop{taskArgument(callee), behind});
    }
    values->append({end, step});
    callWith(b, launch.getLoc(), entry->second, *values);
    return success();
  }

  /// Which argument is the number of the task.
  static unsigned taskArgument(gpu::GPUFuncOp callee) {
    auto entries = tile::decisions::kParams.get(callee);
    auto isTask = [](DictionaryAttr entry) {
      return entry.getAs<StringAttr>("kind").getValue() == "task";
    };
    auto range = entries.getAsRange<DictionaryAttr>();
    return std::distance(range.begin(), llvm::find_if(range, isTask));
  }

  FailureOr<SmallVector<Value>> makeArguments(OpBuilder &b,
                                              tile::LaunchOp launch,
                                              gpu::GPUFuncOp callee,
                                              Value task) {
    SmallVector<Value> values;
    auto entries = tile::decisions::kParams.get(callee);
    for (auto [argument, entry] : llvm::zip_equal(
             callee.getArguments(), entries.getAsRange<DictionaryAttr>())) {
      FailureOr<Value> value =
          makeArgument(b, launch, entry, task, argument.getType());
      if (failed(value))
        return failure();
      values.push_back(*value);
    }
    return values;
  }

  /// One task: its code, or a call of it.
  LogicalResult doTask(OpBuilder &b, tile::LaunchOp launch,
                       gpu::GPUFuncOp callee, Value task) {
    FailureOr<SmallVector<Value>> values =
        makeArguments(b, launch, callee, task);
    if (failed(values))
      return failure();
    if (roles.has(callee)) {
      roles.doTask(b, callee, *values, roles.isProducer(launch));
      return success();
    }
    if (isCalled(launch, callee)) {
      auto [entry, isNew] = called.forOne.try_emplace(callee);
      if (isNew) {
        entry->second = makeCalled(callee, threadsOf(callee));
        roles.scope(entry->second);
      }
      callWith(b, launch.getLoc(), entry->second, *values);
      return success();
    }
    if (roles.any())
      roles.scope(callee);
    IRMapping mapping;
    mapping.map(callee.getArguments(), *values);
    for (Operation &op : callee.getBody().front().without_terminator())
      b.clone(op, mapping);
    return success();
  }

  FailureOr<Value> makeArgument(OpBuilder &b, tile::LaunchOp launch,
                                DictionaryAttr entry, Value task, Type type) {
    Location loc = launch.getLoc();
    StringRef kind = entry.getAs<StringAttr>("kind").getValue();
    if (kind == "task")
      return task;
    if (kind == "tensor_map")
      return roles.mapOf(b, launch, entry);
    if (kind == "bound")
      return arith::IndexCastOp::create(
                 b, loc, type, launch.getGrid()[numberOf(entry, "dim")])
          .getResult();
    Value operand = launch.getKernelOperands()[numberOf(entry, "arg")];
    if (operand.getType() == type)
      return operand;
    return memref::CastOp::create(b, loc, type, operand).getResult();
  }

  static int64_t numberOf(DictionaryAttr entry, StringRef name) {
    return entry.getAs<IntegerAttr>(name).getInt();
  }

  /// Whether a launch of the kernel may write a buffer: of arguments it is
  /// known which.
  bool mayBeWritten(Value memref) {
    Value root = getMemory(memref);
    return !isParameter(root) || !llvm::all_of(written, isParameter) ||
           llvm::any_of(written, [&](Value other) {
             return root == other || arguments.mayMeet(root, other);
           });
  }

  gpu::GPUFuncOp function;
  CalledFunctions &called;
  SharedArguments arguments;
  LaunchRoles roles;
  /// Of what stands in the function behind what the barrier needs.
  Operation *first;
  BlockTeams teams;
  std::optional<GridBarrier> barrier;
  std::optional<LaunchMeetings> meetings;
  SmallVector<tile::LaunchOp> launches;
  /// Launches of each kernel.
  DenseMap<StringAttr, int64_t> times;
  SmallVector<memref::CopyOp> copies;
  /// Tasks of the launches that are done.
  DenseMap<Operation *, Value> taken;
  SmallVector<memref::StoreOp> stores;
  llvm::SmallPtrSet<Value, 8> written;
  int64_t shared = 0;
};

struct InlineLaunches
    : public tilewright::impl::InlineLaunchesBase<InlineLaunches> {
  void runOnOperation() override {
    SmallVector<gpu::GPUFuncOp> callers, called;
    getOperation()->walk([&](gpu::GPUFuncOp function) {
      bool launches =
          function.walk([](tile::LaunchOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
      if (launches)
        callers.push_back(function);
      if (function->hasAttr(tile::decisions::kCode))
        called.push_back(function);
    });
    CalledFunctions functions;
    for (gpu::GPUFuncOp caller : callers)
      if (failed(LaunchInliner(caller, functions).run()))
        return signalPassFailure();
    for (gpu::GPUFuncOp function : called)
      function.erase();
  }
};

} // namespace
