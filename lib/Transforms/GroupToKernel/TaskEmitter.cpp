//===- TaskEmitter.cpp - an outermost group as a kernel -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskEmitter.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace tilewright {

LogicalResult TaskEmitter::analyze() {
  if (failed(loops.collect(group, nests)) || failed(loops.verify(nests)))
    return failure();
  if (nests.empty())
    return group.emitError("holds no register group");
  for (const NestAnalysis &nest : nests)
    if (nest.isPadded() != isPadded())
      return nest.root()->emitError(
          "is padded (tile.padded) or not, other than "
          "the last register group of its task");
  if (failed(findBlocks()))
    return failure();
  return findGrid();
}

/// Tasks that one thread runs take each step of the outermost loop together.

/// What the plan says of a whole kernel, on the roots of its nests: threads,
/// order of tasks, who loads, stores and runs several tasks, predicted time.
constexpr llvm::StringRef kKernelAttributes[] = {
    tile::decisions::kWarps,       tile::decisions::kRaster,
    tile::decisions::kSpecialized, tile::decisions::kStagger,
    tile::decisions::kStaged,      tile::decisions::kPersistent,
    tile::decisions::kFetched,     tile::decisions::kOccupancy,
    tile::decisions::kOverlap,     tile::decisions::kPrediction,
    tile::decisions::kStreamK};

/// The dimensions of a nest that a task does not cover, in the order of
/// `tile.grid` or else in traversal order.
SmallVector<TaskEmitter::GridDim>
TaskEmitter::cutDims(const NestAnalysis &nest) const {
  SmallVector<GridDim> result;
  SmallVector<unsigned> order = nest.order();
  if (auto grid = tile::decisions::kGrid.get(nest.root())) {
    SmallVector<unsigned> first;
    for (int64_t dim : grid.asArrayRef())
      if (llvm::is_contained(order, dim) && !llvm::is_contained(first, dim))
        first.push_back(dim);
    llvm::erase_if(
        order, [&](unsigned dim) { return llvm::is_contained(first, dim); });
    order.insert(order.begin(), first.begin(), first.end());
  }
  for (unsigned dim : order) {
    int64_t size = nest.taskTile(dim, tile::GroupOp(group).getLevel());
    bool whole = nest.isDynamic(dim) ? ShapedType::isDynamic(size)
                                     : size >= nest.extents[dim];
    if (!whole)
      result.push_back({dim, size, nest.extents[dim]});
  }
  return result;
}

LogicalResult TaskEmitter::findGrid() {
  const NestAnalysis &anchor = nests.back();
  grid = cutDims(anchor);
  for (const GridDim &cut : grid)
    if (anchor.isReduction(cut.dim))
      return anchor.root()->emitError("has a task tile of ")
             << cut.tile << " along its reduction d" << cut.dim
             << "; tasks are independent, so a task covers its reductions";
  sizes.analyze(nests, loops, grid.size());
  return success();
}

SmallVector<TaskEmitter::GridBound> TaskEmitter::gridBounds() const {
  SmallVector<GridBound> bounds;
  for (const GridDim &dim : grid) {
    GridBound bound = {dim.tile, dim.extent, {}, 0};
    if (dim.dynamic())
      std::tie(bound.tensor, bound.dim) = sizes.tensorOf(nests.back(), dim.dim);
    bounds.push_back(bound);
  }
  return bounds;
}

/// Operands that some nest reads, by number. Destinations are no reads.
SmallVector<unsigned> TaskEmitter::usedOperands() {
  llvm::SmallSetVector<unsigned, 8> used;
  for (const NestAnalysis &nest : nests)
    for (const NestRead &read : nest.reads)
      if (auto arg = dyn_cast<BlockArgument>(wholeOf(read.value));
          arg && !loops.makerOf(arg))
        used.insert(arg.getArgNumber());
  SmallVector<unsigned> result(used.begin(), used.end());
  llvm::sort(result);
  return result;
}

