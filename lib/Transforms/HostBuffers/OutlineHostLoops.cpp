//===- OutlineHostLoops.cpp - loops over elements as kernels --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_OUTLINEHOSTLOOPS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// One warp: the least that a device starts, and one thread of it works.
constexpr int64_t kThreads = 32;

bool isLoop(Operation *op) {
  return isa<scf::ForOp, scf::WhileOp, scf::ParallelOp>(op);
}

/// Whether one thread of a device can run an operation: it computes scalars,
/// reads or writes an element, or is control flow over such.
bool isScalarWork(Operation *op) {
  if (isa<memref::LoadOp, memref::StoreOp, memref::CopyOp, scf::ForOp,
          scf::WhileOp, scf::IfOp, scf::ParallelOp, scf::YieldOp,
          scf::ConditionOp, scf::ReduceOp>(op))
    return true;
  return isPure(op) && op->getNumRegions() == 0;
}

bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

bool touchesMemory(Operation *loop) {
  return loop
      ->walk([](Operation *inner) {
        return isa<memref::LoadOp, memref::StoreOp, memref::CopyOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What keeps a loop on the host: an operation in it, the loop itself for what
/// it gives; null where nothing does.
Operation *findObstacle(Operation *loop) {
  if (!llvm::all_of(loop->getResultTypes(), isScalar) ||
      (isa<scf::ParallelOp>(loop) && loop->getNumResults()))
    return loop;
  Operation *obstacle = nullptr;
  loop->walk([&](Operation *inner) {
    if (isScalarWork(inner))
      return WalkResult::advance();
    obstacle = inner;
    return WalkResult::interrupt();
  });
  return obstacle;
}

/// Whether a loop only reads elements of a buffer.
bool isOnlyRead(Value buffer, Operation *loop) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (!loop->isAncestor(user))
      return true;
    auto copy = dyn_cast<memref::CopyOp>(user);
    return isa<memref::LoadOp, memref::DimOp>(user) ||
           (copy && copy.getTarget() != buffer);
  });
}

/// Moves one loop into a kernel and launches it in its place.
class Outliner {
public:
  Outliner(ModuleOp module, Operation *loop)
      : symbols(module), loop(loop), loc(loop->getLoc()),
        b(loop->getContext()) {}

  void run() {
    b.setInsertionPoint(loop);
    SmallVector<Value> grid = makeGrid();
    collectOperands();
    makeCells();
    makeKernel(grid.size());
    tile::LaunchOp::create(b, loc, kernel.getSymName(), grid,
                           operands.getArrayRef(), written.getArrayRef());
    ArrayRef<Value> cells =
        written.getArrayRef().take_back(loop->getNumResults());
    for (auto [result, cell] : llvm::zip_equal(loop->getResults(), cells))
      result.replaceAllUsesWith(memref::LoadOp::create(
          b, loc, cell, ValueRange{arith::ConstantIndexOp::create(b, loc, 0)}));
    loop->erase();
  }

private:
  /// The trip counts of a parallel loop: each iteration is a task.
  SmallVector<Value> makeGrid() {
    SmallVector<Value> grid;
    auto parallel = dyn_cast<scf::ParallelOp>(loop);
    if (!parallel)
      return grid;
    for (auto [lower, upper, step] :
         llvm::zip_equal(parallel.getLowerBound(), parallel.getUpperBound(),
                         parallel.getStep())) {
      Value range = b.createOrFold<arith::SubIOp>(loc, upper, lower);
      grid.push_back(b.createOrFold<arith::CeilDivSIOp>(loc, range, step));
    }
    return grid;
  }

  /// One element of memory for each scalar that the loop gives.
  void makeCells() {
    for (Type type : loop->getResultTypes())
      written.insert(
          memref::AllocOp::create(b, loc, MemRefType::get({1}, type)));
  }

  /// What the loop reads from outside; constants are made again inside.
  void collectOperands() {
    llvm::SetVector<Value> above(loop->operand_begin(), loop->operand_end());
    getUsedValuesDefinedAbove(loop->getRegions(), above);
    for (Value value : above) {
      if (Operation *owner = value.getDefiningOp();
          owner && owner->hasTrait<OpTrait::ConstantLike>())
        constants.insert(value);
      else if (!isa<MemRefType>(value.getType()) || isOnlyRead(value, loop))
        operands.insert(value);
      else
        written.insert(value);
    }
  }

