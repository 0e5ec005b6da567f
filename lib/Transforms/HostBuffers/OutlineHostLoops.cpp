//===- OutlineHostLoops.cpp - loops over elements as kernels --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
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
  if (isa<memref::LoadOp, memref::StoreOp, scf::ForOp, scf::WhileOp, scf::IfOp,
          scf::ParallelOp, scf::YieldOp, scf::ConditionOp, scf::ReduceOp>(op))
    return true;
  return isPure(op) && op->getNumRegions() == 0;
}

bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

/// Whether a loop with all in it can leave the host.
bool canLeave(Operation *loop) {
  if (!llvm::all_of(loop->getResultTypes(), isScalar))
    return false;
  if (auto parallel = dyn_cast<scf::ParallelOp>(loop);
      parallel && parallel.getNumResults())
    return false;
  bool touchesMemory = false, isSimple = true;
  loop->walk([&](Operation *inner) {
    touchesMemory |= isa<memref::LoadOp, memref::StoreOp>(inner);
    isSimple &= isScalarWork(inner);
  });
  return touchesMemory && isSimple;
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
    makeCells();
    collectOperands();
    makeKernel(grid.size());
    tile::LaunchOp::create(b, loc, kernel.getSymName(), grid,
                           operands.getArrayRef(), cells);
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
      cells.push_back(
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
      else
        operands.insert(value);
    }
  }

  void makeKernel(int64_t rank) {
    SmallVector<Type> types(ValueRange(operands.getArrayRef()).getTypes());
    llvm::append_range(types, ValueRange(cells).getTypes());
    OpBuilder at(loop->getParentOfType<func::FuncOp>());
    kernel = tile::KernelOp::create(at, loc, "host_loop",
                                    b.getFunctionType(types, {}), rank);
    kernel->setAttr("tile.threads", b.getI64IntegerAttr(kThreads));
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
    for (auto [value, argument] : llvm::zip(operands, body.getArguments()))
      mapping.map(value, argument);
    if (auto parallel = dyn_cast<scf::ParallelOp>(loop))
      cloneIteration(in, parallel, body.getArguments().take_back(rank),
                     mapping);
    else
      cloneLoop(in, body, mapping);
    tile::ReturnOp::create(in, loc);
  }

  void cloneLoop(OpBuilder &in, Block &body, IRMapping &mapping) {
    Operation *copy = in.clone(*loop, mapping);
    if (cells.empty())
      return;
    Value zero = arith::ConstantIndexOp::create(in, loc, 0);
    auto places = body.getArguments().drop_front(operands.size());
    for (auto [result, place] : llvm::zip(copy->getResults(), places))
      memref::StoreOp::create(in, loc, result, place, zero);
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
  SmallVector<Value> cells;
  llvm::SetVector<Value> operands, constants;
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
      if (canLeave(op)) {
        loops.push_back(op);
        return WalkResult::skip();
      }
      return WalkResult::advance();
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