/// The tensor in whose place tasks write a value, followed to its origin.
static Value originOf(Value value) {
  while (auto result = dyn_cast_if_present<OpResult>(value)) {
    Value place;
    if (auto launch = dyn_cast<tile::LaunchOp>(result.getOwner()))
      place = launch.getOutputs()[result.getResultNumber()];
    else if (auto group = dyn_cast<tile::GroupOp>(result.getOwner()))
      place = destinationOf(group, result.getResultNumber());
    if (!place)
      break;
    value = place;
  }
  return value;
}

/// Whether a tensor is a slice of another one, seen in another shape or not.
static bool isPart(Value value) {
  for (;;) {
    value = originOf(value);
    Operation *op = value.getDefiningOp();
    if (!isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return isa_and_present<tensor::ExtractSliceOp>(op);
    value = op->getOperand(0);
  }
}

/// Type of the buffer behind a tensor of the host function. A slice of another
/// tensor keeps the strides of its source, and so does what is written there.
MemRefType TaskEmitter::memrefType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  if (!isPart(value))
    return MemRefType::get(type.getShape(), type.getElementType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

FailureOr<tile::KernelOp>
TaskEmitter::emitKernel(OpBuilder &builder, StringRef name,
                        SmallVectorImpl<unsigned> &operands) {
  operands = usedOperands();
  SmallVector<Type> inputs;
  for (unsigned number : operands)
    inputs.push_back(memrefType(group->getOperand(number)));
  Operation *yield = group.getBody().front().getTerminator();
  auto isBuffer = [&](Value tensor) {
    return TaskSizes::isArgument(tensor)
               ? llvm::is_contained(operands,
                                    cast<BlockArgument>(tensor).getArgNumber())
               : llvm::is_contained(yield->getOperands(), tensor);
  };
  sources = sizes.sources(isBuffer);
  for (TaskSizes::Source source : sources)
    if (source.second != TaskSizes::kNumber && !isBuffer(source.first))
      passed.push_back(source);
  inputs.append(passed.size(), builder.getIndexType());
  for (OpResult result : group->getResults()) {
    Value destination = destinationOf(group, result.getResultNumber());
    inputs.push_back(
        destination ? memrefType(destination)
                    : MemRefType::get(
                          cast<ShapedType>(result.getType()).getShape(),
                          cast<ShapedType>(result.getType()).getElementType()));
  }
  if (failed(findSpills()))
    return failure();
  for (OpResult spill : spills) {
    auto type = cast<ShapedType>(spill.getType());
    inputs.push_back(MemRefType::get(type.getShape(), type.getElementType()));
  }
  auto kernel = tile::KernelOp::create(
      builder, group.getLoc(), name,
      FunctionType::get(group.getContext(), inputs, {}), grid.size());
  if (nests.size() == 1 &&
      nests.front().root()->hasAttr(tile::decisions::kTasksInside))
    kernel->setAttr(tile::decisions::kTasksInside, builder.getUnitAttr());
  for (const NestAnalysis &nest : nests) // the last one counts
    for (StringRef name : kKernelAttributes)
      if (Attribute value = nest.root()->getAttr(name))
        kernel->setAttr(name, value);
  setEqualSizes(kernel, operands);
  if (failed(setCluster(kernel))) {
    kernel.erase();
    return failure();
  }
  OpBuilder::InsertionGuard guard(builder);
  entry = &kernel.getBody().front();
  builder.setInsertionPointToEnd(entry);
  auto end = tile::ReturnOp::create(builder, group.getLoc());
  builder.setInsertionPoint(end);

  llvm::append_range(symbols, entry->getArguments().drop_front(inputs.size()));
  for (auto [position, number] : llvm::enumerate(operands))
    storage[group.getBody().front().getArgument(number)] = {
        entry->getArgument(position), {}};
  unsigned first = operands.size() + passed.size();
  ValueRange passedSizes =
      entry->getArguments().slice(operands.size(), passed.size());
  for (auto [number, value] : llvm::enumerate(yield->getOperands()))
    storage[loops.placeOf(value)] = {entry->getArgument(first + number), {}};
  first += yield->getNumOperands();
  for (auto [number, spill] : llvm::enumerate(spills))
    storage[spill] = {entry->getArgument(first + number), {}};

  makeSymbols(builder, passedSizes);
  if (failed(emitVariants(builder, 0, wholeTasks()))) {
    kernel.erase();
    return failure();
  }
  return kernel;
}

/// Tasks that are a cluster (`tile.cluster` on the last root, along each of its
/// loops) are whole numbers of the grid: none may wait for one that is not
/// there. Where a run tells the size, the grid is rounded up (`tile.rounded`):
/// what tasks touch has bounds there, and those behind the end touch nothing.
LogicalResult TaskEmitter::setCluster(tile::KernelOp kernel) const {
  const NestAnalysis &anchor = nests.back();
  auto sizes = tile::decisions::kCluster.get(anchor.root());
  if (!sizes)
    return success();
  SmallVector<int64_t> cluster(grid.size(), 1), rounded(cluster);
  SmallVector<int64_t> left(sizes.asArrayRef());
  for (auto [number, dim] : llvm::enumerate(grid)) {
    if (dim.dim >= left.size())
      continue;
    std::swap(cluster[number], left[dim.dim]);
    rounded[number] = dim.dynamic() && isPadded() ? cluster[number] : 1;
    int64_t tasks = dim.dynamic() ? rounded[number]
                                  : (dim.extent + dim.tile - 1) / dim.tile;
    if (cluster[number] < 1 || tasks % cluster[number] != 0)
      return anchor.root()->emitError("has tile.cluster = ")
             << sizes << ", but the number of tasks along d" << dim.dim
             << (dim.dynamic() ? " is not known"
                               : " is " + std::to_string(tasks))
             << ": it must be a multiple of the cluster's size";
  }
  if (llvm::any_of(left, [](int64_t size) { return size != 1; }))
    return anchor.root()->emitError("has more than one task of tile.cluster = ")
           << sizes << " along a loop that a task covers";
  kernel.setCluster(ArrayRef<int64_t>(cluster));
  if (llvm::any_of(rounded, [](int64_t size) { return size > 1; }))
    kernel->setAttr(tile::decisions::kRounded,
                    Builder(kernel).getDenseI64ArrayAttr(rounded));
  return success();
}

/// Sizes of the tasks that are not the last ones of a ragged dimension. Along
/// one of a run-time extent all tasks share their code.
SmallVector<AffineExpr> TaskEmitter::wholeTasks() {
  SmallVector<AffineExpr> tileSizes;
  for (auto [number, dim] : llvm::enumerate(grid))
    tileSizes.push_back(
        dim.dynamic() && dim.tile != 1 && !isPadded()
            ? sizes.taskSize(group.getContext(), number)
            : getAffineConstantExpr(dim.tile, group.getContext()));
  return tileSizes;
}

/// The last task along a ragged dimension is smaller: it gets code of its own
/// with static sizes, chosen by the task's id. Padded tasks are all equal.
LogicalResult TaskEmitter::emitVariants(OpBuilder &builder, unsigned number,
                                        SmallVector<AffineExpr> tileSizes) {
  if (number == grid.size())
    return emitVariant(builder, tileSizes);
  const GridDim &dim = grid[number];
  if (!dim.ragged() || isPadded())
    return emitVariants(builder, number + 1, tileSizes);
  Location loc = group.getLoc();
  Value last =
      arith::ConstantIndexOp::create(builder, loc, dim.extent / dim.tile);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       symbols[number], last);
  auto branch = scf::IfOp::create(builder, loc, isLast, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (failed(emitVariants(builder, number + 1, tileSizes)))
    return failure();
  tileSizes[number] = builder.getAffineConstantExpr(dim.extent % dim.tile);
  builder.setInsertionPointToStart(branch.thenBlock());
  return emitVariants(builder, number + 1, tileSizes);
}

/// Gives each tensor that only this task sees a buffer of the region's size.
void TaskEmitter::placeBuffers(OpBuilder &builder, ArrayRef<Box> boxes) {
  for (auto [nest, box] : llvm::zip_equal(nests, boxes))
    for (OpResult result : nest.group->getResults())
      if (Value place = loops.placeOf(result); place != result)
        storage[result] = storage.at(place);
      else if (!storage.contains(result) || buffers.contains(result))
        placeBuffer(builder, result, nest, box);
  loops.place(storage, builder.getAffineSymbolExpr(sizes.numSymbols()),
              [&](Value number) { return sizes.symbolOf(number); });
}

void TaskEmitter::placeBuffer(OpBuilder &builder, OpResult result,
                              const NestAnalysis &nest, const Box &box) {
  tile::GroupOp inner = nest.group;
  Operation *yield = inner.getBody().front().getTerminator();
  SmallVector<int64_t> shape;
  Access origin;
  for (AffineExpr expr : nest.resultAccess(
           cast<OpResult>(yield->getOperand(result.getResultNumber())))) {
    auto [offset, size] = regionOf(expr, box);
    shape.push_back(*boundOf(size));
    origin.push_back(offset);
  }
  Value &buffer = buffers[result];
  if (!buffer) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    auto level = tile::LevelAttr::get(group.getContext(), group.getLevel());
    Type element = cast<ShapedType>(result.getType()).getElementType();
    buffer = tile::AllocOp::create(
        builder, nest.root().getLoc(),
        MemRefType::get(shape, element, MemRefLayoutAttrInterface(), level));
  }
  storage[result] = {buffer, origin};
}

/// The nest that takes its reduction in blocks, if any, and the loop it cuts.
LogicalResult TaskEmitter::findBlocks() {
  for (auto [number, nest] : llvm::enumerate(nests))
    for (unsigned dim = 0; dim < nest.extents.size(); ++dim) {
      int64_t size = nest.blockTile(dim);
      if (size >= nest.extents[dim])
        continue;
      Operation *yield = nest.group.getBody().front().getTerminator();
      if (!nest.isReduction(dim) || blocks || nest.registerTile(dim) > 1 ||
          yield->getNumOperands() != 1 ||
          yield->getOperand(0).getDefiningOp() != nest.root())
        return nest.root()->emitError("has blocks of ")
               << size << " along d" << dim
               << ": one reduced loop of a task, of a nest that makes nothing "
                  "but this sum, can have them";
      blocks = {unsigned(number), GridDim{dim, size, nest.extents[dim]}};
    }
  return success();
}

LogicalResult TaskEmitter::emitVariant(OpBuilder &builder,
                                       ArrayRef<AffineExpr> tileSizes) {
  if (!blocks)
    return emitNests(builder, tileSizes, 0, nests.size(), SumBlock());
  // What feeds the blocked nest is made block by block, too; what follows
  // needs all of its sum.
  unsigned end = blocks->nest + 1;
  if (failed(emitInit(builder, tileSizes)))
    return failure();
  const GridDim &cut = blocks->cut;
  Location loc = group.getLoc();
  MLIRContext *context = group.getContext();
  int64_t whole = cut.extent / cut.tile;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value upper = arith::ConstantIndexOp::create(builder, loc, whole);
  auto loop = scf::ForOp::create(builder, loc, zero, upper, one);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    SumBlock block;
    block.number = number;
    block.offset = getAffineSymbolExpr(sizes.numSymbols(), context) * cut.tile;
    block.size = cut.tile;
    if (failed(emitNests(builder, tileSizes, 0, end, block)))
      return failure();
  }
  if (cut.ragged()) {
    SumBlock block;
    block.number = upper;
    block.offset = getAffineConstantExpr(whole * cut.tile, context);
    block.size = cut.extent % cut.tile;
    if (failed(emitNests(builder, tileSizes, 0, end, block)))
      return failure();
  }
  return emitNests(builder, tileSizes, end, nests.size(), SumBlock());
}

