//===- StreamK.cpp - steps of the last waves for all blocks -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "dialects/Tile/TileTasks.h"
#include "lib/Transforms/Pipelining/FlatLoops.h"
#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Pipelining/StreamKSteps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_STREAMK
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// Whether a tile is known to hold zeros alone.
bool isZero(Value tile) {
  DenseElementsAttr constant;
  if (!matchPattern(tile, m_Constant(&constant)) || !constant.isSplat())
    return false;
  auto value = constant.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isPosZero();
  return isa<IntegerAttr>(value) &&
         cast<IntegerAttr>(value).getValue().isZero();
}

/// Makes the tasks of one kernel parts of a share, and whole tiles.
class Splitting {
public:
  Splitting(tile::KernelOp kernel, int64_t blocks)
      : kernel(kernel), blocks(blocks), b(kernel.getContext()),
        loc(kernel.getLoc()) {}

  /// Why it cannot be; changes nothing then.
  std::optional<StringRef> run() {
    if (auto reason = findLaunches())
      return reason;
    if (auto reason = findLoop())
      return reason;
    StreamKSteps streamK(llvm::product_of(sizes), steps, blocks);
    if (!streamK.isUseful())
      return "its tiles fill all waves, or are too few";
    workspaceShape = {blocks};
    llvm::append_range(workspaceShape, sums().getShape());
    loop = flattened(loop);
    makeArguments();
    b.setInsertionPointToStart(&kernel.getEntryBlock());
    semaphores = tile::SemaphoresOp::create(
        b, loc, MemRefType::get({blocks}, b.getI32Type()));
    TaskNumbers n(b, loc);
    StreamKSteps::Task task =
        streamK.makeTask(n, n.fromIndex(round), n.fromIndex(block));
    placeTile(n, task.tile);
    split(n, task);
    for (tile::LaunchOp launch : launches)
      relaunch(launch, streamK.getRounds());
    kernel->removeAttr(tile::decisions::kRaster);
    return std::nullopt;
  }

private:
  tile::TileType sums() {
    return cast<tile::TileType>(loop.getResult(0).getType());
  }

  std::optional<StringRef> findLaunches() {
    if (!kernel->hasAttr(tile::decisions::kPersistent))
      return "its blocks run one task each (no tile.persistent)";
    if (kernel.getCluster())
      return "its blocks are clusters";
    kernel->getParentOp()->walk([&](tile::LaunchOp launch) {
      if (launch.getKernel() == kernel.getSymName())
        launches.push_back(launch);
    });
    for (tile::LaunchOp launch : launches) {
      std::optional<SmallVector<int64_t>> grid =
          getConstantIntValues(getAsOpFoldResult(launch.getGrid()));
      if (!grid || grid->empty() || (!sizes.empty() && sizes != *grid))
        return "the number of its tiles is not known, or not always the same";
      if (launch->getNumResults() != launch.getOutputs().size())
        return "it is launched on buffers";
      sizes = *grid;
    }
    return launches.empty() ? std::optional<StringRef>("nothing launches it")
                            : std::nullopt;
  }

