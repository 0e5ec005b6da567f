//===- ConvertTileKernelToFunc.cpp - kernels as functions -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/MemoryGuards.h"
#include "lib/Conversion/TileToRuntime/LaunchAliasing.h"
#include "lib/Conversion/TileToRuntime/ProgramLowering.h"
#include "lib/Conversion/TileToRuntime/RawMemory.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTILEKERNELTOFUNC
#include "lib/Conversion/TileToRuntime/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

constexpr int64_t kAlignment = 64;

/// Memory levels are places in one address space here: drops them from types.
void dropLevels(Operation *kernel) {
  auto plain = [](Type type) -> Type {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || !memref.getMemorySpace())
      return type;
    return MemRefType::Builder(memref).setMemorySpace(Attribute());
  };
  kernel->walk([&](Operation *op) {
    for (Value result : op->getResults())
      result.setType(plain(result.getType()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setType(plain(argument.getType()));
  });
}

int64_t getBytes(MemRefType type) {
  Type element = type.getElementType();
  int64_t bits =
      element.isIndex() ? 64 : int64_t(element.getIntOrFloatBitWidth());
  return type.getNumElements() * ((bits + 7) / 8);
}

/// Makes the function of one kernel.
class KernelLowering {
public:
  KernelLowering(tile::KernelOp kernel, const LLVMTypeConverter &converter)
      : kernel(kernel), b(kernel), loc(kernel.getLoc()),
        memory(b, loc, converter) {}

  LogicalResult run(ArrayRef<int64_t> distinct) {
    dropLevels(kernel);
    auto bytes = planScratch();
    if (failed(bytes))
      return failure();
    func::FuncOp function = makeFunction(*bytes);
    b.setInsertionPointToStart(&function.getBody().front());
    Block &entry = kernel.getBody().front();
    int64_t rank = kernel.getGridRank();
    int64_t inputs = entry.getNumArguments() - rank;
    Value argv = function.getArgument(0);
    SmallVector<Value> arguments, bounds;
    for (int64_t i = 0; i < inputs; ++i)
      arguments.push_back(readArgument(entry.getArgument(i).getType(),
                                       memory.loadPointer(argv, i)));
    markDistinct(arguments, distinct);
    for (int64_t i = 0; i < rank; ++i)
      bounds.push_back(
          memory.loadIndex(memory.loadPointer(argv, inputs + i), 0));
    makeLoop(function, arguments, bounds);
    placeScratch(function, *bytes);
    kernel.erase();
    return success();
  }

private:
  FailureOr<int64_t> planScratch() {
    const int64_t gap = checksAccesses(kernel) ? kGuardBytes : 0;
    int64_t bytes = gap;
    WalkResult result = kernel.walk([&](tile::AllocOp alloc) {
      auto type = cast<MemRefType>(alloc.getType());
      if (!type.hasStaticShape() || !type.getLayout().isIdentity()) {
        alloc.emitOpError("must have a static shape and no strides on a CPU, "
                          "but its type is ")
            << type;
        return WalkResult::interrupt();
      }
      places.push_back({bytes, getBytes(type)});
      bytes += llvm::alignTo(places.back().second, kAlignment) + gap;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    return places.empty() ? 0 : bytes;
  }

  func::FuncOp makeFunction(int64_t bytes) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = b.getFunctionType(
        {pointer, b.getI64Type(), b.getI64Type(), pointer}, {});
    auto function = func::FuncOp::create(b, loc, kernel.getSymName(), type);
    function->setAttr(tile::decisions::kCode, b.getUnitAttr());
    function->setAttr(tile::decisions::kScratchBytes,
                      b.getI64IntegerAttr(bytes));
    function.setArgAttr(3, "llvm.noalias", b.getUnitAttr());
    function.addEntryBlock();
    return function;
  }

  Value readArgument(Type type, Value descriptor) {
    if (auto memref = dyn_cast<MemRefType>(type))
      return memory.readDescriptor(memref, descriptor);
    if (type.isIndex())
      return memory.loadIndex(descriptor, 0);
    return LLVM::LoadOp::create(b, loc, type, descriptor);
  }

  void markDistinct(SmallVectorImpl<Value> &arguments,
                    ArrayRef<int64_t> distinct) {
    if (distinct.size() < 2)
      return;
    SmallVector<Value> objects;
    for (int64_t index : distinct)
      objects.push_back(arguments[index]);
    auto marked = memref::DistinctObjectsOp::create(b, loc, objects);
    for (auto [index, object] : llvm::zip_equal(distinct, marked.getResults()))
      arguments[index] = object;
  }

  /// for task in [begin, end): ids from the task number; the body. Or, where
  /// `tile.tasks_inside` asks for it, that loop inside of those of the body.
  void makeLoop(func::FuncOp function, SmallVector<Value> values,
                ArrayRef<Value> bounds) {
    Value begin = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                             function.getArgument(1));
    Value end = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                           function.getArgument(2));
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    SmallVector<Operation *> shared, own;
    if (kernel->hasAttr(tile::decisions::kTasksInside) &&
        mayRunInside(shared, own)) {
      makeInnerLoops(values, bounds, {begin, end, one}, shared, own);
      func::ReturnOp::create(b, loc);
      return;
    }
    auto loop = scf::ForOp::create(b, loc, begin, end, one);
    func::ReturnOp::create(b, loc);
    b.setInsertionPointToStart(loop.getBody());
    llvm::append_range(values, makeIds(loop.getInductionVar(), bounds));
    Block &entry = kernel.getBody().front();
    entry.getTerminator()->erase();
    Operation *last = loop.getBody()->getTerminator();
    for (auto [argument, value] : llvm::zip_equal(entry.getArguments(), values))
      argument.replaceAllUsesWith(value);
    last->getBlock()->getOperations().splice(last->getIterator(),
                                             entry.getOperations());
  }

  SmallVector<Value> makeIds(Value task, ArrayRef<Value> bounds) {
    SmallVector<Value> ids(bounds.size());
    Value rest = task;
    for (auto dim = static_cast<int64_t>(bounds.size()) - 1; dim > 0; --dim) {
      ids[dim] = arith::RemUIOp::create(b, loc, rest, bounds[dim]);
      rest = arith::DivUIOp::create(b, loc, rest, bounds[dim]);
    }
    if (!ids.empty())
      ids[0] = rest;
    return ids;
  }

  /// Whether the body is a row of loops that all tasks run in the same steps,
  /// and constants; those that depend on the task (`own`) or not (`shared`).
  bool mayRunInside(SmallVectorImpl<Operation *> &shared,
                    SmallVectorImpl<Operation *> &own) {
    Block &entry = kernel.getBody().front();
    DenseSet<Value> ofTask;
    ofTask.insert_range(entry.getArguments().take_back(kernel.getGridRank()));
    auto depends = [&](Operation &op) {
      return llvm::any_of(op.getOperands(),
                          [&](Value value) { return ofTask.contains(value); });
    };
    for (Operation &op : entry.without_terminator()) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        if (loop.getNumResults() || depends(op))
          return false;
      } else if (!isPure(&op) || op.getNumRegions()) {
        return false;
      } else if (depends(op)) {
        ofTask.insert_range(op.getResults());
        own.push_back(&op);
      } else {
        shared.push_back(&op);
      }
    }
    return true;
  }

  /// for step in the body's outermost loops: for task in [begin, end): the
  /// rest.
  void makeInnerLoops(ArrayRef<Value> values, ArrayRef<Value> bounds,
                      std::array<Value, 3> range, ArrayRef<Operation *> shared,
                      ArrayRef<Operation *> own) {
    Block &entry = kernel.getBody().front();
    IRMapping map;
    map.map(entry.getArguments().drop_back(bounds.size()), values);
    for (Operation *op : shared)
      b.clone(*op, map);
    for (auto body : entry.getOps<scf::ForOp>()) {
      auto steps = scf::ForOp::create(b, loc, map.lookup(body.getLowerBound()),
                                      map.lookup(body.getUpperBound()),
                                      map.lookup(body.getStep()));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(steps.getBody());
      auto tasks = scf::ForOp::create(b, loc, range[0], range[1], range[2]);
      b.setInsertionPointToStart(tasks.getBody());
      IRMapping inner = map;
      inner.map(entry.getArguments().take_back(bounds.size()),
                makeIds(tasks.getInductionVar(), bounds));
      inner.map(body.getInductionVar(), steps.getInductionVar());
      for (Operation *op : own)
        b.clone(*op, inner);
      for (Operation &op : body.getBody()->without_terminator())
        b.clone(op, inner);
    }
  }

  void placeScratch(func::FuncOp function, int64_t bytes) {
    if (places.empty())
      return;
    b.setInsertionPointToStart(&function.getBody().front());
    Value scratch = memory.makeStatic(MemRefType::get({bytes}, b.getI8Type()),
                                      function.getArgument(3));
    if (checksAccesses(function))
      guardScratch(scratch, bytes);
    const auto *place = places.begin();
    function.walk([&](tile::AllocOp alloc) {
      OpBuilder nested(alloc);
      Value start = arith::ConstantIndexOp::create(nested, alloc.getLoc(),
                                                   (place++)->first);
      Value view = memref::ViewOp::create(nested, alloc.getLoc(),
                                          cast<MemRefType>(alloc.getType()),
                                          scratch, start, ValueRange());
      alloc.getResult().replaceAllUsesWith(view);
      alloc.erase();
    });
  }

  /// Another kernel may have had other places there.
  void guardScratch(Value scratch, int64_t bytes) {
    MemoryGuards guards(b, loc, scratch);
    guards.close(b, 0, bytes);
    for (auto [offset, size] : places)
      guards.open(b, offset, size);
  }

  tile::KernelOp kernel;
  OpBuilder b;
  Location loc;
  RawMemory memory;
  /// Offset and bytes of each tile.alloc, in walk order.
  SmallVector<std::pair<int64_t, int64_t>> places;
};

struct ConvertTileKernelToFunc
    : public tilewright::impl::ConvertTileKernelToFuncBase<
          ConvertTileKernelToFunc> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LLVMTypeConverter converter(&getContext());
    LaunchAliasing aliasing(module);
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<tile::KernelOp>())) {
      SmallVector<int64_t> distinct = aliasing.getDistinctArguments(kernel);
      if (failed(KernelLowering(kernel, converter).run(distinct)))
        return signalPassFailure();
    }
    if (failed(lowerPrograms(module, converter)))
      signalPassFailure();
  }
};

} // namespace