/// What the sum that runs in blocks starts from.
LogicalResult TaskEmitter::emitInit(OpBuilder &builder,
                                    ArrayRef<AffineExpr> tileSizes) {
  SumBlock block;
  block.offset = getAffineConstantExpr(0, group.getContext());
  block.size = blocks->cut.tile;
  FailureOr<SmallVector<Box>> boxes = propagate(tileSizes, block);
  if (failed(boxes))
    return failure();
  placeBuffers(builder, *boxes);
  NestEmitter emitter(builder, nests[blocks->nest], (*boxes)[blocks->nest],
                      storage, symbols);
  emitter.emitOnly(NestEmitter::Part::Init);
  return emitter.emit();
}

/// The nests from `begin` to `end`, for one block of the reduction of the one
/// that has blocks.
LogicalResult TaskEmitter::emitNests(OpBuilder &builder,
                                     ArrayRef<AffineExpr> tileSizes,
                                     unsigned begin, unsigned end,
                                     const SumBlock &block) {
  FailureOr<SmallVector<Box>> boxes = propagate(tileSizes, block);
  if (failed(boxes))
    return failure();
  placeBuffers(builder, *boxes);
  SmallVector<Value> ids(symbols);
  if (block.number)
    ids.push_back(block.number);
  for (unsigned number = begin; number < end; ++number) {
    if (const TaskLoops::Loop *loop = loops.startingAt(number)) {
      if (failed(emitLoop(builder, *loop, *boxes)))
        return failure();
      number = loop->end - 1;
      continue;
    }
    NestEmitter emitter(builder, nests[number], (*boxes)[number], storage, ids);
    if (block.size && blocks->nest == number)
      emitter.emitOnly(NestEmitter::Part::Block);
    if (failed(emitter.emit()))
      return failure();
  }
  return success();
}