  void makeKernel(int64_t rank) {
    SmallVector<Type> types(ValueRange(operands.getArrayRef()).getTypes());
    llvm::append_range(types, ValueRange(written.getArrayRef()).getTypes());
    OpBuilder at(loop->getParentOfType<func::FuncOp>());
    kernel = tile::KernelOp::create(at, loc, "host_loop",
                                    b.getFunctionType(types, {}), rank);
    kernel->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(kThreads));
    kernel->remove();
    symbols.insert(kernel, at.getInsertionPoint());
    fill(rank);
  }

  void fill(int64_t rank) {
    Block &body = kernel.getBody().front();
    OpBuilder in = OpBuilder::atBlockBegin(&body);
    IRMapping mapping;
    for (Value value : constants)
      mapping.map(value, in.clone(*value.getDefiningOp())->getResult(0));
    mapping.map(operands, body.getArguments().take_front(operands.size()));
    mapping.map(written, body.getArguments()
                             .drop_front(operands.size())
                             .take_front(written.size()));
    if (auto parallel = dyn_cast<scf::ParallelOp>(loop))
      cloneIteration(in, parallel, body.getArguments().take_back(rank),
                     mapping);
    else
      cloneLoop(in, body, mapping);
    tile::ReturnOp::create(in, loc);
    SmallVector<memref::CopyOp> copies;
    kernel.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    llvm::for_each(copies, copyElements);
  }

  /// A copy as loops over its elements.
  static void copyElements(memref::CopyOp copy) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    SmallVector<Value> lower, upper, steps;
    int64_t rank = cast<MemRefType>(copy.getSource().getType()).getRank();
    for (int64_t dim = 0; dim < rank; ++dim) {
      lower.push_back(zero);
      steps.push_back(one);
      upper.push_back(
          b.createOrFold<memref::DimOp>(loc, copy.getSource(), dim));
    }
    scf::buildLoopNest(b, loc, lower, upper, steps,
                       [&](OpBuilder &inner, Location at, ValueRange indices) {
                         Value element = memref::LoadOp::create(
                             inner, at, copy.getSource(), indices);
                         memref::StoreOp::create(inner, at, element,
                                                 copy.getTarget(), indices);
                       });
    copy.erase();
  }

  void cloneLoop(OpBuilder &in, Block &body, IRMapping &mapping) {
    Operation *copy = in.clone(*loop, mapping);
    if (copy->getNumResults() == 0)
      return;
    Value zero = arith::ConstantIndexOp::create(in, loc, 0);
    auto cells = body.getArguments().take_back(copy->getNumResults());
    for (auto [result, cell] : llvm::zip_equal(copy->getResults(), cells))
      memref::StoreOp::create(in, loc, result, cell, zero);
  }

  /// One iteration of a parallel loop, by its numbers.
  void cloneIteration(OpBuilder &in, scf::ParallelOp parallel,
                      ValueRange numbers, IRMapping &mapping) {
    for (auto [variable, number, lower, step] :
         llvm::zip_equal(parallel.getInductionVars(), numbers,
                         parallel.getLowerBound(), parallel.getStep())) {
      Value scaled =
          in.createOrFold<arith::MulIOp>(loc, number, mapping.lookup(step));
      mapping.map(variable, in.createOrFold<arith::AddIOp>(
                                loc, scaled, mapping.lookup(lower)));
    }
    for (Operation &inner : parallel.getBody()->without_terminator())
      in.clone(inner, mapping);
  }

  SymbolTable symbols;
  Operation *loop;
  Location loc;
  OpBuilder b;
  tile::KernelOp kernel;
  /// Scalars and buffers that are read; buffers that are written, and cells.
  llvm::SetVector<Value> operands, written, constants;
};

struct OutlineHostLoops
    : public tilewright::impl::OutlineHostLoopsBase<OutlineHostLoops> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    SmallVector<Operation *> loops;
    main.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isLoop(op))
        return WalkResult::advance();
      if (!touchesMemory(op))
        return WalkResult::advance();
      if (Operation *obstacle = findObstacle(op)) {
        op->emitRemark("a loop that reads or writes elements stays on the host "
                       "because of '")
            << obstacle->getName() << "'";
        return WalkResult::advance();
      }
      loops.push_back(op);
      return WalkResult::skip();
    });
    for (Operation *loop : loops) {
      tell(loop);
      Outliner(getOperation(), loop).run();
    }
  }

private:
  static void tell(Operation *loop) {
    if (isa<scf::ParallelOp>(loop))
      loop->emitRemark("a loop over elements is a kernel whose tasks have one "
                       "working thread each");
    else
      loop->emitRemark("a loop over elements runs in one thread of the GPU");
  }
};

} // namespace