  /// The loop over the depth of the product, those over a window around it.
  std::optional<StringRef> findLoop() {
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](scf::ForOp op) {
      if (op->hasAttr(tile::decisions::kStages))
        loops.push_back(op);
    });
    if (loops.size() != 1)
      return "it has several loops that load ahead, or none";
    loop = loops.front();
    scf::ForOp outer = outermostOf(loop);
    if (outer->getBlock() != &kernel.getEntryBlock())
      return "its loop stands in another one, or in a branch";
    steps = 1;
    for (Operation *op = loop; op != outer->getParentOp();
         op = op->getParentOp()) {
      std::optional<APInt> count = cast<scf::ForOp>(op).getStaticTripCount();
      if (!count)
        return "the number of its steps is not known";
      steps *= count->getSExtValue();
    }
    if (outer->getNumResults() != 1 ||
        !isa<tile::TileType>(outer.getResult(0).getType()))
      return "its loop carries more than one tile of sums";
    if (!isZero(outer.getInitArgs().front()))
      return "its sums begin with something else than zeros";
    return std::nullopt;
  }

  /// Sums that other blocks finish lie in memory behind all arguments. A task's
  /// coordinates are its round and its block.
  void makeArguments() {
    Block &entry = kernel.getEntryBlock();
    auto inputs = static_cast<unsigned>(kernel.getInputs().size());
    (void)kernel.insertArgument(
        inputs, MemRefType::get(workspaceShape, sums().getElementType()), {},
        loc);
    workspace = entry.getArgument(inputs);
    for (size_t number = 0; number < sizes.size(); ++number)
      tileIds.push_back(entry.getArgument(inputs + 1 + number));
    round = entry.addArgument(b.getIndexType(), loc);
    block = entry.addArgument(b.getIndexType(), loc);
    kernel.setGridRank(2);
  }

  /// What were the coordinates of a task are those of its tile.
  void placeTile(TaskNumbers &n, Value tile) {
    SmallVector<Value> bounds, coordinates(sizes.size());
    for (int64_t size : sizes)
      bounds.push_back(n.constant(size));
    auto raster = tile::decisions::kRaster.get(kernel);
    int64_t band = raster && sizes.size() >= 2 ? raster.getInt() : 0;
    takeCoordinates(n, tile, band, bounds, coordinates);
    for (auto [id, coordinate] : llvm::zip_equal(tileIds, coordinates))
      id.replaceAllUsesWith(n.toIndex(coordinate));
    kernel.getEntryBlock().eraseArguments([&](BlockArgument argument) {
      return llvm::is_contained(tileIds, argument);
    });
  }

  /// The loop runs over the task's steps, if it has any; what follows stands
  /// where they are the last ones.
  void split(TaskNumbers &n, const StreamKSteps::Task &task) {
    Value first = n.toIndex(task.first), count = n.toIndex(task.count),
          helper = n.toIndex(task.helper), none = constant(0);
    SmallVector<Operation *> behind;
    for (Operation *op = loop->getNextNode();
         op != kernel.getEntryBlock().getTerminator(); op = op->getNextNode())
      behind.push_back(op);
    b.setInsertionPoint(loop);
    Value some =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, none);
    auto work = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false);
    b.setInsertionPointToStart(work.thenBlock());
    scf::ForOp made = makeLoop(first, count);
    auto branch = scf::IfOp::create(b, loc, task.ends, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    Value sum = addOthers(made.getResult(0), helper);
    for (Operation *op : behind)
      op->moveBefore(branch.thenBlock()->getTerminator());
    loop.getResult(0).replaceAllUsesWith(sum);
    loop.erase();
    b.setInsertionPointToStart(branch.elseBlock());
    auto store = tile::StoreOp::create(b, loc, made.getResult(0), workspace,
                                       placeOf(block));
    store->setAttr(tile::decisions::kPartial, b.getUnitAttr());
    tile::SemaphorePostOp::create(b, loc, semaphores, block);
  }

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// The loop over `count` steps from `first` on.
  scf::ForOp makeLoop(Value first, Value count) {
    auto made = scf::ForOp::create(b, loop.getLoc(), constant(0), count,
                                   constant(1), loop.getInitArgs());
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    Value step = arith::AddIOp::create(b, loc, first, made.getInductionVar());
    Value far = b.createOrFold<arith::MulIOp>(loc, step, loop.getStep());
    Value at = b.createOrFold<arith::AddIOp>(loc, far, loop.getLowerBound());
    loop.getInductionVar().replaceAllUsesWith(at);
    for (auto [old, argument] :
         llvm::zip_equal(loop.getRegionIterArgs(), made.getRegionIterArgs()))
      old.replaceAllUsesWith(argument);
    made.getBody()->getOperations().splice(made.getBody()->end(),
                                           loop.getBody()->getOperations());
    return made;
  }

  SmallVector<Value> placeOf(Value number) {
    SmallVector<Value> place(workspaceShape.size(), constant(0));
    place.front() = number;
    return place;
  }

  /// Adds what the blocks from `helper` up to this one have of the tile, in
  /// their order: bits do not depend on who is done first.
  Value addOthers(Value sum, Value helper) {
    auto others = scf::ForOp::create(b, loc, helper, block, constant(1), sum);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(others.getBody());
    Value from = others.getInductionVar();
    tile::SemaphoreTakeOp::create(b, loc, semaphores, from, 1);
    Value part = tile::LoadOp::create(b, loc, sums(), workspace, placeOf(from));
    Value both = add(part, others.getRegionIterArg(0));
    scf::YieldOp::create(b, loc, both);
    return others.getResult(0);
  }

  Value add(Value x, Value y) {
    if (isa<FloatType>(sums().getElementType()))
      return arith::AddFOp::create(b, loc, x, y);
    return arith::AddIOp::create(b, loc, x, y);
  }

  /// One more tensor, for what is in `workspace`.
  void relaunch(tile::LaunchOp launch, int64_t rounds) {
    b.setInsertionPoint(launch);
    SmallVector<Value> outputs(launch.getOutputs());
    outputs.push_back(tensor::EmptyOp::create(
        b, launch.getLoc(), workspaceShape,
        cast<MemRefType>(workspace.getType()).getElementType()));
    auto made =
        tile::LaunchOp::create(b, launch.getLoc(), kernel.getSymName(),
                               ValueRange{constant(rounds), constant(blocks)},
                               launch.getInputs(), outputs);
    made->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
    launch->replaceAllUsesWith(made->getResults().drop_back());
    launch->erase();
  }

  tile::KernelOp kernel;
  int64_t blocks, steps = 0;
  OpBuilder b;
  Location loc;
  SmallVector<tile::LaunchOp> launches;
  /// Tiles along each coordinate of the grid as it was.
  SmallVector<int64_t> sizes, workspaceShape;
  SmallVector<BlockArgument> tileIds;
  scf::ForOp loop;
  Value workspace, semaphores, round, block;
};

struct StreamK : public tilewright::impl::StreamKBase<StreamK> {
  void runOnOperation() override {
    SmallVector<tile::KernelOp> kernels;
    getOperation()->walk([&](tile::KernelOp kernel) {
      if (kernel->hasAttr(tile::decisions::kStreamK))
        kernels.push_back(kernel);
    });
    for (tile::KernelOp kernel : kernels) {
      auto blocks =
          dyn_cast<IntegerAttr>(kernel->getAttr(tile::decisions::kStreamK));
      if (!blocks || blocks.getInt() < 2) {
        kernel.emitOpError("has tile.stream_k = ")
            << kernel->getAttr(tile::decisions::kStreamK)
            << ": it is a number of blocks, at least 2";
        return signalPassFailure();
      }
      if (std::optional<StringRef> reason =
              Splitting(kernel, blocks.getInt()).run())
        kernel.emitRemark("computes whole tiles, its steps are not split "
                          "between all blocks: ")
            << *reason;
      kernel->removeAttr(tile::decisions::kStreamK);
    }
  }
};

} // namespace
} // namespace tilewright