/// What a loop over blocks reads in all of its rounds, a block of queries say,
/// is loaded before it: threads have registers for it.
static void hoistLoads(scf::ForOp loop) {
  llvm::SmallDenseSet<Value> written;
  loop.walk([&](tile::StoreOp store) { written.insert(store.getMemref()); });
  moveLoopInvariantCode(
      &loop.getRegion(),
      [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
      [&](Operation *op, Region *) {
        auto load = dyn_cast<tile::LoadOp>(op);
        return load ? isa<BlockArgument>(load.getMemref()) &&
                          !written.contains(load.getMemref())
                    : isPure(op);
      },
      [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
}

/// A loop of the group: what it carries lies in buffers.
LogicalResult TaskEmitter::emitLoop(OpBuilder &builder,
                                    const TaskLoops::Loop &loop,
                                    ArrayRef<Box> boxes) {
  scf::ForOp op = loop.op;
  auto bounds =
      liveBounds(builder, loop, nests, boxes, symbols, [&](Value number) {
        return symbols[cast<AffineSymbolExpr>(sizes.symbolOf(number))
                           .getPosition()];
      });
  if (failed(bounds))
    return failure();
  Value step = arith::ConstantIndexOp::create(
      builder, op.getLoc(), *getConstantIntValue(op.getStep()));
  auto copy = scf::ForOp::create(builder, op.getLoc(), bounds->first,
                                 bounds->second, step);
  for (unsigned number = loop.begin; number < loop.end; ++number)
    if (Attribute stages =
            nests[number].root()->getAttr(tile::decisions::kStages))
      copy->setAttr(tile::decisions::kStages, stages);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(copy.getBody());
  SmallVector<Value> ids(symbols);
  ids.push_back(copy.getInductionVar());
  storage[op.getInductionVar()] = {copy.getInductionVar(), {}};
  FailureOr<Value> live = emitLiveTest(builder, loop, boxes, ids);
  if (failed(live))
    return failure();
  if (*live) {
    auto branch = scf::IfOp::create(builder, op.getLoc(), *live,
                                    /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
  }
  for (unsigned number = loop.begin; number < loop.end; ++number) {
    NestEmitter emitter(builder, nests[number], boxes[number], storage, ids);
    if (failed(emitter.emit()))
      return failure();
  }
  if (isPadded())
    hoistLoads(copy);
  return success();
}

} // namespace tilewright
